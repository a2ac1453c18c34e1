"""Values for schemas, and the validator, against jsonschema."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_simulate.draw import Draw
from whileai_simulate.encoding import encode
from whileai_simulate.schema import fits_plainly, problems, sample, text_for_pattern

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 12},
    {"type": "string", "maxLength": 3},
    {"type": "string", "pattern": r"^[A-Z]{2}-\d{3,5}(?:-x|-y)?$"},
    {"type": "string", "pattern": r"^(\w+)@(\w+)\.com$"},
    {"type": "string", "enum": ["a", "b"]},
    {"const": 7},
    {"type": "integer", "minimum": 3, "maximum": 4},
    {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 6},
    {"type": "integer", "multipleOf": 5, "minimum": 7, "maximum": 21},
    {"type": "number", "minimum": -2.5, "maximum": -1.5},
    {"type": "number", "maximum": -1},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/b"}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "$defs": {"b": {"type": "object", "properties": {"c": {"enum": [1, 2]}}, "required": ["c"]}},
    },
    *({"type": "string", "format": f} for f in ("date", "date-time", "email", "uuid", "ipv4", "uri")),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
def test_samples_satisfy_their_schema(schema: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for i in range(40):
        value = sample(schema, Draw("s", i))
        assert check.is_valid(value), value
        assert problems(value, schema) == []


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 30)
    | st.sampled_from([1.0, 2.5, -2.0])
    | st.text("abAB-12@.com", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcz"), inner, max_size=3),
    max_leaves=6,
)


@given(value=VALUES, n=st.integers(0, len(SCHEMAS) - 8))
@settings(max_examples=400, deadline=None)
def test_agrees_with_jsonschema_on_any_value(value: Any, n: int) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = SCHEMAS[n]
    assert (problems(value, schema) == []) == jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^#W\d{7}$",
        r"[^a-c]{4}",
        r"^(foo|bar)+$",
        r"a.c",
        r"\w{3}\s\d",
        r"^(?P<x>ab)\1$",
        r"^[A-F0-9]{8}-[\w.]{2,}$",
        r"x*y?z+",
    ],
)
def test_text_for_a_pattern_matches_it(pattern: str) -> None:
    for i in range(50):
        assert re.search(pattern, text_for_pattern(pattern, Draw(pattern, i)))


@given(
    value=st.dictionaries(
        st.sampled_from(["a", "b", "c", "x"]), st.text(max_size=3) | st.integers() | st.booleans() | st.none()
    ),
    parts=st.lists(
        st.sampled_from(
            [
                {"type": "string"},
                {"type": "integer", "description": "how many"},
                {"type": "boolean"},
                {"type": "string", "minLength": 2},
                {"type": "integer", "minimum": 5},
                {"type": ["string", "null"]},
                {"enum": ["a"]},
                {},
            ]
        ),
        min_size=3,
        max_size=3,
    ),
    required=st.sets(st.sampled_from(["a", "b", "c"])),
    more=st.sampled_from([{}, {"additionalProperties": False}, {"minProperties": 2}, {"anyOf": [{"required": ["a"]}]}]),
)
@settings(max_examples=400, deadline=None)
def test_what_fits_plainly_has_no_problems(
    value: dict[str, Any], parts: list[dict[str, Any]], required: set[str], more: dict[str, Any]
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = {
        "type": "object",
        "properties": dict(zip("abc", parts, strict=True)),
        "required": sorted(required),
        **more,
    }
    plain = not set(more) - {"additionalProperties"} and all(
        set(p) <= {"type", "description"} and isinstance(p.get("type"), str) for p in parts
    )
    if fits_plainly(value, schema):
        assert problems(value, schema) == []
        assert set(value) <= set("abc")
        assert jsonschema.Draft202012Validator(schema).is_valid(value)
    elif plain:
        assert problems(value, schema) or not set(value) <= set("abc")


@given(
    st.recursive(
        st.text() | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=12,
    )
)
@settings(max_examples=300, deadline=None)
def test_the_kept_encoder_writes_what_json_writes(value: Any) -> None:
    assert encode(value) == json.dumps(value, ensure_ascii=False)


def test_the_kept_encoder_refuses_what_json_refuses() -> None:
    with pytest.raises(TypeError):
        encode({"a": {1, 2}})
