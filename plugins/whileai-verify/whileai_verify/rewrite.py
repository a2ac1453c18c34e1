"""Small changes to a test program, so that questions about a candidate's objects reach them across the border.

`type(x)`, `x.__class__` and `x is y` cannot be answered by a stand-in; they become calls of functions that ask the
candidate. Calls that would run the tests a second time or leave the process are dropped: the tests are collected and
run one by one.
"""

from __future__ import annotations

import ast
from typing import Any

from whileai_verify.remote import Remote
from whileai_verify.unsupported import UnsupportedError

__all__ = ["HELPERS", "rewrite"]

_INSPECT = "inspect"
_PRINTED = (("sys", "stdout"), ("sys", "stderr"))
_RUNNERS = {("unittest", "main"), ("pytest", "main"), ("sys", "exit"), ("os", "_exit"), ("doctest", "testmod")}


def _type_of(value: Any) -> Any:
    """Return the class of a candidate's object, never a built-in type: an object can only claim that."""
    if not _remote(value):
        return type(value)
    found = value._link.ask({"op": "get", "on": value._number, "name": "__class__"})
    return found if _remote(found) else Remote


def _remote(value: Any) -> bool:
    return type(value) is Remote


def _same(a: Any, b: Any) -> bool:
    return a._number == b._number if _remote(a) and _remote(b) else a is b


def _issubclass(cls: Any, parents: Any) -> bool:
    if not _remote(cls):
        return issubclass(cls, parents)
    return any(
        cls._link.ask({"op": "issubclass", "on": cls._number}, (p,)) is True
        for p in (parents if isinstance(parents, tuple) else (parents,))
    )


HELPERS = {"__type_of__": _type_of, "__same__": _same, "issubclass": _issubclass}


class _Rewriter(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1 and not node.keywords:
            return _call("__type_of__", node, node.args[0])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr == "__class__" and isinstance(node.ctx, ast.Load):
            return _call("__type_of__", node, node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot):
            return node
        same = _call("__same__", node, node.left, node.comparators[0])
        if isinstance(node.ops[0], ast.Is):
            return same
        return ast.copy_location(ast.UnaryOp(ast.Not(), same), node)


def _call(name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(name, ast.Load()), at), list(args), []), at)


def _dotted(node: ast.AST) -> tuple[str, ...]:
    """Return `("a", "b")` for `a.b`, `()` for what is no dotted name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return (*before, node.attr) if before else ()
    return ()


def _runs_tests(node: ast.stmt) -> bool:
    """Return whether a statement starts the tests or ends the process: `unittest.main()`, `sys.exit(0)`."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    name = _dotted(node.value.func)
    return name in _RUNNERS or name in (("exit",), ("quit",))


def _is_main_block(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _refuse(tree: ast.Module, names: set[str]) -> None:
    """Raise `UnsupportedError` for what can be seen to need the candidate's own objects or files."""
    modules = {
        (a.asname or a.name).partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
    }
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            changed = _dotted(target.value if isinstance(target, ast.Subscript) else target)
            if len(changed) > 1 and changed[0] in modules - {"solution"} and changed not in _PRINTED:
                raise UnsupportedError(f"a change of {'.'.join(changed)}, which the code does not see")
        if not isinstance(node, ast.Call):
            continue
        name = _dotted(node.func)
        used = {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
        if name[:1] == (_INSPECT,) and used & names:
            raise UnsupportedError(f"inspect.{name[-1]} on the code's objects")
        if any(k.arg in ("autospec", "spec", "spec_set") for k in node.keywords) and name[-1:] != ("Mock",):
            raise UnsupportedError("mocks that are made from the code's objects")
        if name[-2:] == ("patch", "dict") or name[-1:] == ("mock_open",) or name == ("os", "chdir"):
            raise UnsupportedError(f"{'.'.join(name[-2:])}, which the code does not see")


def rewrite(tree: ast.Module, names: set[str]) -> ast.Module:
    """Return a test program as it is run here.

    Args:
        tree: The test program.
        names: The names that the candidate's source defines, and the module's.

    Raises:
        UnsupportedError: It needs what does not cross.
    """
    _refuse(tree, names)
    body = [n for n in tree.body if not _is_main_block(n) and not _runs_tests(n)]
    changed: ast.Module = _Rewriter().visit(ast.Module(body, []))
    return ast.fix_missing_locations(changed)
