"""Archives with one field changed, and with a check that matches the change."""

import copy

from privrank.release.archived import archive


def changed(record, path, new):
    """A copy of a nested record with another value at a path."""
    record = copy.deepcopy(record)
    inner = record
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return record


def with_check(record):
    """Return a record as an archive with the check of what it holds now."""
    return archive({name: each for name, each in record.items() if name != "check"})
