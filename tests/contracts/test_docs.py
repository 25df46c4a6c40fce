"""The pages name what exists: files, functions, arguments and their values."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privrank

ROOT = Path(__file__).parents[2]
PRIVACY = "docs/privacy.md"
PROOFS = "docs/proofs.md"
GUIDES = [
    "docs/quick-start.md",
    "docs/data-in.md",
    "docs/models.md",
    "docs/standard-errors.md",
    "docs/pooling.md",
    "docs/rank-aggregation.md",
    "docs/tests.md",
    "docs/budget.md",
    "docs/designs.md",
    "docs/reports.md",
    "docs/which-method.md",
    "docs/summary-table.md",
    "docs/cite.md",
    "docs/local.md",
    "docs/weights.md",
    "docs/contests.md",
    "docs/assigned-sets.md",
]
GUIDES += ["docs/licences.md"]
PAGES = ["README.md", PRIVACY, PROOFS, *GUIDES]
PAPERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/papers").glob("*2*.md"))
COMMAND = re.compile(r"(make|python|sudo)\b")
HOME = ("~", "/")
TREES = {
    path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "privrank").rglob("*.py"))
}
NODES = [node for tree in TREES.values() for node in ast.walk(tree)]
ARGUMENTS = {node.arg for node in NODES if isinstance(node, ast.arg)}
FUNCTIONS = {node.name for node in NODES if isinstance(node, ast.FunctionDef | ast.ClassDef)}
STRINGS = {
    node.value for node in NODES if isinstance(node, ast.Constant) and isinstance(node.value, str)
}
IGNORED = [
    line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
]


def names(text):
    """What a page puts between single backticks, blocks of code left out."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    return re.findall(r"`([^`\n]+)`", text)


def resolve(name):
    """The object a dotted name means, None if there is none."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def missing(name):
    """What of a name on a page does not exist."""
    if COMMAND.match(name) or name.startswith(HOME):
        return []
    if "/" in name or name.startswith(".") or re.fullmatch(r"[A-Z]+|\w+\.(md|cff|py|cfg)", name):
        first = re.split(r"[/\\]", name)[0]
        return [] if (ROOT / name).exists() or first in IGNORED or name in STRINGS else [name]
    lost = [word for word in re.findall(r"(\w+)=", name) if word not in ARGUMENTS]
    lost += [word for word in re.findall(r"(\w+)\(", name) if word not in FUNCTIONS]
    quoted = re.findall(r"['\"]([^'\"]+)['\"]", name)
    lost += [word for word in quoted if word not in STRINGS and not word.endswith(".ledger")]
    plain = re.sub(r"['\"].*?['\"]", "", name)
    for word in re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+", plain):
        full = re.sub(
            r"^(pr|np)\.", lambda short: {"pr": "privrank.", "np": "numpy."}[short[1]], word
        )
        here = full if full.startswith(("privrank.", "numpy.")) else f"privrank.{full}"
        lost += [] if resolve(here) is not None else [word]
    if re.fullmatch(r"\w+", plain) and plain not in ARGUMENTS | FUNCTIONS | STRINGS:
        lost.append(plain)
    return lost


@pytest.mark.parametrize("page", PAGES + PAPERS)
def test_a_page_names_what_exists(page):
    found = names((ROOT / page).read_text(encoding="utf-8"))
    assert len(found) >= 5
    assert [name for name in found if missing(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "privrank/mechanism/",
        "privrank/sensitivities.py",
        "tests/test_nothing.py",
        "privrank.privacy.sensitivity.Reaches",
        "privrank.nothing",
        "privrank.privacy.sensitivity.UnitSensitivity.nothing",
        "pr.as_ranking",
        "PrivateBTL.from_formulas",
        "fits(...)",
        "PrivateBTL(...).fit(epsilon, deltas=...)",
        "designs=",
        'design="shut"',
        '"spheric"',
        "distinct_rows",
        "np.infinite",
    ],
)
def test_a_name_of_nothing_is_found_out(name):
    assert missing(name)


def rows_of_tables():
    """The rows of the page's tables: where it is proved, where decided, and how to follow one."""
    text = (ROOT / PROOFS).read_text(encoding="utf-8")
    tables = dict(re.findall(r"^\| (\w+) .*\n\| --- .*\n((?:\|.*\n)+)", text, flags=re.M))
    return [tables[first].splitlines() for first in ("claim", "rule", "release")]


def privacy_tables():
    """The names in the second column of the tables of proofs and of rules."""
    return [[names(row.split("|")[2]) for row in table] for table in rows_of_tables()[:2]]


def proofs(path):
    """The classes and functions of a file that prove something, '' for the file's own docstring."""
    found = []
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if "**Privacy.**" in (ast.get_docstring(node) or ""):
                found.append(getattr(node, "name", ""))
    return found


def test_every_claim_is_proved_where_the_page_says():
    proved, decided = privacy_tables()
    assert all(proved) and all(decided)
    for name in sum(proved, []):
        if "/" in name:
            assert any(proofs(path) for path in TREES if path.as_posix().startswith(name))
        else:
            assert "**Privacy.**" in resolve(name).__doc__, name


def test_from_a_release_to_its_proof_its_test_and_its_draw_are_five_files():
    rows = rows_of_tables()[2]
    assert len(rows) > 5
    for row in rows:
        *proved, tested = names(row.split("|")[2])
        chosen, noises = names(row.split("|")[3])[0], names(row.split("|")[4])
        assert len({*proved, tested, chosen, *noises}) <= 5, row
        for name in (*proved, noises[0]):
            assert any(proofs(path) for path in TREES if path.as_posix().startswith(name)), name
        assert tested.startswith("tests/") and (ROOT / tested).exists()
        # what chooses the noise names a distribution, or the function that returns one
        assert re.search(r"Noise|Laplace|Gaussian|_noise", (ROOT / chosen).read_text("utf-8"))
        assert "os.urandom" in (ROOT / noises[-1]).read_text("utf-8"), row


def test_every_file_with_a_proof_is_on_the_page():
    proved = sum(privacy_tables()[0], [])
    folders = tuple(name for name in proved if "/" in name)
    modules = {resolve(name).__module__ for name in proved if "/" not in name}
    files = {path for path in TREES if proofs(path)}
    assert len(files) > 30
    for path in files:
        module = ".".join(path.with_suffix("").parts)
        named = path.as_posix().startswith(folders) or module in modules
        assert named, f"{path} has a proof: name it in the table of claims of {PROOFS}"


def test_a_word_of_the_glossary_has_one_meaning():
    text = (ROOT / "docs/glossary.md").read_text("utf-8")
    words = re.findall(r"^## (.+)$", text, flags=re.M) + re.findall(r"\*\*(.+?)\*\*", text)
    assert 40 < len(words) == len(set(words)) <= 60


def test_categories_have_one_name_in_every_test():
    choices = pd.Series(list("abcab") * 10)
    one, two = {"null": "uniform"}, {"sample2": choices[:30]}
    for test, more in (("UniformityTest", {}), ("IdentityTest", one), ("ClosenessTest", two)):
        fits = [
            getattr(privrank, test)(choices, **more, **{argument: list("abcd")}).fit(
                1.0, rng=np.random.default_rng(1)
            )
            for argument in ("categories", "items")
        ]
        assert fits[0].to_json() == fits[1].to_json()
        rankings = pd.DataFrame({"a": [1, 2] * 5, "b": [2, 1] * 5})
        other = {name: rankings if name == "sample2" else value for name, value in more.items()}
        with pytest.raises(
            ValueError, match="categories= is for choices: give rankings their item"
        ):
            getattr(privrank, test)(rankings, **other, categories=["a", "b"])
        with pytest.raises(ValueError, match="categories must be declared"):
            getattr(privrank, test)(choices, **more)


def stray_numbers(text):
    """Lines that begin with a number and a point in the middle of a sentence: they become lists."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        expected = re.match(r"\s*(\d+)[.)] ", block)
        after = int(expected[1]) if expected else -1
        for number, line in re.findall(r"\n( *\d+[.)] )(.*)", block):
            after += 1
            if int(number.strip(" .)")) != after or after == 0:
                found.append(number + line)
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- furthest off at epsilon\n  1. Who can, declares it.", 1),
        ("at epsilon\n2) and so on", 1),
        ("1. one,\n   more\n2. two\n", 0),
        ("before\n\n1. one\n\n2. two", 0),
    ],
)
def test_a_stray_number_is_found(text, found):
    assert len(stray_numbers(text)) == found


def test_no_line_becomes_a_list_by_accident():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        assert stray_numbers(path.read_text(encoding="utf-8")) == [], path


def places(text):
    """The names that a text places in a file of the package: `name` of `folder/file.py`."""
    return re.findall(r"`(\w+)`(?: and its like)? (?:of|in) `([\w/]+\.py)`", text)


def test_what_contributors_are_sent_for_is_there():
    named = places((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) >= 8 and places("`nothing` of `btl.py`") == [("nothing", "btl.py")]
    for name, path in named:
        folder = ROOT if path.startswith("tests/") else ROOT / "privrank"
        nodes = list(ast.walk(ast.parse((folder / path).read_text(encoding="utf-8"))))
        there = {getattr(node, "name", None) or getattr(node, "id", None) for node in nodes}
        assert name in there, (name, path)
