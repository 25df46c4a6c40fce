"""Equal seeds give the releases that they have always given, for every fit of the catalogue.

A release changes where an option, a sensitivity or the order of draws does. Who means to change one
writes the table anew, `python tests/contracts/test_releases.py`, and says why.
"""

import csv
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
TABLE = TESTS / "reference" / "releases.csv"
sys.path.insert(0, str(TESTS))

from catalogue import CATALOGUE  # noqa: E402


def digest(case):
    """The first 16 hexadecimal digits of what is released: whole numbers and the order of ties."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.build(next(iter(case.frames)))
        release = case.fit(model, rng=np.random.default_rng(1)).release
    values = {name: np.asarray(value).tolist() for name, value in release.values.items()}
    text = json.dumps([sorted(values.items()), list(map(int, release.tie_break))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_releases_are_those_of_the_table():
    with TABLE.open(encoding="utf-8", newline="") as file:
        expected = dict(list(csv.reader(file))[1:])
    assert len(expected) > 300
    found = {name: digest(case) for name, case in CATALOGUE.items()}
    assert {name: found[name] for name in found if found[name] != expected.get(name)} == {}
    assert expected.keys() == found.keys()


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["fit", "release"])
        rows.writerows((name, digest(case)) for name, case in CATALOGUE.items())
