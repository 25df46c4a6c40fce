"""Count the code between a data frame and its release, over all fits of the tests' catalogue.

A reviewer of the privacy claim reads the functions that are entered from the construction of a
model until its release exists. This traces them, and counts the lines of code in their bodies,
without docstrings, comments and empty lines: `make chain`. The papers' own algorithms are counted
apart. Of all functions it says which are given un-noised data (`tests/taint.py`).
"""

from __future__ import annotations

import ast
import io
import os
import sys
import tempfile
import threading
import tokenize
import warnings
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
PACKAGE = str(ROOT / "privrank")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from catalogue import CATALOGUE  # noqa: E402
from taint import TRUSTED, load_kernels, watching  # noqa: E402

RELEASES, APART = "release_", "published"


class Chain:
    """The code objects entered while it listens, until a release is returned."""

    def __init__(self) -> None:
        self.entered: dict[str, set[CodeType]] = {"encode": set(), "release": set()}
        self.phase: str | None = None

    def listen(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if self.phase is None or not code.co_filename.startswith(PACKAGE):
            return
        if event == "call" and code.co_name != "<module>":
            self.entered[self.phase].add(code)
        elif event == "return" and code.co_name.startswith(RELEASES):
            self.phase = None

    def follow(self, case: Any) -> None:
        """Build one model and fit it, listening."""
        variant = next(iter(case.frames))
        self.phase = "encode"
        sys.setprofile(self.listen)
        threading.setprofile(self.listen)
        try:
            model = case.build(variant)
            self.phase = "release"
            case.fit(model, rng=np.random.default_rng(1))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self.phase = None


def function_of(code: CodeType) -> tuple[str, int]:
    """Return where a function begins; comprehensions and lambdas belong to what holds them."""
    return code.co_filename, code.co_firstlineno


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


def main() -> None:
    chain, given = Chain(), set()
    load_kernels()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as empty:
        warnings.simplefilter("ignore")
        os.environ["PRIVRANK_CACHE"] = empty  # null distributions are drawn, whoever counts
        for case in CATALOGUE.values():
            with pytest.MonkeyPatch.context() as patch, watching(patch) as watch:
                chain.follow(case)
            given |= watch.received
    encoding = lines_by_module(chain.entered["encode"])
    both = lines_by_module(chain.entered["encode"] | chain.entered["release"])
    apart = {module: size for module, size in both.items() if room(module) == APART}
    rest = {module: size for module, size in both.items() if room(module) != APART}
    for module, size in sorted(rest.items(), key=lambda pair: -pair[1]):
        print(f"{size:6d}  {module}")
    say(rest, "from a data frame to its release")
    print(f"{sum(both.values()) - sum(encoding.values()):6d}  of them entered first after encoding")
    for name in sorted(TRUSTED - {APART}):
        say({module: size for module, size in rest.items() if room(module) == name}, f"in {name}/")
    say(apart, "of the papers' own algorithms, apart")
    handed = lines_by_module(given)
    say({m: n for m, n in handed.items() if room(m) in TRUSTED}, "given un-noised data")
    outside = {m: n for m, n in handed.items() if room(m) not in TRUSTED}
    say(outside, f"more given some outside the four rooms: {', '.join(sorted(outside))}")


def say(sizes: dict[str, int], what: str) -> None:
    """Print a sum of lines."""
    print(f"{sum(sizes.values()):6d}  lines of code in {len(sizes)} modules {what}")


def room(module: str) -> str:
    """Return the room of a module."""
    return module.partition(".")[0]


def lines_by_module(codes: set[CodeType]) -> dict[str, int]:
    """Return the lines of the functions of these codes, by module."""
    sizes: dict[str, int] = defaultdict(int)
    for where in {function_of(code) for code in codes}:
        if size := lines_of_code_of(where):
            sizes[module_name(where[0])] += size
    return dict(sizes)


_FILES: dict[str, dict[int, int]] = {}


def lines_of_code_of(where: tuple[str, int]) -> int:
    """Return the lines of the function that begins there; 0 for what is no function of its own."""
    path, line = where
    if path not in _FILES:
        _FILES[path] = lines_of_code(path)
    return _FILES[path].get(line, 0)


def module_name(path: str) -> str:
    """Return the dotted name of a module of the package."""
    return ".".join(Path(path).relative_to(PACKAGE).with_suffix("").parts)


if __name__ == "__main__":
    main()
