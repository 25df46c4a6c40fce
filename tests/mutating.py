"""Archives with one field changed, and with a check that matches the change."""

import copy
import json
from hashlib import sha256


def changed(record, path, new):
    """A copy of a nested record with another value at a path."""
    record = copy.deepcopy(record)
    inner = record
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return record


def with_check(record):
    """Return a record as an archive with a new check, which any other program can compute too."""
    unchecked = {name: each for name, each in record.items() if name != "check"}
    plain = json.loads(json.dumps(unchecked), parse_float=without_point)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return json.dumps({**unchecked, "check": sha256(text.encode("ascii")).hexdigest()})


def without_point(text):
    """Return a whole number as an int, because other software writes 1.0 as 1."""
    number = float(text)
    return int(number) if number.is_integer() else number
