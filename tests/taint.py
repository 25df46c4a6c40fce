"""Arrays that hold un-noised data, followed from the encoder to the noise.

Every array that an encoder stores is marked. The mark goes on to what NumPy computes of it, to
lists and arrays that it is written into, and through compiled loops and the linear solver; it ends
where noise is added, in `privrank.mechanisms.spend.draw`. A tracer sees which functions of the
package are given a marked array: as an argument, within one (a tuple, a dataclass, a partial
function, what a function closes over), or as what a method belongs to. The encoders' own classes
are closed boxes, which the public classes carry; `contracts/test_architecture.py` says who opens
them.

What is not followed: plain numbers (a count that was taken out of an array, a scalar of NumPy) and
arrays that are made of them, what generators and libraries beside NumPy return, other processes.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import sys
import warnings
from contextlib import contextmanager
from functools import partial
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import FunctionType, MethodType, ModuleType

import numpy as np
import pytest
from constantnoise import replace_everywhere

from privrank import Budget, kernels
from privrank.encode.encoded import (
    Encoded,
    EncodedChoices,
    EncodedGroups,
    EncodedSample,
    RespondentBlock,
    RespondentBlocks,
    SampleBlock,
)
from privrank.mechanisms import spend
from privrank.util import solvers

PACKAGE = Path(spend.__file__).parents[1]
PLACE = str(PACKAGE)
DRAW, SPEND = spend.draw.__code__, spend.spend_and_release.__code__
TRUSTED = {"privacy", "encode", "mechanisms", "published"}
HOLDING = {*TRUSTED, "kernels"}
BOXES = (Encoded, EncodedChoices, EncodedSample, EncodedGroups)
COPIED = ("array", "asarray", "ascontiguousarray")
MADE = ("empty", "full", "ones", "zeros")
DEEPEST = 5


class Traced(np.ndarray):
    """An array that knows whether un-noised data are in it."""

    marked = False

    def __array_finalize__(self, source):
        self.marked = getattr(source, "marked", False)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **more):
        plain = bare(more) | ({"out": tuple(map(bare, out))} if out else {})
        found = getattr(ufunc, method)(*map(bare, inputs), **plain)
        marked = any(map(is_marked, (*inputs, *out, *more.values())))
        if method == "at":
            return inputs[0].mark(marked) if isinstance(inputs[0], Traced) else None
        if not out:
            return traced(found, marked)
        for kept in out:
            if isinstance(kept, Traced):
                kept.mark(marked)
        return out[0] if isinstance(out[0], Traced) else traced(found, marked)

    def __array_function__(self, function, types, given, more):
        found = function(*bare(given), **bare(more))
        return traced(found, is_marked(given) or is_marked(more))

    def __setitem__(self, place, value):
        super().__setitem__(bare(place), bare(value))
        self.mark(is_marked(value) or is_marked(place))

    def mark(self, marked):
        """Mark the array and those it is a view of, if there is a reason to."""
        array = self
        while marked and isinstance(array, Traced):
            array.marked = True
            array = array.base


def bare(thing):
    """The same without marks, for NumPy's own functions; it shares the memory."""
    if isinstance(thing, Traced):
        return thing.view(np.ndarray)
    if type(thing) in (list, tuple):
        return type(thing)(bare(part) for part in thing)
    return {name: bare(part) for name, part in thing.items()} if type(thing) is dict else thing


def traced(thing, marked):
    """What a function returned, its arrays marked or not."""
    if isinstance(thing, np.ndarray):
        array = thing.view(Traced)
        array.marked = marked
        return array
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*(traced(part, marked) for part in thing))
    parts = type(thing) in (list, tuple)
    return type(thing)(traced(part, marked) for part in thing) if parts else thing


def is_marked(thing, depth=DEEPEST):
    """Whether there is a marked array in an argument."""
    if isinstance(thing, np.ndarray):
        return type(thing) is Traced and thing.marked
    if depth == 0 or isinstance(thing, (str, int, float, type, type(None), *BOXES)):
        return False
    return any(is_marked(part, depth - 1) for part in parts_of(thing))


def parts_of(thing):
    """What an argument holds."""
    if isinstance(thing, (list, tuple, set, frozenset)):
        return thing
    if isinstance(thing, dict):
        return thing.values()
    if dataclasses.is_dataclass(thing):
        return [getattr(thing, each.name, None) for each in dataclasses.fields(thing)]
    if isinstance(thing, partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, MethodType):
        return [thing.__self__]
    if isinstance(thing, FunctionType) and thing.__closure__:
        return [cell.cell_contents for cell in thing.__closure__ if filled(cell)]
    return []


def filled(cell):
    try:
        return cell.cell_contents is not None
    except ValueError:  # a function that is not defined yet
        return False


def subpackage_of(code):
    """The subpackage that contains the code of a function."""
    return Path(code.co_filename).relative_to(PACKAGE).parts[0]


def dotted(code):
    """A function's module and name in it."""
    module = ".".join(Path(code.co_filename).relative_to(PACKAGE).with_suffix("").parts)
    return f"{module}.{code.co_qualname.replace('.<locals>', '')}"


class Watch:
    """The codes of functions that are given marked arrays, or run between spending and release.

    `encoding` and `releasing` are the trusted code path that a reviewer reads: all that is entered
    until a model is built, and from the call of a `release_...` until it returns. What comes
    between, the plan of a fit, and what comes after sees public numbers alone.
    """

    def __init__(self):
        self.received, self.spending = set(), set()
        self.encoding, self.releasing = set(), set()
        self.boxes, self.spent = 0, False
        self.built, self.depth = False, 0

    def listen(self, frame, event, argument):
        """Look at what a function is given; listen to its lines only where noise is added."""
        code = frame.f_code
        if not code.co_filename.startswith(PLACE) or code.co_name == "<module>":
            return None
        if code not in self.received:
            count = code.co_argcount + code.co_kwonlyargcount
            count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
            given = frame.f_locals
            if any(is_marked(given.get(each)) for each in code.co_varnames[:count]):
                self.received.add(code)
        self.spent = self.spent or code is SPEND
        if self.spent:
            self.spending.add(code)
        releases = code.co_name.startswith("release_") and subpackage_of(code) in TRUSTED
        self.depth += releases
        if not self.built:
            self.encoding.add(code)
        elif self.depth:
            self.releasing.add(code)
        if releases:
            return self.release
        return self.draw if code is DRAW else None

    def draw(self, frame, event, argument):
        """What a draw returns holds noise."""
        if event == "return" and isinstance(argument, Traced):
            argument.marked = False
        return self.draw

    def release(self, frame, event, argument):
        """Where a release is returned all is drawn."""
        self.spent = self.spent and event != "return"
        self.depth -= event == "return"
        return self.release

    def outside(self):
        """Names of the functions outside the trusted subpackages, as subpackage.module.function."""
        return {dotted(code) for code in self.received if subpackage_of(code) not in TRUSTED}

    def inside(self):
        """Names of those in the trusted subpackages."""
        return {dotted(code) for code in self.received if subpackage_of(code) in TRUSTED}


def followed_for_publication(catalogue, folder):
    """What was watched in each fit of a catalogue, with secret noise and a ledger on disk."""
    forget_stored_results()
    watches = {}
    for name, case in catalogue.items():
        with pytest.MonkeyPatch.context() as patch:
            watches[name] = followed(patch, case, folder)
    return watches


def forget_stored_results():
    """Empty the caches of the package: what an earlier test has computed is not traced again."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE.name]:
        for function in vars(sys.modules[name]).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()


def followed(patch, case, folder=None):
    """What was watched while one model was built, its first variant, and fitted.

    With seed 1, or, given a folder, as for publication: with secret noise and a ledger kept there.
    """
    load_kernels()
    with warnings.catch_warnings(), watching(patch) as watch:
        warnings.simplefilter("ignore")
        model = case.build(next(iter(case.frames)))
        watch.built = True
        how = {"rng": np.random.default_rng(1)} if folder is None else paid(case, model, folder)
        case.fit(model, **how)
    return watch


def paid(case, model, folder):
    """A ledger on disk for the unit of a model; nothing protects a fit at infinite epsilon."""
    if case.options.get("epsilon") == np.inf:
        return {}
    survey = getattr(model._encoded, "design", None) or model._encoded.sample
    path = Path(folder, f"{survey.unit}.ledger")
    return {"budget": Budget(path, epsilon=1e6, delta=0.5, unit=survey.unit)}


def load_kernels():
    """Import the compiled loops, which are imported where they are used."""
    for module in pkgutil.iter_modules(kernels.__path__):
        importlib.import_module(f"privrank.kernels.{module.name}")


@contextmanager
def watching(patch):
    """Mark what encoders store, and listen to all calls of this thread, until the block ends."""
    watch = Watch()
    for box in BOXES:
        patch.setattr(box, "__init__", storing(box, box.__init__, watch))
    for name, module in list(sys.modules.items()):
        subpackage = name.removeprefix("privrank.").partition(".")[0]
        if subpackage == "kernels" and any(
            hasattr(loop, "py_func") for loop in vars(module).values()
        ):
            loops = crossed(module, watch)
            patch.setitem(sys.modules, name, loops)
            patch.setattr(kernels, name.rpartition(".")[2], loops)
        elif name.startswith("privrank.") and getattr(module, "np", None) is np:
            patch.setattr(module, "np", MAKING if subpackage in HOLDING else COPYING)
    for routine in (solvers.with_fallback, solvers.solve):
        replace_everywhere(patch, routine, passing(routine))
    before = sys.gettrace()
    sys.settrace(watch.listen)
    try:
        yield watch
    finally:
        sys.settrace(before)


def storing(box, exact, watch):
    def __init__(self, *given, **more):
        exact(self, *given, **more)
        watch.boxes += 1
        for name in box.__slots__:
            if name.startswith("_"):
                object.__setattr__(self, name, holding(getattr(self, name)))

    return __init__


def holding(thing):
    """What an encoder stores, with marks."""
    if isinstance(thing, np.ndarray):
        return traced(thing, True)
    if isinstance(thing, tuple):
        return tuple(map(holding, thing))
    if isinstance(thing, (RespondentBlock, RespondentBlocks, SampleBlock)):
        return type(thing)(*(holding(part) for part in parts_of(thing)))
    return thing


def holds_traced(source):
    if isinstance(source, np.ndarray):
        return type(source) is Traced
    return type(source) in (list, tuple) and any(map(holds_traced, source))


def copying(exact):
    """A function that copies arrays, and would leave their marks behind."""

    def function(source, *given, **more):
        found = exact(source, *given, **more)
        return traced(found, is_marked(source)) if holds_traced(source) else found

    return function


def passing(exact):
    """A routine of a library, which marks what it finds for marked arrays."""

    def function(*given, **more):
        marked = is_marked(given)
        found = exact(*given, **more)
        return traced(found, True) if marked else found

    return function


def making(exact):
    """A function that makes new arrays, which what is written into them may mark."""

    def function(*given, **more):
        return traced(exact(*given, **more), is_marked(given))

    return function


class Numpy:
    """NumPy as a module of the package sees it, with some functions that keep marks."""

    def __init__(self, kept):
        vars(self).update(kept)

    def __getattr__(self, name):
        return getattr(np, name)


COPYING = Numpy({name: copying(getattr(np, name)) for name in COPIED})
MAKING = Numpy(vars(COPYING) | {name: making(getattr(np, name)) for name in MADE})


def crossed(module, watch):
    """A module of compiled loops, which take plain arrays, as others import it.

    Its functions that are not compiled get the NumPy that keeps marks; the loops keep their own.
    """
    found = ModuleType(module.__name__)
    vars(found).update(vars(module))
    if getattr(module, "np", None) is np:
        found.np = MAKING
    for name, thing in vars(module).items():
        if hasattr(thing, "py_func"):
            setattr(found, name, crossing(thing, watch))
        elif isinstance(thing, FunctionType) and thing.__module__ == module.__name__:
            plain = FunctionType(thing.__code__, vars(found), name, thing.__defaults__)
            plain.__kwdefaults__ = thing.__kwdefaults__
            setattr(found, name, plain)
    return found


def crossing(loop, watch):
    def function(*given):
        marked = is_marked(given)
        if marked:
            watch.received.add(loop.py_func.__code__)
        for array in given:
            if isinstance(array, Traced):
                array.mark(marked)
        return traced(loop(*bare(given)), marked)

    return function
