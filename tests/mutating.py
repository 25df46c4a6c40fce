"""Archives with one field changed."""

import copy


def changed(record, path, new):
    """A copy of a nested record with another value at a path."""
    record = copy.deepcopy(record)
    inner = record
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return record
