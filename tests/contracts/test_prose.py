"""Prose is plain: phrases that are not English do not return, and sentences are short.

Docstrings, comments, messages and pages are read; generated tables of studies are not.
"""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("privrank", "docs", "vignettes", "validation", "paper")
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(p for f in FOLDERS for p in (ROOT / f).rglob("*.md")))
    if path.parent.name != "validation" or path.stem == "README"
)
CODE = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

VERBS = (
    "is|has|wants|uses|speaks|knows|gives|passes|puts|publishes|answers|may|can|was|goes|fails|"
    "comes|holds|says|shows"
)
PHRASES = {
    "a clause as the subject": rf"(?<![\w'])(?:Who|What) (?:{VERBS})\b(?![^.?!]*\?)|\b[Ww]hoever\b",
    "a sentence that begins with Of": r"(?:^|(?<=[.:;] ))Of (?!course)[a-z]",
    "come about": r"\b(?:com(?:e|es|ing)|came|bring|brings|brought) about\b",
    "in the place of": r"\bin (?:the )?place of\b",
}
PLANTED = {
    "a clause as the subject": "Who answers is random.",
    "a sentence that begins with Of": "It is public. Of items there are six.",
    "come about": "This comes about by chance.",
    "in the place of": "Labels in the place of codes.",
}

MAX_WORDS = 30
GUIDES = ["README.md", "docs/index.md", "docs/quick-start.md", "docs/ten-minutes.md"]
GUIDES += ["docs/data-in.md", "docs/planning.md", "docs/after-the-release.md"]
TUTORIALS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "vignettes").glob("*.py"))


@cache
def paragraphs(path):
    """Texts of a file without line breaks: paragraphs of a page, strings and comments of code."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        plain = re.sub(r"^( *)```.*?^\1```", "", source, flags=re.S | re.M)
        return [re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", plain)]
    strings = [
        re.sub(r"\s+", " ", part).strip()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for part in re.split(r"\n\s*\n", node.value)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    return strings + comments


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases_do_not_return(phrase):
    pattern = re.compile(PHRASES[phrase])
    assert pattern.search(PLANTED[phrase])
    assert len(PAGES) > 30 and len(CODE) > 150
    found = [
        f"{path.relative_to(ROOT)}: {text[max(0, match.start() - 40) : match.end() + 40]}"
        for path in (*PAGES, *CODE)
        for text in paragraphs(path)
        for match in pattern.finditer(text)
    ]
    assert found == []


def prose(name):
    """Sentences of a page or tutorial, without code, tables, headings and lists of one phrase."""
    source = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".py"):  # the prose of a tutorial stands in comments
        marked = [line[2:] if line.startswith("# ") else "" for line in source.splitlines()]
        source = "\n".join(marked)
    source = re.sub(r"^( *)```.*?^\1```", "", source, flags=re.S | re.M)
    source = re.sub(r"\$\$.*?\$\$", "", source, flags=re.S)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", source):
        if not re.match(r"\s*(?:[|#<:%]|!\[)", block):
            text = re.sub(r"\s+", " ", block).strip(" -*")
            yield from re.split(r"(?<=[.?!:])\s+(?=[(A-Z`\"*\[])", text)


def words(sentence):
    """Words that are read: code and addresses count as one, marks of Markdown as none."""
    plain = re.sub(r"\]\([^)]*\)|[*_]", "", sentence)
    return len(re.sub(r"`[^`]*`", "code", plain).split())


@pytest.mark.parametrize("name", [*GUIDES, *TUTORIALS])
def test_sentences_are_short(name):
    sentences = list(prose(name))
    assert len(sentences) > 10
    assert [text for text in sentences if words(text) > MAX_WORDS] == []
