"""Null tables drawn by the tests are kept for the session only; files that take long are slow."""

import os
import warnings

import pytest

# Files that take more than three seconds: `make quick`, pytest -m "not slow", leaves them out.
SLOW = {
    "bradley_terry": "errors fit inversion likelihood",
    "consensus": "intervals kemeny",
    "distributions": "links mallows",
    "doors": (
        "aggregation btl calibration closeness covariates identity item_numbers models "
        "topk topk_cluster uniformity"
    ),
    "encode": "completion conversion encode fixed",
    "house": "examples failures leaks packaging public_facts releases sample_leaks taint visible",
    "hypotheses": "effects nulls solving tails",
    "local": "adaptive comparisons protocols uniformtest",
    "mechanisms": (
        "aggregation_mechanism aggregation_partial capped dependence every_sensitivity impossible "
        "mechanisms objective permutation row_order smoothing statistics_categories "
        "statistics_fit statistics_mallowsnull"
    ),
    "plans": "choices excess",
    "power": "fits localplans modelplans onesample severalsamples",
    "privacy": "knorm ledger_kills ledgertable netnoise sensitivity",
    "release": "kept",
    "reporting": "report vignettes",
    "results": "summaries tables",
    "util": "solvers",
}
FILES = {(room, f"test_{name}.py") for room, names in SLOW.items() for name in names.split()}


def is_slow(path):
    return (path.parent.name, path.name) in FILES


def pytest_ignore_collect(collection_path, config):
    """Do not even import slow files where they are not asked for."""
    return True if config.option.markexpr == "not slow" and is_slow(collection_path) else None


def pytest_collection_modifyitems(items):
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)


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
def _advised():
    """What is said once in a process is said, so that no test depends on which was the first."""
    from privrank.mechanisms import spend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spend._advise("row")
