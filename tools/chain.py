"""Count the code between a data frame and its release, over all fits of the tests' catalogue.

A reviewer of the privacy claim reads the functions that are entered from the construction of a
model until its release exists. This traces them, and counts the lines of code in their bodies,
without docstrings, comments and empty lines: `make chain`.
"""

from __future__ import annotations

import ast
import io
import sys
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
from catalogue import CATALOGUE  # noqa: E402

RELEASES = "release_"
TRUSTED = {"privacy", "encode", "mechanisms", "published"}


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
    chain = Chain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CATALOGUE.values():
            chain.follow(case)
    total: dict[str, dict[str, int]] = {}
    seen: set[tuple[str, int]] = set()
    for phase, codes in chain.entered.items():
        total[phase] = defaultdict(int)
        for code in sorted(codes, key=function_of):
            where = function_of(code)
            size = lines_of_code_of(where)
            if where not in seen and size:
                seen.add(where)
                total[phase][module_name(where[0])] += size
    both = {**total["encode"]}
    for module, size in total["release"].items():
        both[module] = both.get(module, 0) + size
    for module, size in sorted(both.items(), key=lambda pair: -pair[1]):
        print(f"{size:6d}  {module}")
    after = sum(total["release"].values())
    print(f"{sum(both.values()):6d}  lines of code in {len(both)} modules")
    print(f"{after:6d}  of them entered first after encoding")
    handed = sum(size for module, size in both.items() if module.partition(".")[0] in TRUSTED)
    print(
        f"{handed:6d}  of them in rooms that are handed encoded data; the rest sees public numbers"
    )


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
