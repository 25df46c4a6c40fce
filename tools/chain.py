"""Count the code between a data frame and its release, over all fits of the tests' catalogue.

A reviewer of the privacy claim reads the functions that are entered until a model is built, and
from the call that spends until its release exists; the plan in between sees public numbers alone.
The tracer is the tests' (`tests/taint.py`), which also knows who is given un-noised data. Counted
are lines of code in the bodies of these functions, without docstrings, comments and empty lines;
the papers' own algorithms are counted apart: `make chain`.
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import pytest  # noqa: E402
from catalogue import CATALOGUE  # noqa: E402
from taint import PACKAGE, TRUSTED, Watch, followed  # noqa: E402

APART = "published"


def watches_of_all_fits() -> list[Watch]:
    """Follow every fit of the catalogue, with secret noise and a ledger on disk."""
    watches = []
    with tempfile.TemporaryDirectory() as empty:
        for case in CATALOGUE.values():
            with pytest.MonkeyPatch.context() as patch:
                watches.append(followed(patch, case, empty))
    return watches


def lines_of_code(path: str) -> dict[int, int]:
    """Return the lines of code of each function of a file, by its first line."""
    source = Path(path).read_text(encoding="utf-8")
    tree, real = ast.parse(source), set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped | {tokenize.ENDMARKER}:
            real |= set(range(token.start[0], token.end[0] + 1))
    counts = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[ast.get_docstring(node) is not None :]
            own = {line for part in body for line in range(part.lineno, part.end_lineno + 1)}
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            counts[first] = len(own & real)
    return counts


_FILES: dict[str, dict[int, int]] = {}


def lines_by_module(codes: Iterable[CodeType]) -> dict[str, int]:
    """Return the lines of these functions by module.

    Comprehensions, lambdas and bodies of classes, which are no functions of their own, belong to
    what holds them.
    """
    sizes: dict[str, int] = defaultdict(int)
    for path, line in {(code.co_filename, code.co_firstlineno) for code in codes}:
        if path not in _FILES:
            _FILES[path] = lines_of_code(path)
        if size := _FILES[path].get(line, 0):
            sizes[".".join(Path(path).relative_to(PACKAGE).with_suffix("").parts)] += size
    return dict(sizes)


def of_rooms(sizes: dict[str, int], rooms: Iterable[str]) -> dict[str, int]:
    """Return the modules of these rooms alone."""
    return {module: size for module, size in sizes.items() if module.partition(".")[0] in rooms}


def without(sizes: dict[str, int], rooms: Iterable[str]) -> dict[str, int]:
    """Return the modules of all other rooms."""
    return {module: sizes[module] for module in sizes.keys() - of_rooms(sizes, rooms).keys()}


def lines_of_rooms() -> int:
    """Return the lines of all files of the trusted rooms, docstrings and comments included."""
    paths = (path for name in TRUSTED for path in (PACKAGE / name).rglob("*.py"))
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def say(sizes: dict[str, int], what: str) -> None:
    """Print a sum of lines."""
    print(f"{sum(sizes.values()):6d}  lines of code in {len(sizes)} modules {what}")


def chain_sizes(watches: Iterable[Watch]) -> dict[str, int]:
    """Return the lines of the chain by module, without the papers' own algorithms."""
    codes = {code for watch in watches for code in watch.encoding | watch.releasing}
    return without(lines_by_module(codes), {APART})


def main() -> None:
    watches = watches_of_all_fits()
    sizes = chain_sizes(watches)
    for module, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        print(f"{size:6d}  {module}")
    say(sizes, "from a data frame to its release, the plan left out")
    encoding = {code for watch in watches for code in watch.encoding}
    say(without(lines_by_module(encoding), {APART}), "of them until a model is built")
    for name in sorted(TRUSTED - {APART}):
        say(of_rooms(sizes, {name}), f"in {name}/")
    releasing = {code for watch in watches for code in watch.releasing}
    say(of_rooms(lines_by_module(releasing), {APART}), "of the papers' own algorithms, apart")
    given = lines_by_module({code for watch in watches for code in watch.received})
    say(of_rooms(given, TRUSTED), "given un-noised data in the four rooms")
    outside = without(given, TRUSTED)
    say(outside, f"given some outside of them: {', '.join(sorted(outside))}")
    print(f"{lines_of_rooms():6d}  lines in all files of the four rooms, with docstrings")


if __name__ == "__main__":
    main()
