"""Finding what should not be there: canaries, and whatever an object leads to."""

import gc
import re
import types

import numpy as np
import pytest

CANARY = "CANARY"
ODD = 77317731


def reachable(root):
    """Every object the root leads to, without classes, modules and functions.

    Follows the garbage collector, slots, dictionaries and `base` of arrays: a view keeps the
    buffer it was cut from alive, and the collector does not see it.
    """
    skipped = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, property)
    seen, queue = {}, [root]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, skipped):
            continue
        seen[id(item)] = item
        queue.extend(gc.get_referents(item))
        queue.extend(getattr(item, "__dict__", {}).values())
        for kind in type(item).__mro__:
            names = getattr(kind, "__slots__", ())
            for slot in [names] if isinstance(names, str) else names:
                # a slot starting with two underscores is stored under its mangled name
                mangled = f"_{kind.__name__.lstrip('_')}{slot}"
                queue.append(getattr(item, slot, None))
                queue.append(getattr(item, mangled, None))
        if isinstance(item, np.ndarray) and item.base is not None:
            queue.append(item.base)
    return list(seen.values())


def has_canary(item):
    if isinstance(item, str):
        return CANARY in item
    if isinstance(item, bytes | bytearray):
        return CANARY.encode() in item
    if isinstance(item, int | np.integer):
        return int(item) == ODD
    if isinstance(item, np.ndarray) and item.dtype != object:
        return CANARY.encode() in item.tobytes() or bool(np.any(np.asarray(item == ODD)))
    return False


def check_refusal(call, error, words, leave_out=(CANARY, "7731")):
    """The sentences of the `error` that `call` raises, with `words` and no cell of the data."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    sentences = re.findall(r"[.!?] +[A-Z]", message)
    assert len(sentences) <= 2, f"more than three sentences: {message}"
    assert [word for word in words if word not in message] == [], message
    # the chain is printed with the message, so it must be silent too
    error = caught.value
    while error is not None:
        assert not any(cell in str(error) for cell in leave_out)
        error = error.__cause__ or error.__context__
    return message
