"""A function is the tool and its signature is the schema.

`@tool` reads a function's name, docstring (Google style) and annotations; `as_tool` also reads OpenAI tool
dicts, bare `{"name", "parameters"}` schemas, Anthropic `input_schema` and MCP `inputSchema`. Schemas are made by
pydantic, so `Annotated`, `Literal`, enums, optional and default values, nested models, dataclasses and TypedDicts
work. A tool does not run anything here: worlds and engines do.

Example:
    >>> @tool
    ... def get_order(order_id: str, verbose: bool = False) -> dict:
    ...     '''Look up an order by id.
    ...
    ...     Args:
    ...         order_id: Id of the order, for example A-17.
    ...     '''
    >>> get_order.parameters["required"], get_order.parameters["properties"]["order_id"]["description"]
    (['order_id'], 'Id of the order, for example A-17.')
"""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from whileai_kernel.errors import ParameterError, WhileaiError, describe, unknown_name

__all__ = ["Kind", "Tool", "as_tool", "as_tools", "tool"]

Kind = Literal["read", "write", "generic"]
KINDS = ("read", "write", "generic")
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


@dataclass(frozen=True)
class Tool:
    """What an agent may call.

    Attributes:
        name: Name in calls.
        description: What it does, for the model.
        parameters: JSON schema of the arguments; always an object schema.
        returns: JSON schema of the result, or `None` when undeclared.
        kind: `read` changes nothing, `write` changes state, `generic` touches no state; `None` is undeclared.
        fn: The function, or `None` for a tool known by schema alone.
        is_stub: The function has no body (`...`, `pass`, a docstring or `raise NotImplementedError`), so that a
            mock world answers in its place.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    returns: dict[str, Any] | None = None
    kind: Kind | None = None
    fn: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    is_stub: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ParameterError(
                f"{self.name!r:.80} is not a tool name", why="letters, digits, _ . : / - only, 1 to 128"
            )
        if self.kind is not None and self.kind not in KINDS:
            unknown_name(f"kind of tool {self.name}", self.kind, KINDS)
        if not isinstance(self.parameters, Mapping) or self.parameters.get("type", "object") != "object":
            raise ParameterError(f"tool {self.name}: parameters must be a JSON schema of an object")
        if self.fn is not None:
            for attribute in functools.WRAPPER_ASSIGNMENTS:
                if hasattr(self.fn, attribute):
                    object.__setattr__(self, attribute, getattr(self.fn, attribute))
            object.__setattr__(self, "__wrapped__", self.fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function of the tool."""
        if self.fn is None:
            raise ParameterError(
                f"tool {self.name} has no function", why="it was given as a schema", fix="give a function"
            )
        return self.fn(*args, **kwargs)

    def to_openai(self) -> dict[str, Any]:
        """Return the OpenAI tool dict; `x-kind` and `x-returns` carry what that shape cannot."""
        out: dict[str, Any] = {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }
        if self.kind is not None:
            out["x-kind"] = self.kind
        if self.returns is not None:
            out["x-returns"] = self.returns
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        # A decorated function is shadowed by its Tool under the same name, so such a Tool is found by that name.
        module, name = getattr(self.fn, "__module__", None), getattr(self.fn, "__qualname__", "")
        if module in sys.modules and _found(sys.modules[module], name) is self:
            return _import, (module, name)
        return Tool, (self.name, self.description, self.parameters, self.returns, self.kind, self.fn, self.is_stub)


def _import(module: str, name: str) -> Any:
    return _found(importlib.import_module(module), name)


def _found(module: Any, name: str) -> Any:
    return functools.reduce(lambda thing, part: getattr(thing, part, None), name.split("."), module)


@overload
def tool(fn: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    fn: None = None, /, *, name: str | None = None, description: str | None = None, kind: Kind | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    kind: Kind | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, as `@tool` or `@tool(kind="write")`.

    Args:
        fn: The function. Every parameter needs an annotation that has a JSON schema (none means any value).
        name: Name in calls; the function's name by default.
        description: The docstring without its sections by default.
        kind: `read`, `write` or `generic`; undeclared by default.

    Raises:
        ParameterError: A parameter is positional-only or `*args`/`**kwargs`, or an annotation has no schema.
    """
    if fn is None:
        return lambda f: _from_function(f, name=name, description=description, kind=kind)
    return _from_function(fn, name=name, description=description, kind=kind)


def as_tools(items: Iterable[Any] | None) -> list[Tool]:
    """Return tools from a mixed list, in order.

    Raises:
        ParameterError: An item is no tool, or two have one name.
    """
    if isinstance(items, Mapping | str) or callable(items):
        raise ParameterError("tools must be a list", fix="pass tools=[...]")
    tools = [as_tool(item) for item in items or ()]
    names = [t.name for t in tools]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ParameterError(f"two tools are named {twice[0]!r}", why="calls are matched by name", fix="rename one")
    return tools


def as_tool(item: Any) -> Tool:
    """Return a tool from a Tool, a function, or a schema dict (OpenAI, bare, Anthropic, MCP).

    Raises:
        ParameterError: The item is none of these.
    """
    if isinstance(item, Tool):
        return item
    if isinstance(item, Mapping):
        return _from_mapping(item)
    if callable(item):
        return _from_function(item)
    raise ParameterError(
        f"cannot make a tool from {type(item).__name__}",
        why="a tool is a function, an OpenAI tool dict, or a schema with a name",
        fix="decorate a function with @wai.tool",
    )


def _from_mapping(item: Mapping[str, Any]) -> Tool:
    inner = item.get("function", item)
    if not isinstance(inner, Mapping):
        raise ParameterError("the tool's 'function' must be an object", fix="{'type': 'function', 'function': {...}}")
    name = inner.get("name") or inner.get("title")
    if not name:
        raise ParameterError("the tool has no name", why=f"its keys are {', '.join(map(str, inner))}", fix="add 'name'")
    keys = ("parameters", "input_schema", "inputSchema")
    schema = next((inner[k] for k in keys if inner.get(k) is not None), None)
    if schema is None:
        bare = inner.get("type") == "object" and "properties" in inner
        schema = {k: v for k, v in inner.items() if k not in ("name", "x-kind", "x-returns")} if bare else {}
    if not isinstance(schema, Mapping):
        raise ParameterError(f"tool {name}: parameters must be a JSON schema, not {type(schema).__name__}")
    parameters = {"type": "object", "properties": {}, **schema}
    returns = item.get("x-returns") or inner.get("x-returns") or inner.get("outputSchema")
    return Tool(
        name=name,
        description=str(inner.get("description") or ""),
        parameters=parameters,
        returns=dict(returns) if isinstance(returns, Mapping) else None,
        kind=item.get("x-kind") or inner.get("x-kind") or item.get("kind") or inner.get("kind"),
    )


def _from_function(
    fn: Callable[..., Any], name: str | None = None, description: str | None = None, kind: Kind | None = None
) -> Tool:
    plain = fn
    while isinstance(plain, functools.partial):
        plain = plain.func
    label = str(name or getattr(plain, "__name__", type(plain).__name__))
    try:
        signature = inspect.signature(fn)
        typed = plain if inspect.isroutine(plain) else type(plain).__call__
        hints = {k: _pydantic_type(v) for k, v in typing.get_type_hints(typed, include_extras=True).items()}
    except Exception as err:  # annotations as text are code, which may raise anything
        raise ParameterError(
            f"tool {label}: its signature cannot be read", why=describe(err), fix="annotate with names that exist"
        ) from err
    summary, arg_docs = _docstring(inspect.getdoc(plain) or "")
    return Tool(
        name=label,
        description=description if description is not None else summary,
        parameters=_parameters(label, signature, hints, arg_docs),
        returns=_returns(label, hints.get("return", Any)),
        kind=kind,
        fn=fn,
        is_stub=_is_stub(plain),
    )


def _parameters(
    label: str, signature: inspect.Signature, hints: Mapping[str, Any], arg_docs: Mapping[str, str]
) -> dict[str, Any]:
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for name, param in signature.parameters.items():
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD, param.POSITIONAL_ONLY):
            raise ParameterError(
                f"tool {label}: parameter {name!r} cannot be given by name",
                why="models call tools with named arguments",
                fix="use ordinary parameters",
            )
        annotation = hints.get(name, Any)
        default = ... if param.default is inspect.Parameter.empty else param.default
        metadata = getattr(annotation, "__metadata__", ())
        notes = [m if isinstance(m, str) else getattr(m, "description", None) for m in metadata]
        text = next((note for note in notes if note), arg_docs.get(name))
        # pydantic refuses field names with a leading underscore, so every field has an alias and a plain name.
        fields[f"p{len(fields)}"] = (annotation, Field(default=default, alias=name, description=text))
    try:
        model = create_model(label or "tool", __config__=ConfigDict(arbitrary_types_allowed=False), **fields)
        schema = model.model_json_schema(by_alias=True)
    except Exception as err:
        raise _no_schema(label, "parameters", err) from err
    schema = _clean(schema)
    schema.pop("title", None)
    return {"type": "object", "properties": schema.pop("properties", {}), **schema}


def _returns(label: str, annotation: Any) -> dict[str, Any] | None:
    if annotation in (Any, inspect.Signature.empty):
        return None
    from pydantic import TypeAdapter

    try:
        schema: dict[str, Any] = _clean(TypeAdapter(annotation).json_schema(mode="serialization"))
    except Exception as err:
        raise _no_schema(label, "return annotation", err) from err
    return schema


def _no_schema(label: str, part: str, err: Exception) -> WhileaiError:
    return ParameterError(
        f"tool {label}: its {part} cannot become a JSON schema",
        why=str(err).splitlines()[0][:300],
        fix="annotate with JSON types, Literal, enums, dataclasses, TypedDicts or pydantic models",
    )


def _clean(schema: Any) -> Any:
    """Drop the titles that pydantic makes up from field names; a model's own title and `$defs` stay readable."""
    if isinstance(schema, dict):
        out = {}
        for key, value in schema.items():
            if key == "properties" and isinstance(value, dict):
                out[key] = {
                    k: _clean({x: y for x, y in v.items() if x != "title"} if isinstance(v, dict) else v)
                    for k, v in value.items()
                }
            else:
                out[key] = value if key in ("default", "const", "enum", "examples") else _clean(value)
        return out
    return [_clean(v) for v in schema] if isinstance(schema, list) else schema


def _pydantic_type(annotation: Any) -> Any:
    """Return the annotation with `typing.TypedDict` classes rebuilt as the kind that pydantic reads on Python 3.11."""
    if sys.version_info >= (3, 12):
        return annotation
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and typing.is_typeddict(annotation):
        return _typed_dict(annotation)
    if not args or origin is Literal:
        return annotation
    if origin is typing.Annotated:
        return typing.Annotated[(_pydantic_type(args[0]), *annotation.__metadata__)]
    new: tuple[Any, ...] = tuple(a if a is Ellipsis else _pydantic_type(a) for a in args)
    if new == args:
        return annotation
    if origin in (types.UnionType, typing.Union):
        return functools.reduce(lambda a, b: a | b, new)
    return origin[new] if origin is not None else annotation


@functools.cache
def _typed_dict(cls: Any) -> Any:
    from typing_extensions import TypedDict  # a dependency of pydantic

    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {}
    for key, hint in hints.items():
        # `__required_keys__` is wrong about annotations that are text, so the hint itself comes first.
        wrap: Any = typing.Required if key in cls.__required_keys__ else typing.NotRequired
        if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            wrap, (hint,) = typing.get_origin(hint), typing.get_args(hint)
        fields[key] = wrap[_pydantic_type(hint)]
    build: Any = TypedDict
    made = build(cls.__name__, fields)
    made.__doc__ = cls.__doc__
    return made


_SECTION = re.compile(r"^(args|arguments|parameters|returns|raises|yields|examples?|notes?|attributes)\s*:\s*$", re.I)
_ARG = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


def _docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Split a Google docstring into its text and the descriptions of its arguments."""
    text: list[str] = []
    args: dict[str, str] = {}
    section, base, current = "", 0, ""
    for line in doc.splitlines():
        header = _SECTION.match(line)
        if header:
            section, current, base = header.group(1).lower(), "", 0
        elif section in ("args", "arguments", "parameters") and line.strip():
            indent = len(line) - len(line.lstrip())
            base = base or indent
            found = _ARG.match(line) if indent <= base else None
            if found:
                current = found.group(1)
                args[current] = found.group(2).strip()
            elif current:
                args[current] = f"{args[current]} {line.strip()}".strip()
        elif not section:
            text.append(line)
        elif line.strip() and not line.startswith((" ", "\t")):
            section = ""
            text.append(line)
    return "\n".join(text).strip(), args


_QUIET = {"RESUME", "NOP", "CACHE", "POP_TOP", "RETURN_GENERATOR", "COPY_FREE_VARS", "GEN_START", "STOP_ITERATION"}


def _is_stub(fn: Callable[..., Any]) -> bool:
    """Return whether a function has no body of its own: it only returns None, or raises NotImplementedError."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None:
        return False
    ops = [(i.opname, i.argval) for i in dis.get_instructions(code) if i.opname not in _QUIET]
    none = [("LOAD_CONST", None), ("RETURN_VALUE", None)]
    return ops[0] in (("RETURN_CONST", None), ("LOAD_GLOBAL", "NotImplementedError")) or ops[:2] == none
