"""What agents return, and the conversation that it makes: text, steps, messages, a completion or a Rollout.

Whatever else an agent returns is a failed rollout with the reason, never text.

Example:
    >>> read_return({"steps": [], "final_text": "Done."}, []).messages
    [{'role': 'assistant', 'content': 'Done.'}]
    >>> read_return(None, []).error["message"].split(" (expected")[0]
    'the agent returned nothing (None)'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import RowError, WhileaiError
from whileai_kernel.messages import normalise_messages

__all__ = ["BadReturnError", "Conversation", "Message", "Reply", "failed", "read_return"]

Message = dict[str, Any]


class BadReturnError(WhileaiError):
    """An agent returned something that is no reply."""


@dataclass(slots=True)
class Reply:
    """What a scripted agent returns: messages after the ask, and labels of what it did on purpose."""

    messages: list[Message]
    final_text: str
    seeded: list[str] | None = None
    finish_reason: str | None = "stop"


@dataclass(slots=True)
class Conversation:
    """How a rollout ended, before it becomes a row."""

    messages: list[Message]
    final_text: str | None = None
    finish_reason: str | None = None
    outcome: str = "completed"
    error: dict[str, Any] | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    seeded: list[str] | None = None
    ended_by: str = "agent"
    extra: dict[str, Any] = field(default_factory=dict)


def failed(messages: list[Message], kind: str, message: str, ended_by: str = "error") -> Conversation:
    """Return a conversation that failed, with its reason."""
    return Conversation(messages, None, None, "failed", {"type": kind, "message": message[:2000]}, ended_by=ended_by)


def read_return(value: Any, prior: list[Message]) -> Conversation:
    """Turn what an agent returned into the conversation so far, or into a failed one with the reason."""
    try:
        return _read(value, prior)
    except (BadReturnError, RowError) as err:
        return failed(prior, "BadReturnError", f"{err.what}{f' ({err.why})' if err.why else ''}")


def _read(value: Any, prior: list[Message]) -> Conversation:
    if isinstance(value, str):
        if not value.strip():
            raise BadReturnError("the agent returned an empty reply")
        return Conversation([*prior, {"role": "assistant", "content": value}], value, "stop")
    if isinstance(value, Reply):
        _check_jsonable(value.messages)
        reply = _from_messages(value.messages, prior)
        reply.seeded, reply.finish_reason = value.seeded, value.finish_reason
        return reply
    if isinstance(value, Mapping):
        _check_jsonable(value)
        return _from_mapping(value, prior)
    if isinstance(value, list | tuple):
        _check_jsonable(value)
        return _from_messages(list(value), prior)
    if value is not None and type(value).__name__ == "Rollout" and hasattr(value, "model_dump"):
        return _from_mapping(value.model_dump(), prior)
    if value is not None and hasattr(value, "model_dump") and hasattr(value, "choices"):
        return _from_mapping(value.model_dump(), prior)
    kind = "nothing (None)" if value is None else type(value).__name__
    raise BadReturnError(
        f"the agent returned {kind}", why="expected text, {'steps', 'final_text'}, messages or a Rollout"
    )


def _check_jsonable(value: Any) -> None:
    """Refuse what could not stand in a row: cycles, NaN, bytes, generators, deep nesting."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as err:
        raise BadReturnError(f"the agent's return cannot be written as JSON: {str(err)[:200]}") from None


_PASSED_ON = ("usage", "finish_reason", "logprobs")


def _from_mapping(value: Mapping[str, Any], prior: list[Message]) -> Conversation:
    if value.get("choices"):
        choices = value["choices"]
        choice = choices[0] if isinstance(choices, list | tuple) else None
        if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
            raise BadReturnError("choices[0].message must be an object, as in a chat completion")
        reply = _from_messages([choice["message"]], prior)
        reply.finish_reason = reason if isinstance(reason := choice.get("finish_reason"), str) else None
        reply.usage = dict(value["usage"]) if isinstance(value.get("usage"), Mapping) else {}
        return _cut(reply)
    if "role" in value:
        return _from_messages([value], prior)
    final = value.get("final_text")
    if final is not None and not isinstance(final, str):
        raise BadReturnError(f"final_text must be text, not {type(final).__name__}")
    if "steps" in value:
        reply = _from_steps(value["steps"], final, prior)
    elif value.get("messages"):
        reply = _from_messages(value["messages"], prior)
        if final and reply.final_text != final:
            reply.messages.append({"role": "assistant", "content": final})
            reply.final_text = final
    elif final is not None:
        reply = _read(final, prior)
    else:
        raise BadReturnError(
            "the agent returned a dict without 'steps', 'messages' or 'final_text'",
            why=f"its keys are {', '.join(map(str, value))[:120]}",
        )
    if "system_prompt" in value:
        reply.messages = _told(reply.messages, value["system_prompt"])
    usage = value.get("usage")
    if isinstance(usage, Mapping):
        reply.usage = dict(usage)
    if isinstance(value.get("finish_reason"), str):
        reply.finish_reason = value["finish_reason"]
    if value.get("outcome") in ("truncated", "failed"):
        reply.outcome = value["outcome"]
        error = value.get("error")
        reply.error = (
            dict(error)
            if isinstance(error, Mapping)
            else ({"type": "AgentError", "message": str(error)} if error else None)
        )
    if value.get("logprobs") is not None:
        reply.extra["logprobs"] = value["logprobs"]
    return _cut(reply)


def _told(messages: list[Message], system_prompt: Any) -> list[Message]:
    """Return the conversation under the system prompt that the agent's model was really given; `None` is none."""
    if system_prompt is not None and not isinstance(system_prompt, str):
        raise BadReturnError(f"system_prompt must be text or None, not {type(system_prompt).__name__}")
    rest = messages[1:] if messages and messages[0]["role"] == "system" else messages
    return [{"role": "system", "content": system_prompt}, *rest] if system_prompt else rest


def _cut(reply: Conversation) -> Conversation:
    from whileai_kernel.rows import LENGTH_REASONS

    if reply.finish_reason in LENGTH_REASONS and reply.outcome == "completed":
        reply.outcome = "truncated"
    return reply


def _from_messages(value: Any, prior: list[Message]) -> Conversation:
    if not isinstance(value, list | tuple):
        raise BadReturnError(f"messages must be a list, not {type(value).__name__}")
    if not value:
        raise BadReturnError("the agent returned no messages")
    new = normalise_messages(value)
    if len(new) > len(prior) and _same(new[: len(prior)], prior):
        new = new[len(prior) :]
    elif (
        len(new) > len(prior) - 1 and prior and prior[0]["role"] == "system" and _same(new[: len(prior) - 1], prior[1:])
    ):
        new = new[len(prior) - 1 :]
    if not new or new[-1]["role"] != "assistant":
        raise BadReturnError(f"the last message must be the assistant's, not {new[-1]['role'] if new else 'none'!r}")
    last = new[-1]
    text = last.get("content") or ""
    if not text.strip() and not last.get("tool_calls"):
        raise BadReturnError("the agent returned an empty reply")
    return Conversation([*prior, *new], text, "tool_calls" if last.get("tool_calls") else "stop")


def _same(a: Sequence[Message], b: Sequence[Message]) -> bool:
    return [(m.get("role"), m.get("content")) for m in a] == [(m.get("role"), m.get("content")) for m in b]


def _from_steps(steps: Any, final: str | None, prior: list[Message]) -> Conversation:
    if not isinstance(steps, list | tuple):
        raise BadReturnError(f"steps must be a list, not {type(steps).__name__}")
    messages: list[Message] = []
    for n, step in enumerate(steps):
        if not isinstance(step, Mapping):
            raise BadReturnError(f"steps[{n}] must be an object, not {type(step).__name__}")
        name = step.get("name") or step.get("tool")
        if name is None and ("text" in step or "content" in step):
            text = step.get("text", step.get("content"))
            if not isinstance(text, str):
                raise BadReturnError(f"steps[{n}] has no text")
            role = step.get("role", "assistant")
            if role not in ("assistant", "user"):
                raise BadReturnError(f"steps[{n}] has the role {role!r:.40}, not assistant or user")
            messages.append({"role": role, "content": text})
            continue
        if not isinstance(name, str) or not name:
            raise BadReturnError(f"steps[{n}] names no tool and has no text")
        arguments = step.get("arguments", step.get("args", {}))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        call = {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": text}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        result = step.get("result")
        shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": shown})
    if final is None:
        final = messages[-1]["content"] if messages and messages[-1]["role"] == "assistant" else None
        if not final or not final.strip():
            raise BadReturnError("the agent returned steps without a final text")
        return Conversation([*prior, *messages], final, "stop")
    if not final.strip():
        raise BadReturnError("the agent returned an empty reply")
    return Conversation([*prior, *messages, {"role": "assistant", "content": final}], final, "stop")
