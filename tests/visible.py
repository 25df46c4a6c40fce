"""Everything an object shows: its text, its tables, its attributes and what its methods return."""

import dataclasses
import hashlib
import inspect
import warnings
from functools import partial

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")

from matplotlib import collections, image, lines, pyplot, text
from matplotlib.figure import Figure

SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)


# Simulations of seconds, from public numbers; and fresh draws of a public model.
SLOW, RANDOM = {"detectable_effect"}, {"rvs"}


def everything(thing, *, slow=False):
    """A mapping from where to what, of strings, of all that can be seen of an object.

    Public attributes, public methods that need no argument, what notebooks show, and the fields of
    dataclasses, private ones included; so on with whatever these are or return. Figures and long
    simulations if `slow`.
    """
    found = {}
    _look("", thing, found, {}, partial(_shown, slow=slow))
    return found


def stored(thing):
    """What an object holds, as such a mapping: fields, texts and archives, and nothing computed."""
    found = {}
    _look("", thing, found, {}, _held)
    return found


def differences(one, other):
    """Where two such mappings differ, with both texts."""
    return {
        where: (one.get(where, "(nothing)"), other.get(where, "(nothing)"))
        for where in sorted({*one, *other})
        if one.get(where) != other.get(where)
    }


def _fields(thing):
    known = dataclasses.is_dataclass(thing) and not isinstance(thing, type)
    return {field.name for field in dataclasses.fields(thing)} if known else set()


def _shown(thing, *, slow):
    public = {name for name in dir(thing) if not name.startswith("_") or "_repr_" in name}
    long = {name for name in public if name.startswith("plot") or name in SLOW}
    return (_fields(thing) | public) - {"__repr__"} - RANDOM - (set() if slow else long)


def _held(thing):
    return _fields(thing) | ({"to_json"} & set(dir(thing)))


def _look(where, thing, found, seen, names):
    if isinstance(thing, SCALARS):
        found[where] = f"{type(thing).__name__} {thing!r}"
        return
    if id(thing) in seen:
        found[where] = f"as {seen[id(thing)][0]}"
        return
    # the object is kept, so that its address is not given to another
    seen[id(thing)] = (where, thing)
    found[where] = type(thing).__name__
    if isinstance(thing, np.ndarray):
        found[where] = f"{thing.dtype}{thing.shape} {_cells(thing)}"
    elif isinstance(thing, pd.DataFrame | pd.Series):
        found[where] = f"{_axes(thing)} {_cells(thing.to_numpy(dtype=object))}"
    elif isinstance(thing, pd.Index):
        found[where] = f"{thing.dtype} {thing.names} {list(thing)!r}"
    elif isinstance(thing, dict) or hasattr(thing, "keys"):
        found[where] = f"{type(thing).__name__} {list(thing.keys())!r}"
        for key in thing.keys():
            _look(f"{where}[{key!r}]", thing[key], found, seen, names)
    elif isinstance(thing, tuple | list):
        found[where] = f"{type(thing).__name__} of {len(thing)}"
        for place, item in enumerate(thing):
            _look(f"{where}[{place}]", item, found, seen, names)
    elif isinstance(thing, set | frozenset):
        found[where] = f"{type(thing).__name__} {sorted(map(repr, thing))}"
    elif isinstance(thing, Figure):
        found[where] = _drawing(thing)
    elif type(thing).__module__.split(".")[0] == "privrank":
        _look_inside(where, thing, found, seen, names)
    elif not callable(thing):
        found[where] = f"{type(thing).__name__} {thing}"


def _look_inside(where, thing, found, seen, names):
    found[f"{where}.__repr__"], found[f"{where}.__str__"] = repr(thing), str(thing)
    for name in sorted(names(thing)):
        place = f"{where}.{name}"
        try:
            value = getattr(thing, name)
            if callable(value):
                if not _needs_nothing(value):
                    continue
                place += "()"
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    value = value()
                found[f"{place} warns"] = repr(said(caught))
        except Exception as error:  # an error is an answer, and has to be the same
            found[place] = f"{type(error).__name__}: {error}"
            continue
        _look(place, value, found, seen, names)


def said(caught):
    """The warnings that were caught, without where they come from."""
    return [(each.category.__name__, str(each.message)) for each in caught]


def _needs_nothing(method):
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return False
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in optional]
    return not needed and not isinstance(method, type)


def _cells(array):
    if array.size > 500:
        text = array.tobytes() if array.dtype != object else repr(array.tolist()).encode()
        return hashlib.sha256(text).hexdigest()
    return repr(array.tolist())


def _axes(table):
    columns = table.columns if isinstance(table, pd.DataFrame) else [table.name]
    kinds = table.dtypes if isinstance(table, pd.DataFrame) else [table.dtype]
    return (
        f"{list(columns)!r} {[str(kind) for kind in kinds]} {table.index.names} "
        f"{list(table.index)!r} {table.attrs!r}"
    )


def _drawing(figure):
    drawn = []
    for artist in figure.findobj():
        if isinstance(artist, text.Text):
            drawn.append(artist.get_text())
        elif isinstance(artist, lines.Line2D):
            drawn.append(repr(np.asarray(artist.get_xydata()).tolist()))
        elif isinstance(artist, image.AxesImage):
            drawn.append(repr(np.asarray(artist.get_array()).tolist()))
        elif isinstance(artist, collections.LineCollection):
            drawn.append(repr([np.asarray(part).tolist() for part in artist.get_segments()]))
    pyplot.close(figure)
    return "\n".join(drawn)
