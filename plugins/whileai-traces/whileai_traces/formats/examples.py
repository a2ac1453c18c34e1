"""A small file per format, in the shape of its current version: what each source ships so that it can be checked."""

from __future__ import annotations

import json
from typing import Any

from whileai_kernel.protocols import FileExample

__all__ = ["examples_of"]

_USER = {"role": "user", "content": "Where is order 7?"}
_CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}}
_CHAT: list[dict[str, Any]] = [
    _USER,
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "shipped"}'},
]
_LAST = {"role": "assistant", "content": "It has shipped."}
_WHOLE = [*_CHAT, _LAST]
_ANTHROPIC = [
    _USER,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_order", "input": {"id": 7}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "shipped"}]},
    _LAST,
]
_ITEMS = [
    {"type": "function_call", "call_id": "c1", "name": "get_order", "arguments": '{"id": 7}'},
    {"type": "function_call_output", "call_id": "c1", "output": "shipped"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It has shipped."}]},
]
_TURNS = [
    {"from": "human", "value": "Where is order 7?"},
    {"from": "function_call", "value": '{"name": "get_order", "arguments": {"id": 7}}'},
    {"from": "observation", "value": "shipped"},
    {"from": "gpt", "value": "It has shipped."},
]
_PARTS = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
    ),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "Shipped."}], "finish_reason": "stop"}]
    ),
}
_OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Where is order 7?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Shipped.",
}


def _otlp(trace: str, attributes: dict[str, str]) -> dict[str, Any]:
    pairs = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    span = {"traceId": trace, "spanId": "s1", "name": "chat", "startTimeUnixNano": "1", "attributes": pairs}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _records(name: str, n: int) -> dict[str, Any]:
    """Return the n-th example record of a format."""
    records: dict[str, dict[str, Any]] = {
        "rows": {"schema_version": 1, "task_id": "t", "rollout_id": f"r{n}", "index": n, "prompt": "Where is order 7?",
                 "final_text": "It has shipped.", "reward": 1.0, "status": "ok", "markers": {}, "messages": _WHOLE},
        "chat": {"messages": _WHOLE, "task_id": "t", "reward": 1.0},
        "responses": {"object": "response", "input": [_USER], "output": _ITEMS, "status": "completed"},
        "anthropic": {"system": "Be brief.", "messages": _ANTHROPIC},
        "sharegpt": {"conversations": _TURNS},
        "tau_bench": {"task_id": 0, "trial": n, "reward": 1.0, "info": {"task": {"instruction": "a"}}, "traj": _WHOLE},
        "tau2_bench": {"task_id": "0", "trial": n, "reward_info": {"reward": 1.0}, "messages": _WHOLE},
        "prompt_completion": {"prompt": "2+2?", "completion": str(n), "reward": 1},
        "lm_eval": {"doc_id": n, "arguments": {"gen_args_0": {"arg_0": "2+2?"}}, "resps": [["4"]],
                    "filtered_resps": ["4"], "metrics": ["exact_match"], "exact_match": 1.0, "target": "4"},
        "promptfoo": {"promptIdx": 0, "testIdx": n, "prompt": {"raw": "2+2?"}, "response": {"output": "4"},
                      "success": True, "score": 1, "vars": {}},
        "verifiers": {"id": f"e{n}", "env": {"id": "x"}, "traces": [{
            "task": {"data": {"id": "t"}}, "rewards": {"exact": {"score": 1.0, "weight": 1.0}},
            "nodes": [{"parent": None if i == 0 else i - 1, "message": m} for i, m in enumerate(_WHOLE)]}]},
        "otel": _otlp(f"t{n}", _PARTS),
        "openinference": _otlp(f"t{n}", _OPENINFERENCE),
        "langfuse": {"id": f"t{n}", "name": "run", "scores": [], "observations": [
            {"id": "o", "type": "GENERATION", "startTime": "1", "input": _CHAT, "output": _LAST}]},
        "langsmith": {"id": f"r{n}", "trace_id": f"t{n}", "run_type": "llm", "dotted_order": "1",
                      "inputs": {"messages": _CHAT}, "outputs": {"choices": [{"message": _LAST}]}},
        "agents_sdk": {"object": "trace.span", "id": f"s{n}", "trace_id": f"t{n}", "started_at": "1",
                       "span_data": {"type": "generation", "input": _CHAT, "output": [_LAST], "model": "m"}},
        "inspect": {"id": f"s{n}", "epoch": 1, "target": "4", "messages": _WHOLE,
                    "scores": {"match": {"value": "C"}}},
    }  # fmt: skip
    return records[name]


def examples_of(name: str) -> tuple[FileExample, ...]:
    """Return the example files of a format; two runs each."""
    if name == "inspect":
        log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"},
               "samples": [_records(name, n) for n in range(2)]}  # fmt: skip
        return (FileExample("log.json", json.dumps(log, indent=2).encode(), 2),)
    lines = "".join(json.dumps(_records(name, n)) + "\n" for n in range(2))
    files = [FileExample(f"{name}.jsonl", lines.encode(), 2)]
    if name == "tau_bench":
        files.append(FileExample("results.json", json.dumps([_records(name, n) for n in range(2)]).encode(), 2))
    if name == "prompt_completion":
        files.append(FileExample("runs.csv", b"prompt,completion,reward\n2+2?,4,1\n2+2?,5,0\n", 2))
    return tuple(files)
