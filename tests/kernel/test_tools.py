"""A function is the tool and its signature the schema: each is valid, and agrees with what Python accepts."""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import json
import pickle
import sys
import textwrap
import types
import typing
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from whileai_kernel.errors import ParameterError
from whileai_kernel.tools import Tool, as_tool, as_tools, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Item(BaseModel):
    """One line of an order."""

    sku: str
    count: int = Field(default=1, ge=1)
    parent: Item | None = None


class Order(BaseModel):
    items: list[Item]
    colour: Colour = Colour.RED


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Address(TypedDict):
    """Where to."""

    street: str
    zip: NotRequired[str]


class Loose(TypedDict, total=False):
    a: Required[int]
    b: list[Address]


class Node(TypedDict):
    children: list[Node]


def both_ways(schema: dict, annotation: Any, good: list, bad: list) -> None:
    """Values are accepted by the schema exactly when pydantic accepts them (strictly: JSON has no coercion)."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema)
    adapter = TypeAdapter(annotation)
    for value in good:
        assert validator.is_valid(value), value
        adapter.validate_json(json.dumps(value), strict=True)
    for value in bad:
        assert not validator.is_valid(value), value
        with pytest.raises(ValueError):
            adapter.validate_json(json.dumps(value), strict=True)


def check_schema(made: Tool) -> dict:
    jsonschema = pytest.importorskip("jsonschema")
    for schema in (made.parameters, made.returns):
        if schema is not None:
            jsonschema.Draft202012Validator.check_schema(schema)
    json.dumps(made.to_openai(), allow_nan=False)
    assert made.parameters["type"] == "object"
    return made.parameters


ANNOTATIONS = [
    (str, ["a"], [1, None]),
    (int, [1, -5], ["1", 1.5, True]),
    (float, [1.5, 2], ["1"]),
    (bool, [True], [1, "true"]),
    (list[int], [[], [1]], [["a"], {}]),
    (dict[str, int], [{}, {"a": 1}], [{"a": "b"}, []]),
    (Literal["a", "b"], ["a"], ["c", 1]),
    (Literal[1, "x", None], [1, "x", None], [2, "y"]),
    (typing.Optional[int], [1, None], ["x"]),  # noqa: UP045
    (int | str, [1, "a"], [None, 1.5]),
    (Colour, ["red"], ["green"]),
    (Level, [1], [3]),
    (Annotated[int, Field(ge=1, le=3)], [1, 3], [0, 4]),
    (Annotated[str, "the words", Field(min_length=2)], ["ab"], ["a"]),
    (Item, [{"sku": "a"}, {"sku": "a", "count": 2, "parent": {"sku": "b"}}], [{}, {"sku": "a", "count": 0}]),
    (Order, [{"items": [{"sku": "a"}], "colour": "blue"}], [{"items": [{}]}, {"items": [], "colour": "x"}]),
    (Point, [{"x": 1.0}, {"x": 1, "y": 2}], [{"y": 1.0}]),
    (list[Point], [[{"x": 1.0}]], [[{"y": 1.0}]]),
    (dict[str, list[Item]], [{"a": [{"sku": "x"}]}], [{"a": [{}]}]),
    (tuple[int, str], [[1, "a"]], [[1], ["a", 1]]),
    (list[Colour | None], [["red", None]], [["green"]]),
    (None, [None], [1]),
]


@pytest.mark.parametrize(("annotation", "good", "bad"), ANNOTATIONS, ids=lambda v: str(v)[:40])
def test_parameter_schemas_agree_with_pydantic(annotation, good, bad):
    def f(value): ...

    f.__annotations__["value"] = annotation
    schema = check_schema(tool(f))
    assert schema["required"] == ["value"] and list(schema["properties"]) == ["value"]
    inner = {**schema["properties"]["value"], "$defs": schema.get("$defs", {})}
    both_ways(inner, annotation, good, bad)


@pytest.mark.parametrize(("annotation", "good", "bad"), ANNOTATIONS, ids=lambda v: str(v)[:40])
def test_return_schemas_agree_with_pydantic(annotation, good, bad):
    def f(): ...

    f.__annotations__["return"] = annotation
    made = tool(f)
    check_schema(made)
    assert made.returns is not None
    if annotation not in (Item, Order):  # in an answer, fields with defaults are always there
        both_ways(made.returns, annotation, good, bad)


TYPED = [
    (Address, [{"street": "a"}, {"street": "a", "zip": "1"}], [{"zip": "1"}, {"street": 1}]),
    (Loose, [{"a": 1}, {"a": 1, "b": [{"street": "x"}]}], [{}, {"a": 1, "b": [{}]}]),
    (list[Address], [[{"street": "a"}]], [[{}]]),
    (typing.Optional[Address], [None, {"street": "a"}], [{}]),  # noqa: UP045
    (dict[str, Address | int], [{"a": 1, "b": {"street": "x"}}], [{"a": {}}]),
    (Annotated[Address, "where"], [{"street": "a"}], [{}]),
    (tuple[Address, ...], [[{"street": "a"}], []], [[{}]]),
]


@pytest.mark.parametrize(("annotation", "good", "bad"), TYPED, ids=lambda v: str(v)[:40])
def test_typed_dicts_of_the_standard_library(annotation, good, bad):
    jsonschema = pytest.importorskip("jsonschema")

    def f(value): ...

    f.__annotations__.update(value=annotation, **{"return": annotation})
    made = tool(f)
    schema = check_schema(made)
    for inner in ({**schema["properties"]["value"], "$defs": schema.get("$defs", {})}, made.returns):
        validator = jsonschema.Draft202012Validator(inner)
        assert all(map(validator.is_valid, good)) and not any(map(validator.is_valid, bad))


def test_a_typed_dict_that_holds_itself_has_a_schema_or_a_clear_error():
    def f(node: Node): ...

    if sys.version_info >= (3, 12):
        check_schema(tool(f))
    else:
        with pytest.raises(ParameterError, match="cannot"):
            tool(f)


# --- signatures ---


def test_required_and_default_values():
    def f(a: str, b: int = 3, *, c: Colour = Colour.BLUE, d: str | None = None, e: list[int] = [1], g=2): ...  # noqa: B006

    schema = check_schema(tool(f))
    assert schema["required"] == ["a"] and list(schema["properties"]) == ["a", "b", "c", "d", "e", "g"]
    defaults = {k: v.get("default", "none") for k, v in schema["properties"].items()}
    assert defaults == {"a": "none", "b": 3, "c": "blue", "d": None, "e": [1], "g": 2}
    assert "title" not in schema and all("title" not in p for p in schema["properties"].values())


@pytest.mark.parametrize(
    "name", ["title", "properties", "type", "_private", "schema", "json", "model_config", "self_", "default"]
)
def test_any_name_of_a_parameter_works(name):
    namespace: dict = {}
    exec(f"def f({name}: int, other: str = 'x'): ...", namespace)
    schema = check_schema(tool(namespace["f"]))
    assert schema["properties"][name] == {"type": "integer"} and schema["required"] == [name]


def test_no_parameters_and_no_annotations():
    def nothing(): ...

    def anything(x): ...

    assert check_schema(tool(nothing)) == {"type": "object", "properties": {}}
    assert tool(nothing).returns is None
    assert check_schema(tool(anything)) == {"type": "object", "properties": {"x": {}}, "required": ["x"]}


@pytest.mark.parametrize("source", ["def f(*args): ...", "def f(**kwargs): ...", "def f(a, /): ..."])
def test_parameters_that_cannot_be_named_are_refused(source):
    namespace: dict = {}
    exec(source, namespace)
    with pytest.raises(ParameterError, match="cannot be given by name"):
        tool(namespace["f"])


class NoSchema: ...


@pytest.mark.parametrize(
    ("annotations", "part"),
    [
        ({"x": NoSchema}, "parameters"),
        ({"x": list[NoSchema]}, "parameters"),
        ({"x": int, "return": NoSchema}, "return annotation"),
        ({"x": typing.Callable[[int], int]}, "parameters"),
        ({"x": "NotDefinedAnywhere"}, "signature"),
        ({"x": "not an expression ("}, "signature"),
        ({"x": "json.nothing_there"}, "signature"),
    ],
)
def test_annotations_without_a_schema_are_refused(annotations, part):
    def f(x): ...

    f.__annotations__.update(annotations)
    with pytest.raises(ParameterError, match=part) as caught:
        tool(f)
    assert "tool f" in str(caught.value) and caught.value.why and caught.value.fix


def test_builtins_without_a_signature_are_refused():
    with pytest.raises(ParameterError):
        as_tool(dict.fromkeys)
    with pytest.raises(ParameterError):
        as_tool(print)


# --- documentation ---


def test_google_docstrings_become_descriptions():
    def f(order_id: str, note: str = "", *, late: bool = False) -> str:
        """Look up an order.

        It never changes anything.

        Args:
            order_id: Id of the order,
                for example A-17.
            note (str, optional): Said: to the clerk.
            **late: Not in time.

        Returns:
            The order.

        Raises:
            KeyError: There is none.
        """

    made = tool(f)
    assert made.description == "Look up an order.\n\nIt never changes anything."
    descriptions = {k: v.get("description") for k, v in made.parameters["properties"].items()}
    assert descriptions == {
        "order_id": "Id of the order, for example A-17.",
        "note": "Said: to the clerk.",
        "late": "Not in time.",
    }


def test_annotated_text_wins_over_the_docstring_and_field_text_counts():
    def f(
        a: Annotated[str, "from the annotation"], b: Annotated[int, Field(description="from the field", ge=0)], c: int
    ):
        """Do.

        Args:
            a: from the docstring
            c: from the docstring
        """

    properties = tool(f).parameters["properties"]
    assert properties["a"]["description"] == "from the annotation"
    assert properties["b"] == {"type": "integer", "minimum": 0, "description": "from the field"}
    assert properties["c"]["description"] == "from the docstring"


def test_no_docstring_is_no_description():
    def f(x: int): ...

    assert tool(f).description == "" and "description" not in tool(f).parameters["properties"]["x"]
    assert tool(description="mine", name="other", kind="read")(f).to_openai() == {
        "type": "function",
        "function": {"name": "other", "description": "mine", "parameters": tool(f).parameters},
        "x-kind": "read",
    }


# --- stubs ---


def stubs():
    def dots(x: int): ...

    def passes(x: int):
        pass

    def documented(x: int):
        """Only this."""

    def raises(x: int):
        raise NotImplementedError

    def raises_with_text(x: int):
        """Docs."""
        raise NotImplementedError(f"{x} is not there yet, {x!r} neither")

    async def async_dots(x: int): ...

    async def async_raises(x: int):
        raise NotImplementedError("no")

    def returns_none(x: int):
        return None

    return [dots, passes, documented, raises, raises_with_text, async_dots, async_raises, returns_none]


def bodies():
    def adds(x: int):
        return x + 1

    def constant(x: int):
        return 0

    def prints(x: int):
        print(x)

    def partly(x: int):
        if x:
            raise NotImplementedError
        return x

    def other_error(x: int):
        raise ValueError

    async def async_adds(x: int):
        return x + 1

    async def async_partly(x: int):
        if x:
            raise NotImplementedError("x")
        return x

    def assigns(x: int):
        y = x  # noqa: F841

    return [adds, constant, prints, partly, other_error, async_adds, async_partly, assigns]


@pytest.mark.parametrize("fn", stubs(), ids=lambda f: f.__name__)
def test_stubs(fn):
    assert tool(fn).is_stub
    assert tool(functools.partial(fn)).is_stub


@pytest.mark.parametrize("fn", bodies(), ids=lambda f: f.__name__)
def test_bodies(fn):
    assert not tool(fn).is_stub


def test_stubs_under_other_pythons(other_child):
    program = textwrap.dedent(inspect.getsource(stubs)) + textwrap.dedent(inspect.getsource(bodies))
    program += "import json\nfrom whileai_kernel.tools import _is_stub\n"
    program += "print(json.dumps([[_is_stub(f) for f in fns] for fns in (stubs(), bodies())]))"
    assert other_child(program).answer == [[True] * 8, [False] * 8]


def test_wrapped_stubs_are_stubs():
    def plain(x: int) -> str:
        """Docs."""

    @functools.wraps(plain)
    def wrapper(*args, **kwargs):
        print("called")
        return plain(*args, **kwargs)

    made = tool(wrapper)
    assert made.is_stub and made.name == "plain" and list(made.parameters["properties"]) == ["x"]


# --- callables ---


class Desk:
    """A desk."""

    def find(self, order_id: str) -> Point:
        """Find it."""
        return Point(1.0)

    @classmethod
    def open(cls, door: int = 1) -> bool:
        return True

    @staticmethod
    def close(door: int) -> bool:
        return False


class Caller:
    """Calls."""

    def __call__(self, number: int, *, loud: bool = False) -> str:
        return str(number)


def test_methods_have_no_self():
    desk = Desk()
    find = tool(desk.find)
    assert find.name == "find" and list(find.parameters["properties"]) == ["order_id"]
    assert find.returns is not None and find("A") == Point(1.0) and not find.is_stub
    assert list(tool(Desk.open).parameters["properties"]) == ["door"]
    assert list(tool(desk.close).parameters["properties"]) == ["door"]


def test_callable_objects_are_tools():
    made = as_tool(Caller())
    assert made.name == "Caller" and made.description == "Calls."
    assert made.parameters["properties"]["number"] == {"type": "integer"}
    assert made.parameters["required"] == ["number"] and made.returns == {"type": "string"}
    assert made(3) == "3" and not made.is_stub


def test_partials_keep_name_documentation_and_types():
    def weather(city: str, unit: Literal["C", "F"] = "C", days: int = 1) -> str:
        """Say the weather.

        Args:
            city: Where.
        """
        return f"{city} {unit} {days}"

    made = as_tool(functools.partial(weather, unit="F"))
    assert (made.name, made.description, made.returns) == ("weather", "Say the weather.", {"type": "string"})
    properties = check_schema(made)["properties"]
    assert properties["city"] == {"type": "string", "description": "Where."}
    assert properties["unit"]["default"] == "F" and properties["unit"]["enum"] == ["C", "F"]
    assert made(city="Oslo") == "Oslo F 1"
    bound = as_tool(functools.partial(functools.partial(weather, "Oslo"), days=2))
    assert list(bound.parameters["properties"]) == ["unit", "days"] and "required" not in bound.parameters


def test_async_functions_keep_their_result_type():
    async def f(x: int) -> list[Point]:
        return []

    assert tool(f).returns["items"] == {"$ref": "#/$defs/Point"}


def test_a_tool_is_still_the_function():
    @tool(kind="write")
    def refund(order_id: str) -> bool:
        """Pay back."""
        return order_id == "A"

    assert refund("A") is True and refund(order_id="B") is False
    assert refund.__name__ == "refund" and refund.__doc__ == "Pay back." and refund.kind == "write"
    assert as_tool(refund) is refund


# --- schemas of others ---

PARAMETERS = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": PARAMETERS}},
        {"type": "function", "name": "f", "description": "d", "parameters": PARAMETERS},
        {"name": "f", "description": "d", "parameters": PARAMETERS},
        {"name": "f", "description": "d", "input_schema": PARAMETERS},
        {"name": "f", "description": "d", "inputSchema": PARAMETERS},
        {"title": "f", "description": "d", **PARAMETERS},
        types.MappingProxyType({"name": "f", "description": "d", "parameters": PARAMETERS}),
    ],
)
def test_schemas_of_every_shape(item):
    made = as_tool(item)
    assert (made.name, made.description) == ("f", "d")
    assert {k: made.parameters[k] for k in PARAMETERS} == PARAMETERS
    assert made.is_stub and made.fn is None and made.kind is None and made.returns is None
    assert as_tool(made.to_openai()) == made
    with pytest.raises(ParameterError, match="no function"):
        made(k=1)


def test_kind_and_result_travel_with_the_openai_shape():
    @tool(kind="read")
    def find(order_id: str) -> Point: ...

    sent = json.loads(json.dumps(find.to_openai()))
    assert sent["x-kind"] == "read" and sent["x-returns"] == find.returns
    assert as_tool(sent) == find
    mcp = as_tool({"name": "f", "inputSchema": PARAMETERS, "outputSchema": {"type": "object"}})
    assert mcp.returns == {"type": "object"}


def test_a_schema_without_parameters_takes_none():
    assert as_tool({"name": "ping"}).parameters == {"type": "object", "properties": {}}
    assert as_tool({"type": "function", "function": {"name": "ping", "parameters": {}}}).parameters["properties"] == {}


@pytest.mark.parametrize(
    ("item", "word"),
    [
        ({}, "no name"),
        ({"description": "x"}, "no name"),
        ({"type": "function", "function": "f"}, "must be an object"),
        ({"name": "f", "parameters": "x"}, "JSON schema"),
        ({"name": "f", "parameters": {"type": "string"}}, "object"),
        ({"name": "two words"}, "not a tool name"),
        ({"name": "f\n"}, "not a tool name"),
        ({"name": "x" * 129}, "not a tool name"),
        ({"name": 7}, "not a tool name"),
        ({"name": "f", "x-kind": "reed"}, "did you mean 'read'"),
        (7, "cannot make a tool from int"),
        ("get_order", "cannot make a tool from str"),
        (None, "cannot make a tool from NoneType"),
    ],
)
def test_what_is_no_tool_is_refused(item, word):
    with pytest.raises(ParameterError, match=word):
        as_tool(item)


def test_lists_of_tools():
    def f(x: int): ...

    made = as_tools([f, {"name": "g"}, tool(name="h")(f)])
    assert [t.name for t in made] == ["f", "g", "h"]
    assert as_tools(None) == as_tools(()) == []
    assert [t.name for t in as_tools(iter([f]))] == ["f"]
    with pytest.raises(ParameterError, match="two tools are named 'f'"):
        as_tools([f, {"name": "f"}])
    for wrong in (f, {"name": "g"}, "f"):
        with pytest.raises(ParameterError, match="must be a list"):
            as_tools(wrong)


# --- copies ---


@tool
def known(x: int) -> int:
    """Known."""
    return x + 1


def raw(x: int) -> int:
    return x + 2


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda: known, 2),
        (lambda: tool(raw), 3),
        (lambda: tool(name="renamed", kind="read")(raw), 3),
        (lambda: tool(functools.partial(raw, x=5)), 7),
        (lambda: tool(Caller()), "1"),
        (lambda: tool(Desk().find), Point(1.0)),
        (lambda: tool(Desk.close), False),
    ],
)
def test_tools_travel_with_their_functions(make, answer):
    made = make()
    arguments = {} if isinstance(made.fn, functools.partial) else {next(iter(made.parameters["properties"])): 1}
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert again == made and again.is_stub == made.is_stub
        assert again(**arguments) == answer


def test_a_tool_that_is_a_module_attribute_stays_one_object():
    assert pickle.loads(pickle.dumps(known)) is known


def test_local_functions_can_be_copied():
    def local(x: int) -> int:
        return x

    assert copy.deepcopy(tool(local))(4) == 4


def test_a_tool_of_another_module_is_imported_when_it_arrives(child, tmp_path):
    (tmp_path / "shop.py").write_text(
        "from whileai_kernel import tool\n@tool\ndef price(sku: str) -> int:\n    return 7\n", encoding="utf-8"
    )
    program = """
import json, pickle, sys
sys.path.insert(0, %r)
%s
"""
    path = str(tmp_path)
    sent = child(program % (path, "import shop; print(json.dumps(pickle.dumps(shop.price).hex()))")).answer
    made = child(program % (path, f"t = pickle.loads(bytes.fromhex({sent!r})); print(json.dumps([t.is_stub, t('a')]))"))
    assert made.answer == [False, 7]
