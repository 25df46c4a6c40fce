"""Faults that are planted in a function of the package, to see that a check finds them."""

import inspect
import sys
import textwrap


def planted(monkeypatch, owner, name, old, new):
    """Run a function, a method or a property with other text in one place of its source."""
    honest = getattr(owner, name)
    honest = getattr(honest, "fget", honest)
    source, module = inspect.getsource(honest), sys.modules[honest.__module__]
    assert source.count(old) == 1, f"{name} has no such place any more: {old}"
    changed, place = textwrap.dedent(source.replace(old, new)), {}
    exec(compile(changed, module.__file__, "exec"), vars(module), place)
    monkeypatch.setattr(owner, name, place[name])
