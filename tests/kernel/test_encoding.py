"""Encoders that are made once write what `json` writes."""

from __future__ import annotations

import json
import json.encoder
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.encoding import prepared

SETTINGS: list[dict[str, Any]] = [
    {},
    {"ensure_ascii": False},
    {"sort_keys": True, "separators": (",", ":"), "allow_nan": False},
    {"check_circular": False, "skipkeys": True},
    {"indent": 2},
    {"default": str},
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


def said(encode: Any, value: Any) -> Any:
    try:
        return encode(value)
    except (TypeError, ValueError) as err:
        return type(err), str(err).splitlines()[0]


@pytest.mark.parametrize("options", SETTINGS, ids=lambda o: "+".join(o) or "plain")
@given(value=VALUES)
def test_the_text_and_the_errors_are_those_of_json(options: dict[str, Any], value: Any) -> None:
    encoder = json.JSONEncoder(**options)
    assert said(prepared(encoder), value) == said(encoder.encode, value)


def test_a_subclass_decides_what_it_writes() -> None:
    class Marked(json.JSONEncoder):
        def default(self, o: Any) -> Any:
            return {"kind": type(o).__name__}

    assert prepared(Marked())([1, {2}]) == '[1, {"kind": "set"}]'


def test_a_cycle_is_an_error_and_no_endless_text() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(RecursionError):
        prepared(json.JSONEncoder())(cycle)


def test_without_the_c_encoder_the_plain_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    encode = prepared(json.JSONEncoder())
    assert encode({"a": [1, math.pi]}) == json.dumps({"a": [1, math.pi]})
