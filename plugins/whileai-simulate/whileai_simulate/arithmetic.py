"""The calculator of the mock world: numbers, + - * / %, parentheses, and nothing else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

__all__ = ["arithmetic"]

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Mod: operator.mod,
}  # fmt: skip


def arithmetic(text: str) -> float | int:
    """Calculate an expression of numbers, + - * / % and parentheses, at most 200 characters.

    Raises:
        ValueError: The text holds anything else.
    """
    if len(text) > 200:
        raise ValueError("the expression is too long")

    def walk(node: ast.AST) -> float | int:
        if isinstance(node, ast.Expression):
            return walk(node.body)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value  # type: ignore[return-value]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))  # type: ignore[no-any-return]
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](walk(node.operand))  # type: ignore[no-any-return]
        raise ValueError("only numbers, + - * / % and parentheses")

    value = walk(ast.parse(text, mode="eval"))
    return round(value, 10) if isinstance(value, float) else value
