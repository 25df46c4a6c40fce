"""A message is whole where it is raised: no caller hands a function a part of a sentence for it.

A parameter takes a part of a sentence if it is text, if the function does nothing with it but to
put it into the message of an error, and if some caller passes words for it: text with a space
between words, written at the call or assigned to the name that is passed. Values such as the name
of an argument have no spaces.
"""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "privrank"
_WORDS = re.compile(r"[a-z] |, | [a-z]")


def modules():
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 100
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in paths}


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def loads(tree, name):
    every = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return {node for node in every if isinstance(node.ctx, ast.Load)}


def in_messages(function, name):
    """The uses of a name inside texts that are put together for an error."""
    found = set()
    for node in ast.walk(function):
        value = node.exc if isinstance(node, ast.Raise) else getattr(node, "value", None)
        if not isinstance(node, ast.Raise | ast.Return) or not isinstance(value, ast.Call):
            continue
        if isinstance(node, ast.Return) and not ast.unparse(value.func).endswith("Error"):
            continue
        for part in ast.walk(value):
            if isinstance(part, ast.JoinedStr | ast.BinOp):
                found |= loads(part, name)
    return found


def message_parts(tree):
    """The parameters that only go into messages: by function, with place and name."""
    for function in functions(tree):
        listed = [*function.args.posonlyargs, *function.args.args]
        bound = listed[:1] and listed[0].arg in ("self", "cls")
        for argument in [*listed, *function.args.kwonlyargs]:
            hint = argument.annotation
            if hint is None or ast.unparse(hint) not in ("str", "str | None"):
                continue
            used = loads(function, argument.arg)
            if used and used == in_messages(function, argument.arg):
                place = listed.index(argument) - bool(bound) if argument in listed else None
                yield function.name, place, argument.arg


def worded(node, known):
    """Whether an argument is text with a space, or a name that such a text was assigned to."""
    if isinstance(node, ast.Name):
        return any(worded(value, {}) for value in known.get(node.id, ()))
    words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return any(isinstance(word, str) and _WORDS.search(word) for word in words)


def assigned(tree):
    """What names are assigned to, in a module or a function."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known.setdefault(node.targets[0].id, []).append(node.value)
    return known


def fragments(trees):
    """Where a part of a sentence is passed: module and line, function and parameter."""
    parts = {}
    for tree in trees.values():
        for function, place, argument in message_parts(tree):
            parts.setdefault(function, set()).add((place, argument))
    found = set()
    for module, tree in trees.items():
        whole = {k: v for k, v in assigned(tree).items() if k.isupper() or k.startswith("_")}
        for scope in [tree, *functions(tree)]:
            known = whole | (assigned(scope) if scope is not tree else {})
            for call in (node for node in ast.walk(scope) if isinstance(node, ast.Call)):
                named = call.func.attr if isinstance(call.func, ast.Attribute) else None
                called = getattr(call.func, "id", named)
                for place, argument in parts.get(called, ()):
                    passed = [word.value for word in call.keywords if word.arg == argument]
                    if place is not None:
                        passed += call.args[place : place + 1]
                    if any(worded(value, known) for value in passed):
                        found.add(f"{module}:{call.lineno} {called}({argument}=)")
    return found


def test_no_caller_passes_a_part_of_a_sentence():
    assert fragments(modules()) == set()


HELPER = """
def check(value: object, rule: str, name: str) -> None:
    if not value:
        raise ValueError(f"{name} must {rule}.")
"""


@pytest.mark.parametrize(
    ("code", "argument"),
    [
        ("check(x, 'have one link', 'links')", "rule"),
        ("check(x, name='links', rule=f'have {m} links')", "rule"),
        ("def f(x):\n    rule = 'have one link'\n    check(x, rule, 'links')", "rule"),
        ("_RULE = 'have one link'\ndef f(x):\n    check(x, _RULE, 'links')", "rule"),
        ("checks.check(x, 'fit', 'the links')", "name"),
    ],
)
def test_a_planted_part_is_found(code, argument):
    found = fragments({"planted.py": ast.parse(HELPER + code)})
    assert len(found) == 1 and found.pop().endswith(f"check({argument}=)")


@pytest.mark.parametrize(
    "code",
    [
        HELPER + "check(x, 'fit', 'links')",
        "def title(text: str) -> str:\n    return f'{text}.'\ntitle('A title of words')",
        "def look(text: str) -> None:\n    if text not in known:\n"
        "        raise ValueError(f'{text} is unknown.')\nlook('two words')",
        "def fail(text: str) -> None:\n    raise ValueError(text)\nfail('A sentence is here.')",
    ],
)
def test_values_and_whole_sentences_are_none(code):
    assert fragments({"planted.py": ast.parse(code)}) == set()
