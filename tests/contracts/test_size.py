"""Size is a promise: statements, modules and comments are counted; some words are not used."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest
from measuring import statements

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "privrank").rglob("*.py"))
LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

MAX_STATEMENTS, MAX_MODULES, MIN_COMMENTS = 19_000, 135, 0.025

# Each of these was said for what has a term in the field (docs/glossary.md).
WORDS = {
    "law": "distribution",
    "chance": "probability",
    "bend": "curvature",
    "swing": "asymmetry of the curvature",
    "told": "detected",
    "hostile": "adversarial",
    "strongest": "largest design effect",
    "away": "deviation",
    "near": "estimate",
}
# Of ordinary words only their use as a name is meant.
NAMES_ONLY = {"chance", "told", "away", "near"}
# Participles and pronouns say what was done to a value, not what it is.
NO_NOUNS = {"found", "asked", "each", "kept"}


@cache
def tokens(path):
    return list(tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline))


def lines(path):
    """Lines of a file that hold code, and those that hold a comment; docstrings are neither."""
    code, comments, documented = set(), set(), set()
    for token in tokens(path):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in LAYOUT:
            code |= set(range(token.start[0], token.end[0] + 1))
    with_docstring = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, with_docstring) and ast.get_docstring(node):
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return code - documented, comments


def test_the_package_is_of_a_size_a_person_can_hold():
    counted = [lines(path) for path in FILES]
    code = sum(len(of_code) for of_code, _ in counted)
    comments = sum(len(of_comments) for _, of_comments in counted)
    size = sum(statements(ast.parse(path.read_text(encoding="utf-8"))) for path in FILES)
    print(f"\n{size:,} statements in {len(FILES)} modules, {comments} lines with a comment")
    assert 10_000 < size <= MAX_STATEMENTS
    assert len(FILES) <= MAX_MODULES
    assert comments >= MIN_COMMENTS * code


@pytest.mark.parametrize("word", WORDS)
def test_words_are_those_of_the_field(word):
    # as a part of a name, too: _law, law_name, BordaLaw
    name = re.compile(rf"(?i:(?:^|_){word}(?:s?$|_))|{word.title()}(?:$|[A-Z])")
    prose = re.compile(rf"(?i:\b{word}s?\b)(?! of large numbers)")
    found = []
    for path in FILES:
        for token in tokens(path):
            if token.type == tokenize.NAME:
                wrong = name.search(token.string)
            elif token.type in (tokenize.STRING, tokenize.COMMENT):
                wrong = word not in NAMES_ONLY and prose.search(token.string)
            else:
                continue
            if wrong:
                found.append(f"{path.relative_to(ROOT)}:{token.start[0]}: {token.string[:60]}")
    assert not found, f"say {WORDS[word]}: {found}"


def named_elsewhere(node):
    """Names in a node that others read: fields, and the settings that an archive passes by name."""
    if isinstance(node, ast.ClassDef):
        return [field.target for field in node.body if isinstance(field, ast.AnnAssign)]
    if isinstance(node, ast.FunctionDef) and node.name.startswith("infer"):
        return node.args.kwonlyargs
    return []


def test_values_are_named_by_nouns():
    wrong, bound = [], 0
    for path in FILES:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        public = {name for node in nodes for name in named_elsewhere(node)}
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            else:
                continue
            bound += 1
            if name in NO_NOUNS and node not in public:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    assert bound > 5_000
    assert not wrong, f"name the value by what it is: {wrong}"


def test_the_glossary_is_in_order():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert 35 < len(words) <= 45 and words == sorted(words, key=str.lower)
