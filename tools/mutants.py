"""Change the trusted subpackages in one place at a time and check that a test detects each change.

Mutants are drawn at random with a fixed seed, the same number from each area. The tests that
execute the lines of a mutant are run, the fastest first, until one fails. They run in a fork of a
pytest process that has collected all tests, with the code of the function replaced. If the change
affects code that runs at import, a separate pytest process runs in a copy of the repository.
Mutants that no test detects are listed in docs/validation/mutants.md, with the reason given in
tools/mutants.json if the change is no fault. Run this script with `make mutants`.

Results are kept in build/mutants/, keyed by the text of each file and of all tests, for later runs
that continue an interrupted run or try more mutants.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "validation"), str(ROOT / "tests")]

import pytest  # noqa: E402
import study  # noqa: E402
from mutations import Mutant, mutants_of  # noqa: E402

SEED = 20261126
BUILD, REASONS = ROOT / "build" / "mutants", Path(__file__).with_suffix(".json")
AREAS = {
    "noise": "privacy/noise privacy/knorm",
    "sensitivities": "privacy/offered privacy/sensitivity",
    "spending": "privacy/budget privacy/accounting mechanisms/spend",
    "draws": "privacy/draws",
    "contributions": "mechanisms/tallies encode/clusters mechanisms/samples",
    "statistics": (
        "mechanisms/capped mechanisms/categories mechanisms/choices mechanisms/closeness "
        "mechanisms/comparisons mechanisms/permutation mechanisms/ranknorms"
    ),
    "encoders": (
        "encode/choiceforms encode/choices encode/coding encode/comparisonforms "
        "encode/comparisons encode/encoded encode/frames encode/groups encode/rankingforms "
        "encode/samples encode/weighting"
    ),
}
TESTS = "privacy mechanisms encode release models published util bradley_terry contracts local"
RULES = "tests/contracts/test_architecture.py::test_data_classes_of_the_trusted_subpackages"
"""Tests that run for every mutant of code at import."""
WHOLE = {"privacy", "mechanisms", "encode"}
"""Areas for which slow tests are run as well."""
SLOWEST, LONGEST, PATIENCE = 6.0, 24.0, 600
"""Longest time in seconds of a test, of all tests of a mutant, and of a process.

The first two are processor times; a mutant that takes three times as long counts as killed.
"""


def digest(paths: Iterable[Path]) -> str:
    """Return a hash of the texts of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()[:16]


def drawn(number: int, seed: int, asked: list[str]) -> list[Mutant]:
    """Draw mutants, the same number from each requested area if it has enough."""
    left, chosen = number, []
    areas = {}
    for area in asked:
        paths = [ROOT / "privrank" / f"{module}.py" for module in AREAS[area].split()]
        areas[area] = [one for path in paths for one in mutants_of(path, area)]
    for place, area in enumerate(sorted(areas, key=lambda area: len(areas[area]))):
        some = min(left // (len(areas) - place), len(areas[area]))
        chosen += random.Random(f"{seed} {area}").sample(areas[area], len(areas[area]))[:some]
        left -= some
    return chosen


class Kept:
    """Results so far, stored in a file."""

    def __init__(self, name: str) -> None:
        self.path = BUILD / f"{name}.json"
        BUILD.mkdir(parents=True, exist_ok=True)
        self.found = json.loads(self.path.read_text()) if self.path.exists() else {}

    def keep(self, key: str, value: Any) -> None:
        """Store a result immediately."""
        self.found[key] = value
        self.path.with_suffix(".new").write_text(json.dumps(self.found))
        self.path.with_suffix(".new").replace(self.path)


class Hunt:
    """Pytest plugin that runs the mutants instead of the collected tests."""

    def __init__(self, mutants: list[Mutant], workers: int) -> None:
        self.mutants, self.workers = mutants, workers
        self.kept, self.covered = Kept("verdicts"), Kept("coverage")
        self.items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record which tests execute which lines, then run the mutants."""
        files = defaultdict(list)
        for item in session.items:
            fast = item.path.parent.name in WHOLE or not item.get_closest_marker("slow")
            if fast and not item.get_closest_marker("skipif"):
                self.items[item.nodeid] = item
                files[str(item.path)].append(item.nodeid)
        sources = [
            ROOT / "privrank" / f"{one}.py" for area in AREAS.values() for one in area.split()
        ]
        state = {path: digest([Path(path), *sources]) for path in files}
        new = [path for path in files if self.covered.found.get(path, [""])[0] != state[path]]
        for path, seen in self.forked(new, lambda path: self.cover(files[path], sources), 3600):
            seen = [test for test in seen or [] if len(test) == 3]
            self.covered.keep(path, [state[path], seen])
            print(f"{Path(path).name}: {len(seen)} tests", flush=True)
        self.try_all()
        return True

    def try_all(self) -> None:
        """Run all mutants without a result."""
        texts = {path: digest([path]) for path in {one.path for one in self.mutants}}
        tests, known = digest(ROOT.glob("tests/**/*.py")), self.kept.found
        self.keys = {one: f"{one.key} | {one.start} {texts[one.path]}" for one in self.mutants}
        closed = ("killed", ""), ("survived", tests), ("killed", tests)
        left = [one for one in self.mutants
                if tuple(known.get(self.keys[one], ["", ""])[:2]) not in closed]  # fmt: skip
        jobs, began = [(one, self.tests_of(one)) for one in left], time.time()
        for number, (job, found) in enumerate(self.forked(jobs, self.judge, int(10 + 3 * LONGEST))):
            verdict, by = found or ("killed", "its process was ended, or took too long")
            state = tests if verdict == "survived" else ""
            self.kept.keep(self.keys[job[0]], [verdict, state, by])
            at = f"{number + 1}/{len(left)}, {time.time() - began:.0f} s"
            print(f"{at}: {job[0].key}: {verdict} {by}", flush=True)

    def forked(self, jobs: Iterable[Any], work: Any, limit: int) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result in a separate process, None if the process was ended."""
        import resource  # by fork, which not every system has

        waiting, running = iter(jobs), {}
        while True:
            while len(running) < self.workers and (job := next(waiting, None)) is not None:
                if (child := os.fork()) == 0:
                    os.setpgid(0, 0)
                    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                    signal.alarm(PATIENCE)
                    for stream in (1, 2):
                        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
                    without_threads()
                    try:
                        said = json.dumps(work(job))
                        (BUILD / str(os.getpid())).write_text(said)
                        os._exit(0)
                    finally:
                        os._exit(1)
                running[child] = job
            if not running:
                return
            child, status = os.waitpid(-1, 0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # including its children
            answer = BUILD / str(child)
            assert status != 1 << 8, f"this could not be tried: {running[child]}"
            waited = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            ended = ("survived", "undecided: its process waited") if waited else None
            yield running.pop(child), json.loads(answer.read_text()) if answer.exists() else ended
            answer.unlink(missing_ok=True)

    def run(self, names: list[str]) -> Iterator[tuple[str, bool]]:
        """Run tests, and yield whether each has passed."""
        session = self.items[names[0]].session
        for name, following in zip(names, [*names[1:], None], strict=True):
            item, before = self.items[name], session.testsfailed
            then = None if following is None else self.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=then)
            yield name, session.testsfailed == before

    def cover(self, names: list[str], sources: list[Path]) -> list[Any]:
        """Return the name, the seconds and the executed lines of each test.

        A test that takes too long is stopped and omitted.
        """
        import coverage

        def late(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGVTALRM, late)
        tracer, times = coverage.Coverage(data_file=None, include=list(map(str, sources))), {}
        tracer.start()
        runs = self.run(names)
        for number in range(len(names)):
            tracer.switch_context(str(number))
            began = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SLOWEST)
            name, fine = next(runs)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            if fine:
                times[str(number)] = name, time.process_time() - began
        tracer.stop()
        data, lines = tracer.get_data(), defaultdict(lambda: defaultdict(list))
        for path in data.measured_files():
            for line, numbers in data.contexts_by_lineno(path).items():
                for number in numbers:
                    lines[number][path].append(line)
        return [(*times[number], lines[number]) for number in times]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant's lines, near and fast tests first."""
        low, high = mutant.lines
        path, times = str(mutant.path), {}
        for _, seen in self.covered.found.values():
            for name, seconds, lines in seen:
                here = lines.get(path, ()) if name in self.items else ()
                if here and (mutant.function is None or any(low <= n <= high for n in here)):
                    far = 1.0 if name.split("/")[1] in WHOLE else 3.0
                    times[name] = far * max(seconds, 0.01), seconds
        rules = mutant.function is None
        chosen, spent = [name for name in self.items if rules and name.startswith(RULES)], 0.0
        for name, (_, seconds) in sorted(times.items(), key=lambda pair: pair[1]):
            spent += seconds
            if seconds <= SLOWEST and spent <= LONGEST:
                chosen.append(name)
        return chosen

    def judge(self, job: tuple[Mutant, list[str]]) -> tuple[str, str]:
        """Return whether a mutant is killed, and by which test."""
        mutant, names = job
        if not names:
            return "survived", "no test executes it"
        if mutant.function is None or not exchanged(mutant):
            return apart(mutant, names)
        for name, fine in self.run(names):
            if not fine:
                return "killed", name
        return "survived", f"{len(names)} tests"


def without_threads() -> None:
    """Skip polars' work in a forked process, which would wait for threads that do not exist."""
    import polars

    def skipped(*_: object, **__: object) -> NoReturn:
        import pytest  # the code of a function uses the names of its own module

        pytest.skip("polars was imported before the fork")

    # tests with a reference to a function run its code
    for function in (polars.from_pandas, polars.from_dict, polars.from_arrow):
        function.__code__ = skipped.__code__
    for kind in (polars.DataFrame, polars.LazyFrame, polars.Series):
        kind.__init__ = skipped
    # objects built before the fork are not evaluated either
    polars.LazyFrame.collect = polars.LazyFrame._collect_eager = skipped
    polars.LazyFrame.collect_batches = polars.DataFrame.to_pandas = skipped


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions of a module."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from codes(part)


def exchanged(mutant: Mutant) -> bool:
    """Replace the code of all functions of the module; return whether this is possible."""
    whole = compile(mutant.text(), str(mutant.path), "exec")
    new = {(code.co_qualname, code.co_firstlineno): code for code in codes(whole)}
    done = False
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(mutant.path):
            code = new.get((one.__code__.co_qualname, one.__code__.co_firstlineno))
            if code is None or code.co_freevars != one.__code__.co_freevars:
                return False
            done |= code != one.__code__
            one.__code__ = code
    return done


def apart(mutant: Mutant, names: list[str]) -> tuple[str, str]:
    """Run the tests in a copy of the tree, with fresh imports."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "report", "*.egg-info")
        )
        (copy / mutant.path.relative_to(ROOT)).write_text(mutant.text())
        run = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", "-qx", "-p", "no:cacheprovider", *names],
            cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    failed = [line for line in run.stdout.split("\n") if line.startswith(("FAILED", "ERROR"))]
    return (
        ("killed", " ".join(failed)[:200])
        if run.returncode
        else ("survived", f"{len(names)} tests")
    )


def scores(found: dict[str, Counter[str]]) -> Iterator[dict[str, Any]]:
    """Yield, for each area, the fraction of the mutants with a fault that were killed."""
    from scipy.stats import beta

    found = {**found, "all areas": sum(found.values(), Counter())}
    for area, counts in found.items():
        killed, faults = counts["killed"], counts["killed"] + counts["missed"]
        low = beta.ppf(0.025, killed, faults - killed + 1) if killed else 0.0
        high = beta.ppf(0.975, killed + 1, faults - killed) if killed < faults else 1.0
        yield {
            "area": area, "mutants": counts.total(), "killed": killed,
            "equivalent": counts["equivalent"], "missed": counts["missed"],
            "score": f"{killed / max(faults, 1):.3f}", "95% interval": f"{low:.3f} to {high:.3f}",
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=420, help="total number of mutants")
    parser.add_argument("--areas", nargs="+", default=list(AREAS), choices=list(AREAS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    asked, started = parser.parse_args(), time.time()
    if not hasattr(os, "fork"):
        sys.exit("Mutants are tried in forked processes, which this system has none of.")
    hunt = Hunt(drawn(asked.mutants, SEED, asked.areas), asked.workers)
    folders = [str(ROOT / "tests" / name) for name in TESTS.split()]
    pytest.main(["-qs", "-p", "no:cacheprovider", "--no-header", *folders], plugins=[hunt])
    reasons, counts, rows = json.loads(REASONS.read_text()), defaultdict(Counter), []
    for one in hunt.mutants:
        verdict, _, by = hunt.kept.found[hunt.keys[one]]
        reason = reasons.get(one.key, "")
        if verdict == "survived":
            verdict = "equivalent" if reason else "missed"
            rows.append({
                "area": one.area, "file": str(one.path.relative_to(ROOT)), "line": one.line,
                "code": one.code, "change": one.change, "verdict": verdict, "reason": reason or by,
            })  # fmt: skip
        counts[one.area][verdict] += 1
    rows = rows or [{"verdict": "every change is found"}]
    table = list(scores(counts))
    lines = ["| " + " | ".join(table[0]) + " |", "|" + " --- |" * len(table[0])]
    lines += ["| " + " | ".join(map(str, row.values())) + " |" for row in table]
    escaped = [{name: str(text).replace("|", "\\|") for name, text in row.items()} for row in rows]
    study.write("mutants", "Changes to the trusted subpackages that no test detects",
                "python tools/mutants.py", escaped, started, "\n".join(lines))  # fmt: skip


if __name__ == "__main__":
    main()
