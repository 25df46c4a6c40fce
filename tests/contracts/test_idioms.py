"""Plain statements: idioms that pack several steps into one are counted, and kept at zero.

The listed exceptions repeat a value as often as a count says. Each rule is tried on a planted
example as well, so a rule that finds nothing because it looks at nothing fails.
"""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "privrank"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}

# Sequences that are repeated by a number, not switched by a condition.
REPEATED = {
    ("bradley_terry/modelmatrix.py", "[None] * size"),
    ("bradley_terry/modelmatrix.py", "[0.5 * (low + high)] * size"),
    ("hypotheses/nulls.py", "(1.0 / k,) * k"),
    ("mechanisms/closeness.py", "[_EACH / groups] * groups"),
    ("hypotheses/nulls.py", "(1.0 / k,) * k"),
    ("mechanisms/closeness.py", "[_EACH / groups] * groups"),
    ("results/tables.py", "width * '='"),
    ("results/tables.py", "width * '-'"),
}

MAX_MEMBERS, MAX_MEMBERS_OF_RESULTS, MAX_PARAMETERS = 30, 45, 8


def is_text_or_sequence(node):
    literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return literal or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple)


def is_number(node):
    """Whether a factor is a literal, a length or arithmetic, not a condition or a name."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return isinstance(node, ast.Constant | ast.BinOp) or (call and node.func.id == "len")


def packed(node, _):
    """A tuple assigned to a tuple, unless it is a swap."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    return sorted(map(ast.unparse, target.elts)) != sorted(map(ast.unparse, node.value.elts))


def switched(node, _):
    """A text or sequence times anything but a literal, a length or arithmetic."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = ((node.left, node.right), (node.right, node.left))
    return any(is_text_or_sequence(one) and not is_number(other) for one, other in sides)


def nested(node, _):
    """A conditional expression directly in a conditional expression."""
    inside = (node.test, node.body, node.orelse) if isinstance(node, ast.IfExp) else ()
    return any(isinstance(part, ast.IfExp) for part in inside)


def expanded(node, _):
    """Two stars before anything but a name, in a call."""
    keywords = node.keywords if isinstance(node, ast.Call) else ()
    expressions = [keyword.value for keyword in keywords if keyword.arg is None]
    return any(not isinstance(value, ast.Name | ast.Attribute) for value in expressions)


def indexed(node, _):
    """A tuple that is written out and indexed at once."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple)


def hidden(node, parents):
    """An assignment within an expression, but for tests of ``if`` and ``while``."""
    if not isinstance(node, ast.NamedExpr):
        return False
    while isinstance(parents.get(node), ast.expr):
        node = parents[node]
    around = parents.get(node)
    return not (isinstance(around, ast.If | ast.While) and around.test is node)


# each rule with an example that it has to find
RULES = {
    packed: "a, b = f(x), 3",
    switched: "text = ', x' * bool(x)",
    nested: "x = 1 if a else 2 if b else 3",
    expanded: "f(**{name: 1})",
    indexed: "x = ('no', 'yes')[flag]",
    hidden: "x = [y for y in z if (w := f(y))]",
}


def parents_of(tree):
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def found(rule, path, tree):
    parents = parents_of(tree)
    texts = [ast.unparse(node) for node in ast.walk(tree) if rule(node, parents)]
    return [text for text in texts if (path, text) not in REPEATED]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_statement_packs_several_steps(rule):
    assert found(rule, "planted", ast.parse(RULES[rule])) != []
    faults = {path: found(rule, path, tree) for path, tree in TREES.items()}
    assert {path: texts for path, texts in faults.items() if texts} == {}


def test_every_exception_is_needed():
    there = {
        (path, ast.unparse(node))
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if switched(node, None)
    }
    assert there == REPEATED


def test_a_swap_and_a_loop_condition_are_plain():
    assert found(packed, "", ast.parse("a, b = b, a")) == []
    assert found(hidden, "", ast.parse("while chunk := read():\n    use(chunk)")) == []
    assert found(switched, "", ast.parse("line = '-' * len(title)")) == []


def test_each_public_name_is_defined_once():
    places = defaultdict(set)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path)
    assert len(places) > 800
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def members(node):
    """Fields and methods of a class, without those that Python itself calls."""
    fields = [one.target.id for one in node.body if isinstance(one, ast.AnnAssign)]
    methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
    return [name for name in (*fields, *methods) if not name.startswith("__")]


def test_classes_are_small():
    sizes = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                result = path.startswith("results/") and node.name.endswith("Result")
                limit = MAX_MEMBERS_OF_RESULTS if result else MAX_MEMBERS
                sizes[node.name] = (len(members(node)), limit)
    print({name: size for name, (size, _) in sizes.items() if size > MAX_MEMBERS})
    assert len(sizes) > 100
    assert {name: pair for name, pair in sizes.items() if pair[0] > pair[1]} == {}


# Functions with more arguments than eight. Models, their `fit` and public readers name all of a
# survey's facts; what stands behind them in `encode` and `plans` takes the same facts.
MANY_PARAMETERS = {
    *("__init__", "fit", "as_choices", "as_comparisons", "as_rankings"),
    *("contribution_tradeoff", "encode_comparisons", "encode_samples", "plan_comparison"),
}


def parameters(node):
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return [one.arg for one in every if one.arg not in ("self", "cls")]


def test_calls_are_short():
    many = {
        node.name: len(parameters(node))
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and len(parameters(node)) > MAX_PARAMETERS
    }
    print(many)
    assert many.keys() == MANY_PARAMETERS
