"""Size in statements, so that nothing is gained by dense lines."""

import ast


def statements(tree):
    """Statements below a node without docstrings; each element of a packed assignment counts."""
    return sum(
        len(node.value.elts) if is_packed(node) else 1
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node is not tree and not is_docstring(node)
    )


def is_docstring(node):
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_packed(node):
    """Whether a statement assigns a tuple to a tuple."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )
