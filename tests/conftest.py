"""Null tables drawn by the tests are kept for the session only; files that take long are slow."""

import os
import pickle
import sys
import warnings
from collections import Counter

import pytest

# Files that take more than three seconds: `make quick`, pytest -m "not slow", leaves them out.
SLOW = {
    "bradley_terry": "errors fit scoretests likelihood",
    "consensus": "intervals kemeny",
    "distributions": "links mallows",
    "models": (
        "aggregation btl calibration closeness covariates identity item_numbers models "
        "topk topk_cluster uniformity"
    ),
    "fuzz": "fuzz_frames fuzz_ledgers fuzz_texts",
    "encode": "completion conversion encode fixed names",
    "contracts": (
        "audit examples failures leaks one_reading packaging public_facts releases sample_leaks "
        "taint visible"
    ),
    "hypotheses": "effects nulls solving tails",
    "local": "adaptive comparisons protocols uniform",
    "mechanisms": (
        "aggregation_mechanism aggregation_partial capped dependence every_sensitivity impossible "
        "mechanisms objective permutation row_order smoothing statistics_categories "
        "statistics_fit statistics_mallowsnull"
    ),
    "plans": "choices excess",
    "power": "fits localplans modelplans onesample severalsamples",
    "privacy": "knorm ledger_kills ledgertable netnoise sensitivity",
    "release": "fiterror",
    "reporting": "report vignettes",
    "results": "summaries tables",
    "util": "solvers",
}
FILES = {(folder, f"test_{name}.py") for folder, names in SLOW.items() for name in names.split()}
# Of the guards of the data among them `make quick` runs every twelfth case of each test.
GUARDS = {("contracts", "test_leaks.py"), ("contracts", "test_visible.py")}
EVERY = 12


def place(path):
    return path.parent.name, path.name


def pytest_ignore_collect(collection_path, config):
    """Do not even import slow files where they are not asked for."""
    slow = place(collection_path) in FILES - GUARDS
    return True if config.option.markexpr == "not slow" and slow else None


def pytest_collection_modifyitems(items):
    met = Counter()
    for item in items:
        where = place(item.path)
        number = met[where, item.originalname]
        met[where, item.originalname] += 1
        fast = where in GUARDS and number % EVERY == 0
        if where in FILES and not fast:
            item.add_marker(pytest.mark.slow)


# Where fits that would not identify their worths are refused as they are for users.
AS_FOR_USERS = {
    ("plans", "test_identifiable.py"),
    ("models", "test_contributions.py"),
    ("contracts", "test_audit.py"),
    ("contracts", "test_docs.py"),
    ("contracts", "test_examples.py"),
}


@pytest.fixture(autouse=True)
def _small_surveys(request, monkeypatch):
    """Fits of surveys too small to identify their worths spend: most tests are about the rest."""
    if place(request.node.path) not in AS_FOR_USERS:
        from privrank import btl

        monkeypatch.setattr(btl, "check_will_identify", lambda design, plan, allowed: None)


@pytest.fixture(autouse=True)
def _figures():
    """Figures that a test leaves open are closed: pyplot keeps them, and warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True, scope="session")
def _tables(tmp_path_factory):
    """One folder for all processes of pytest-xdist, each of which draws on one core."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        if "PYTEST_XDIST_WORKER" in os.environ:
            folder = folder.parent
            patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        patch.setenv("PRIVRANK_CACHE", str(folder / "tables"))
        yield


@pytest.fixture(autouse=True, scope="session")
def _points():
    """Points of noise bodies are drawn once for each state of a public generator.

    A result draws them anew for each of its tables; they and the state after them are the same.
    """
    from privrank.hypotheses import tails

    drawn, honest = {}, tails.body_points

    def body_points(distribution, draws, rng):
        key = type(distribution), distribution.items, draws, pickle.dumps(rng.bit_generator.state)
        if key not in drawn:
            if sum(points.size for points, _ in drawn.values()) > 2**24:
                drawn.clear()
            drawn[key] = honest(distribution, draws, rng), rng.bit_generator.state
        points, rng.bit_generator.state = drawn[key]
        return points.copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tails, "body_points", body_points)
        yield


@pytest.fixture(autouse=True, scope="session")
def _advised():
    """What is said once in a process is said, so that no test depends on which was the first."""
    from privrank.mechanisms import spend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spend._advise("row")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session of Spark whose workers find the package, where Spark is installed."""
    pytest.importorskip("pyspark", reason="pip install privrank[spark]")
    from pyspark.sql import SparkSession

    import privrank

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(privrank.__file__)))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
        session = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
        yield session
        session.stop()
