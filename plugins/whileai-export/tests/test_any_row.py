# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""Whatever one row holds, an export writes the good rows, or says in its own words why it cannot."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whileai_export import export
from whileai_kernel.errors import WhileaiError

CALL = {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"k": 1}'}}
TOOL = {
    "type": "function",
    "function": {"name": "get", "parameters": {"type": "object", "properties": {"k": {"type": "integer"}}}},
}
GOOD = {
    "schema_version": 1, "task_id": "t", "rollout_id": "r", "index": 0, "prompt": "q", "final_text": "Done.", "reward": 1.0, "status": "ok",
    "threshold": 1.0, "markers": {}, "split": None, "seeded": ["x"], "lineage": {"source": "s", "file": "f"}, "world": {"seed": 1},
    "policy": {"model": "m"}, "scorer": {"id": "s"}, "logprobs": {"token_ids": [1, 2]}, "system_prompt": "s", "finish_reason": "stop",
    "privileged": {"reference": "4", "rubric": ["one two three four five six"]}, "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "assistant", "content": "Done."},
    ],
}  # fmt: skip
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "id", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


@pytest.mark.parametrize("target", ["chat", "openai", "trl", "anthropic", "sharegpt"])
@pytest.mark.parametrize("kind", ["sft", "preference", "prompts", "rewarded", "eval"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_row_with_junk_anywhere_costs_at_most_that_row_or_is_refused_in_words(
    target: str, kind: str, data: st.DataObject
) -> None:
    bad: Any = copy.deepcopy(GOOD)
    path = data.draw(st.sampled_from(places(GOOD)))
    node = bad
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = data.draw(JUNK)
    good = {**copy.deepcopy(GOOD), "task_id": "u", "rollout_id": "good"}
    worse = {
        **good,
        "rollout_id": "worse",
        "reward": 0.0,
        "messages": [*good["messages"][:3], {"role": "assistant", "content": "No."}],
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        try:
            report = export([bad, good, worse], out, to=target, kind=kind)
        except WhileaiError as err:
            assert str(err)
            assert list(Path(folder).iterdir()) == []
            return
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line]
    assert len(records) == report.written
    assert report.written >= (2 if kind in ("sft", "rewarded") else 1)
