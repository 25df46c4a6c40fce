"""Null tables drawn by the tests are kept for the session only, away from the user's own."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _tables(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIVRANK_CACHE", str(tmp_path_factory.mktemp("tables")))
        yield
