"""Tool calls: Called, NotCalled, Sequence, Arguments.

Calls are read with the kernel's pairing by id. A row without `messages` says nothing about calls and is not scored.
Whether a call *worked* is asked with `succeeded=True`: it has a result, and the result is not an error by the rule of
`failed_result`.

Example:
    >>> call = {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"k": 1}'}}
    >>> row = {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}
    >>> Called("get")(row)["reward"], NotCalled("get")(row)["reward"]
    (1.0, 0.0)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Seq
from typing import Any, Literal

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import CallRecord, tool_calls
from whileai_kernel.protocols import Example
from whileai_verify.compare import first_difference, without_expected
from whileai_verify.defaults import DEADLINE_S
from whileai_verify.extract import loads_strict
from whileai_verify.rowview import (
    MISSING,
    Verdict,
    check_options,
    no_reference,
    not_scored,
    raw_reply_of,
    reference_of,
    verdict,
)

__all__ = ["Arguments", "Called", "NotCalled", "Sequence", "failed_result"]


def failed_result(result: str | None) -> bool:
    """Return whether a tool result reports a failure: there is none, it is JSON with `error`, or it starts `Error`."""
    if result is None:
        return True
    text = result.strip()
    if text[:1] == "{":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and bool(value.get("error") or value.get("is_error"))
    return text[:5].casefold() == "error"


def _calls(row: Mapping[str, Any]) -> list[CallRecord] | None:
    messages = row.get("messages")
    return None if not isinstance(messages, list) else tool_calls(messages)


_NO_MESSAGES = "the row has no messages, so its tool calls are unknown"


def _names(names: str | Seq[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names or not all(isinstance(n, str) and n for n in names):
        raise ParameterError(
            "name at least one tool", why="a check of nothing would always hold", fix="Called('get_order')"
        )
    return names


def _messages(*names: str) -> dict[str, Any]:
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": '{"id": 7}'}}
        for i, n in enumerate(names)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{i}", "content": "ok"} for i in range(len(names))]
    turn = [{"role": "assistant", "content": "", "tool_calls": calls}, *results] if calls else []
    return {
        "messages": [{"role": "user", "content": "hi"}, *turn, {"role": "assistant", "content": "Done."}],
        "final_text": "Done.",
        "privileged": {"reference": {"id": 7}, "calls": ["get_order"], "forbidden": ["refund"]},
    }


_SILENT = {
    **_messages(),
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}],
    "final_text": "",
}


class Called:
    """1 when every named tool was called.

    Args:
        names: The tool or the tools that have to be called; left out, they come from `calls_field`.
        at_least: Calls of each tool at least.
        at_most: Calls of each tool at most, `None` for no limit.
        succeeded: Count only calls whose result is not a failure (see `failed_result`).
        calls_field: Dotted field of the row with a list of names.
        threshold: Reward from which a rollout passes.
    """

    examples = (Example(_messages("get_order"), 1.0), Example(_messages("refund"), 0.0), Example(_SILENT, 0.0))

    def __init__(
        self,
        names: str | Seq[str] | None = None,
        *,
        at_least: int = 1,
        at_most: int | None = None,
        succeeded: bool = False,
        calls_field: str = "privileged.calls",
        threshold: float = 1.0,
    ) -> None:
        if at_least < 1 or (at_most is not None and at_most < at_least):
            raise ParameterError("at_least must be 1 or more, and at_most not below it", fix="use NotCalled for none")
        self.names = _names(names)
        self.at_least, self.at_most, self.succeeded = at_least, at_most, succeeded
        self.calls_field, self.threshold = calls_field, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        names = self.names or _listed(row, self.calls_field)
        if not names:
            return no_reference(self.calls_field)
        calls = _calls(row)
        if calls is None:
            return not_scored("missing", _NO_MESSAGES)
        counted = [c for c in calls if not (self.succeeded and failed_result(c.result))]
        counts = {n: sum(c.name == n for c in counted) for n in names}
        limit = float("inf") if self.at_most is None else self.at_most
        right = all(self.at_least <= n <= limit for n in counts.values())
        return verdict(right, "called as required" if right else "not called as required", calls=sum(counts.values()))


def _listed(row: Mapping[str, Any], field: str) -> tuple[str, ...]:
    found = reference_of(row, field)
    if isinstance(found, str):
        return (found,)
    return tuple(found) if isinstance(found, list) and all(isinstance(n, str) for n in found) else ()


class NotCalled:
    """1 when none of the named tools was called.

    A run that said nothing and called nothing is 0: doing nothing is no evidence of restraint.

    Args:
        names: The forbidden tool or tools; left out, they come from `calls_field`.
        calls_field: Dotted field of the row with a list of names.
        threshold: Reward from which a rollout passes.
    """

    examples = (Example(_messages("get_order"), 1.0), Example(_messages("refund"), 0.0), Example(_SILENT, 0.0))

    def __init__(
        self, names: str | Seq[str] | None = None, *, calls_field: str = "privileged.forbidden", threshold: float = 1.0
    ) -> None:
        self.names = _names(names)
        self.calls_field, self.threshold = calls_field, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        names = self.names or _listed(row, self.calls_field)
        if not names:
            return no_reference(self.calls_field)
        calls = _calls(row)
        if calls is None:
            return not_scored("missing", _NO_MESSAGES)
        if not calls and not raw_reply_of(row).strip():
            return verdict(0, "the run did nothing")
        hits = sorted({c.name for c in calls} & set(names))
        return verdict(not hits, f"forbidden tools called: {', '.join(hits)}" if hits else "no forbidden tool called")


class Sequence:
    """1 when the tools were called in this order.

    Args:
        names: Tools in order; left out, they come from `calls_field`.
        match: `subsequence` (others may come between), `contiguous` (side by side), `exact` (these and no others).
        succeeded: Count only calls whose result is not a failure.
        calls_field: Dotted field of the row with a list of names.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example(_messages("find", "get_order"), 1.0),
        Example(_messages("find"), 0.0),
        Example(_SILENT, 0.0),
    )

    def __init__(
        self,
        names: str | Seq[str] | None = None,
        *,
        match: Literal["subsequence", "contiguous", "exact"] = "subsequence",
        succeeded: bool = False,
        calls_field: str = "privileged.calls",
        threshold: float = 1.0,
    ) -> None:
        check_options(match=(match, ("subsequence", "contiguous", "exact")))
        self.names = _names(names)
        self.match, self.succeeded, self.calls_field, self.threshold = match, succeeded, calls_field, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        names = list(self.names or _listed(row, self.calls_field))
        if not names:
            return no_reference(self.calls_field)
        calls = _calls(row)
        if calls is None:
            return not_scored("missing", _NO_MESSAGES)
        made = [c.name for c in calls if not (self.succeeded and failed_result(c.result))]
        if self.match == "exact":
            right = made == names
        elif self.match == "contiguous":
            right = any(made[i : i + len(names)] == names for i in range(len(made) - len(names) + 1))
        else:
            left = iter(made)
            right = all(any(n == m for m in left) for n in names)
        return verdict(right, "called in order" if right else "not called in this order", calls=len(made))


def _strict(text: str) -> bool:
    """Return whether arguments are JSON that every parser reads alike: no key twice, no NaN. Empty means none."""
    try:
        return not text.strip() or loads_strict(text) is not None
    except ValueError:
        return False


class _NotScoredError(Exception):
    """A schema could not be evaluated; carries the verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(verdict["reason"])


class Arguments:
    """1 when calls of a tool have the expected arguments.

    Arguments that are not a JSON object never match. Types count: `"7"` is not `7`.

    Args:
        name: The tool; `None` looks at the calls of every tool.
        expected: The arguments; left out (and without `schema`), they come from the reference field.
        match: `exact`, or `subset` (the expected ones are among them).
        schema: A JSON schema that the arguments satisfy, in place of expected values (extra `schema`).
        which: `any` call, `all` of them (at least one), or the `last`.
        rel_tol: Relative tolerance of numbers.
        unordered: Paths of lists whose order does not count.
        reference: Dotted field of the row with the expected arguments.
        deadline: Seconds for schemas with patterns.
        threshold: Reward from which a rollout passes.
    """

    examples = (Example(_messages("get_order"), 1.0), Example(_messages(), 0.0), Example(_SILENT, 0.0))

    def __init__(
        self,
        name: str | None = None,
        *,
        expected: Mapping[str, Any] | None = None,
        match: Literal["exact", "subset"] = "exact",
        schema: Mapping[str, Any] | None = None,
        which: Literal["any", "all", "last"] = "any",
        rel_tol: float = 0.0,
        unordered: Seq[str] = (),
        reference: str = "privileged.reference",
        deadline: float = DEADLINE_S.value,
        threshold: float = 1.0,
    ) -> None:
        check_options(match=(match, ("exact", "subset")), which=(which, ("any", "all", "last")))
        if schema is not None and expected is not None:
            raise ParameterError("give expected arguments or a schema, not both", fix="combine two verifiers with All")
        self.schema_text = None if schema is None else json.dumps(schema, sort_keys=True)
        if self.schema_text is not None:
            from whileai_verify.structure import _validator

            _validator(self.schema_text)
        self.name, self.expected, self.match, self.which = name, expected, match, which
        self.rel_tol, self.unordered, self.reference = rel_tol, tuple(unordered), reference
        self.deadline, self.threshold = deadline, threshold

    def _check(self, expected: Any) -> Callable[[CallRecord], str | None]:
        def compare(call: CallRecord) -> str | None:
            if call.arguments is None or not _strict(call.arguments_text):
                return "the arguments are not a JSON object"
            if self.schema_text is not None:
                from whileai_verify.structure import schema_verdict

                result = schema_verdict(call.arguments, self.schema_text, self.deadline)
                if result["reward"] is None:
                    raise _NotScoredError(result)
                return None if result["reward"] == 1.0 else str(result["reason"])
            difference = first_difference(
                call.arguments, expected, subset=self.match == "subset", rel_tol=self.rel_tol, unordered=self.unordered
            )
            return None if difference is None else without_expected(difference)

        return compare

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        expected: Any = self.expected
        if expected is None and self.schema_text is None:
            expected = reference_of(row, self.reference)
            if expected is MISSING:
                return no_reference(self.reference)
            if not isinstance(expected, Mapping):
                return not_scored("error", f"{self.reference} is not an object")
        calls = _calls(row)
        if calls is None:
            return not_scored("missing", _NO_MESSAGES)
        calls = [c for c in calls if self.name in (None, c.name)]
        if not calls:
            return verdict(0, f"{self.name or 'no tool'} was not called" if self.name else "no tool was called")
        try:
            problems = [self._check(expected)(c) for c in (calls[-1:] if self.which == "last" else calls)]
        except _NotScoredError as error:
            return error.verdict
        right = (any if self.which == "any" else all)(p is None for p in problems)
        reason = "the arguments are as expected" if right else next(p for p in reversed(problems) if p)
        return verdict(right, reason, calls=len(calls))
