"""Count the code between a data frame and its release, over all fits of the tests' catalogue.

A reviewer of the privacy claim reads the functions that run until a model is built, and from the
call that uses the budget until its release exists; the plan in between uses public numbers alone.
The tracer (`tests/taint.py`) also records which functions receive data without noise. The
statements of these functions are counted, without docstrings; the algorithms of papers are counted
separately: `make chain`.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import pytest  # noqa: E402
from catalogue import CATALOGUE  # noqa: E402
from measuring import statements  # noqa: E402
from taint import PACKAGE, TRUSTED, Watch, followed  # noqa: E402

APART = "published"
ROOMS = sorted(TRUSTED - {APART})


def watches_of_all_fits() -> list[Watch]:
    """Follow every fit of the catalogue, with secret noise and a ledger on disk."""
    watches = []
    with tempfile.TemporaryDirectory() as empty:
        for case in CATALOGUE.values():
            with pytest.MonkeyPatch.context() as patch:
                watches.append(followed(patch, case, empty))
    return watches


def statements_of(path: str) -> dict[int, int]:
    """Return the statements of each function of a file, by its first line."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {
        min([node.lineno, *(part.lineno for part in node.decorator_list)]): statements(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


_FILES: dict[str, dict[int, int]] = {}


def size_by_module(codes: Iterable[CodeType]) -> dict[str, int]:
    """Return the statements of these functions by module.

    Comprehensions, lambdas and class bodies, which are not separate functions, belong to the
    enclosing function or module.
    """
    sizes: dict[str, int] = defaultdict(int)
    for path, line in {(code.co_filename, code.co_firstlineno) for code in codes}:
        if path not in _FILES:
            _FILES[path] = statements_of(path)
        if size := _FILES[path].get(line, 0):
            sizes[".".join(Path(path).relative_to(PACKAGE).with_suffix("").parts)] += size
    return dict(sizes)


def of_rooms(sizes: dict[str, int], rooms: Iterable[str]) -> dict[str, int]:
    """Return the modules of these subpackages."""
    return {module: size for module, size in sizes.items() if module.partition(".")[0] in rooms}


def without(sizes: dict[str, int], rooms: Iterable[str]) -> dict[str, int]:
    """Return the modules of all other subpackages."""
    return {module: sizes[module] for module in sizes.keys() - of_rooms(sizes, rooms).keys()}


def size_of_rooms() -> int:
    """Return the statements of all files of the trusted subpackages."""
    paths = (path for name in TRUSTED for path in (PACKAGE / name).rglob("*.py"))
    return sum(statements(ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def counted(watches: Iterable[Watch]) -> dict[str, dict[str, int]]:
    """Return the statements by module that the page for reviewers counts."""
    watches = list(watches)
    encoding = {code for watch in watches for code in watch.encoding}
    releasing = {code for watch in watches for code in watch.releasing}
    given = {code for watch in watches for code in watch.received}
    # compiled loops are called by numba, so the tracer records them as receivers of arrays only
    chain = without(size_by_module(encoding | releasing | given), {APART})
    return {
        "from a data frame to its release": chain,
        "of them until a model is built": without(size_by_module(encoding), {APART}),
        **{f"in `privrank/{name}/`": of_rooms(chain, {name}) for name in ROOMS},
        "elsewhere, given public numbers and releases": without(
            size_by_module((encoding | releasing) - given), TRUSTED
        ),
        "elsewhere, given arrays of un-noised data": without(size_by_module(given), TRUSTED),
        "of the papers' own algorithms, beside": of_rooms(size_by_module(releasing), {APART}),
    }


def table(parts: dict[str, dict[str, int]]) -> str:
    """Return the counts as docs/privacy.md shows them."""
    rows = [f"| {what} | {sum(sizes.values()):,} | {len(sizes)} |" for what, sizes in parts.items()]
    return "\n".join(["| code | statements | modules |", "| --- | --- | --- |", *rows])


def stated(page: str) -> dict[str, tuple[int, int]]:
    """Return statements and modules by row of the table in a page."""
    rows = [re.fullmatch(r"\| (.+) \| ([\d,]+) \| (\d+) \|", line) for line in page.splitlines()]
    return {row[1]: (int(row[2].replace(",", "")), int(row[3])) for row in rows if row}


def main() -> None:
    parts = counted(watches_of_all_fits())
    chain, *_ = parts.values()
    for module, size in sorted(chain.items(), key=lambda pair: -pair[1]):
        print(f"{size:6d}  {module}")
    print(f"\n{table(parts)}\n")
    print(f"{size_of_rooms():,} statements in all files of the four rooms")


if __name__ == "__main__":
    main()
