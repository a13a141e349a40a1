"""The small faults that are put into a module, one at a time, as changes of its syntax tree.

Left alone is what decides nothing: documentation, annotations, imports, decorators, assertions, blocks for type checkers, and texts
of messages (a text with a space in it, and everything in f-strings and behind ``raise``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
_UNREAD_NAMES = frozenset(("__all__", "__slots__"))


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the field of a node, or the item of a list in it, becomes another."""

    line: int
    before: str
    after: str
    _holder: Any
    _key: str | int
    _replacement: Any

    def apply(self) -> None:
        """Change the tree that the mutant was found in. There is no way back."""
        if isinstance(self._holder, list):
            self._holder[self._key] = self._replacement
        else:
            setattr(self._holder, str(self._key), self._replacement)


def mutants(tree: ast.Module) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    return sorted(_children(tree), key=lambda mutant: mutant.line)


def _children(node: ast.AST) -> Iterator[Mutant]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _visit(item, value, index)
        elif isinstance(value, ast.AST):
            yield from _visit(value, node, name)


def _visit(node: ast.AST, holder: Any, key: str | int) -> Iterator[Mutant]:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.JoinedStr)) or _is_text(node) or _is_unread(node):
        return
    for replacement in _replacements(node):
        yield _mutant(node, holder, key, replacement)
    yield from _inside(node)
    if not isinstance(node, ast.Raise):
        yield from _children(node)


def _is_text(node: ast.AST) -> bool:
    """Documentation, and the text of a message."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def _is_unread(node: ast.AST) -> bool:
    """What only tools and the interpreter read."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in _UNREAD_NAMES for t in node.targets)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Constant(value=str() | bytes() as value):
            yield ast.Constant(value[:0] if value else type(value)(b"x".decode() if isinstance(value, str) else b"x"))
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case _:
            pass


def _inside(node: ast.AST) -> Iterator[Mutant]:
    """Changes of a field of a node."""
    match node:
        case ast.Compare():
            for index, operation in enumerate(node.ops):
                ops: list[ast.cmpop] = [*node.ops]
                ops[index] = _COMPARISONS[type(operation)]()
                yield _changed(node, "ops", ops)
        case ast.BinOp() | ast.AugAssign():
            if type(node.op) in _ARITHMETIC:
                yield _changed(node, "op", _ARITHMETIC[type(node.op)]())
        case ast.BoolOp():
            yield _changed(node, "op", ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        case ast.If() | ast.While() | ast.IfExp():
            if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
                yield _changed(node, "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension():
            for index, test in enumerate(node.ifs):
                yield _mutant(test, node.ifs, index, ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.AST()):
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield _changed(node, "value", ast.Constant(None))
        case ast.Slice():
            for bound in ("lower", "upper"):
                if getattr(node, bound) is not None:
                    yield _changed(node, bound, None)
        case ast.Call():
            yield from _arguments(node)
        case _:
            pass


def _arguments(call: ast.Call) -> Iterator[Mutant]:
    """Neighbours that change places, arguments that are 0 instead, and keywords that are not given."""
    for index, (one, other) in enumerate(zip(call.args, call.args[1:], strict=False)):
        if not isinstance(one, (ast.Starred, ast.JoinedStr)) and not isinstance(other, (ast.Starred, ast.JoinedStr)):
            yield _changed(call, "args", [*call.args[:index], other, one, *call.args[index + 2 :]])
    for index, argument in enumerate(call.args):
        if isinstance(argument, (ast.Attribute, ast.Subscript, ast.Call)):
            yield _changed(call, "args", [*call.args[:index], ast.Constant(0), *call.args[index + 1 :]])
    for index in range(len(call.keywords)):
        yield _changed(call, "keywords", [*call.keywords[:index], *call.keywords[index + 1 :]])


def _changed(node: ast.AST, field: str, value: Any) -> Mutant:
    old = getattr(node, field)
    before = _text(node)
    setattr(node, field, value)
    after = _text(node)
    setattr(node, field, old)
    return Mutant(getattr(node, "lineno", 0), before, after, node, field, value)


def _mutant(node: ast.AST, holder: Any, key: str | int, replacement: ast.AST) -> Mutant:
    return Mutant(getattr(node, "lineno", 0), _text(node), _text(replacement), holder, key, replacement)


def _text(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0]
    return text if len(text) <= 110 else f"{text[:107]}..."
