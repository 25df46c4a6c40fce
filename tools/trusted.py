"""Count the code between a data frame and its release, over all fits of the tests' catalogue.

To check the privacy claim, a reviewer reads the functions that run until a model is built, and
those that run from the spending call until its release exists. The plan in between uses public
numbers only. The tracer is `tests/taint.py`, which also records the functions that receive
un-noised data. The counts are statements of these functions, without docstrings. The algorithms of
the five papers are counted separately. Run this script with `make trusted`.
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

from catalogue import CATALOGUE  # noqa: E402
from measuring import statements  # noqa: E402
from taint import PACKAGE, TRUSTED, Watch, followed_for_publication  # noqa: E402

PUBLISHED = "published"
SUBPACKAGES = sorted(TRUSTED - {PUBLISHED})


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

    Comprehensions, lambdas and class bodies are counted in the function or module that contains
    them.
    """
    sizes: dict[str, int] = defaultdict(int)
    for path, line in {(code.co_filename, code.co_firstlineno) for code in codes}:
        if path not in _FILES:
            _FILES[path] = statements_of(path)
        if size := _FILES[path].get(line, 0):
            sizes[".".join(Path(path).relative_to(PACKAGE).with_suffix("").parts)] += size
    return dict(sizes)


def within(sizes: dict[str, int], subpackages: Iterable[str]) -> dict[str, int]:
    """Return the modules of these subpackages only."""
    return {
        module: size for module, size in sizes.items() if module.partition(".")[0] in subpackages
    }


def without(sizes: dict[str, int], subpackages: Iterable[str]) -> dict[str, int]:
    """Return the modules of all other subpackages."""
    return {module: sizes[module] for module in sizes.keys() - within(sizes, subpackages).keys()}


def size_of_subpackages() -> int:
    """Return the number of statements in all files of the trusted subpackages."""
    paths = (path for name in TRUSTED for path in (PACKAGE / name).rglob("*.py"))
    return sum(statements(ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def counted(watches: Iterable[Watch]) -> dict[str, dict[str, int]]:
    """Return the statements by module for each row of the table for reviewers."""
    watches = list(watches)
    encoding = {code for watch in watches for code in watch.encoding}
    releasing = {code for watch in watches for code in watch.releasing}
    given = {code for watch in watches for code in watch.received}
    # numba enters compiled loops, so the tracer records them only as receivers of arrays
    trusted = without(size_by_module(encoding | releasing | given), {PUBLISHED})
    return {
        "from a data frame to its release": trusted,
        "part of it that runs until a model is built": without(
            size_by_module(encoding), {PUBLISHED}
        ),
        **{f"in `privrank/{name}/`": within(trusted, {name}) for name in SUBPACKAGES},
        "outside these subpackages, given public numbers and releases": without(
            size_by_module((encoding | releasing) - given), TRUSTED
        ),
        "outside these subpackages, given arrays of un-noised data": without(
            size_by_module(given), TRUSTED
        ),
        "algorithms of the five papers, not included above": within(
            size_by_module(releasing), {PUBLISHED}
        ),
    }


def table(parts: dict[str, dict[str, int]]) -> str:
    """Return the counts as the table of docs/proofs.md."""
    rows = [f"| {what} | {sum(sizes.values()):,} | {len(sizes)} |" for what, sizes in parts.items()]
    return "\n".join(["| code | statements | modules |", "| --- | --- | --- |", *rows])


def stated(page: str) -> dict[str, tuple[int, int]]:
    """Return the statements and modules in each row of the table of a page."""
    rows = [re.fullmatch(r"\| (.+) \| ([\d,]+) \| (\d+) \|", line) for line in page.splitlines()]
    return {row[1]: (int(row[2].replace(",", "")), int(row[3])) for row in rows if row}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        watches = followed_for_publication(CATALOGUE, folder)
    parts = counted(watches.values())
    trusted, *_ = parts.values()
    for module, size in sorted(trusted.items(), key=lambda pair: -pair[1]):
        print(f"{size:6d}  {module}")
    print(f"\n{table(parts)}\n")
    print(f"{size_of_subpackages():,} statements in all files of the four subpackages")


if __name__ == "__main__":
    main()
