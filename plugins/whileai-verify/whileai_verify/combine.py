"""Verifiers made of verifiers: All, Any, Weighted, Gate, Not.

A part that was not scored never becomes 0. `All` and `Any` decide only what is certain (three-valued logic): one
failed part fails `All` whatever the others are, one passed part passes `Any`; otherwise a part that was not scored
leaves the whole not scored. `Weighted` leaves out parts that had nothing to check (`missing`, `abstained`) and says
so; a part that broke leaves the whole not scored. An empty combination is an error.

Example:
    >>> both = All([lambda row: True, lambda row: {"reward": None, "status": "missing"}])
    >>> both({"final_text": "x"})["reward"] is None
    True
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any as Anything
from typing import ClassVar, Literal

from whileai_kernel.defaults import PASS_TOLERANCE
from whileai_kernel.errors import ParameterError
from whileai_kernel.models import Judgment
from whileai_kernel.protocols import Example
from whileai_kernel.verdicts import error_judgment, to_judgment
from whileai_verify.rowview import Verdict, check_options, not_scored, raw_reply_of, verdict

__all__ = ["All", "Any", "Gate", "Not", "Weighted"]

Part = Anything
Row = Mapping[str, Anything]


def resolve_part(part: Part) -> Callable[[Row], Anything]:
    """Return a verifier for a callable, a registered name, or `{"name": ..., **params}`."""
    if isinstance(part, str):
        from whileai_kernel.registry import make

        return make("verifiers", part)  # type: ignore[no-any-return]
    if isinstance(part, Mapping):
        from whileai_kernel.registry import make

        params = {k: v for k, v in part.items() if k != "name"}
        return make("verifiers", part["name"], **params)  # type: ignore[no-any-return]
    if not callable(part) or isinstance(part, type):
        raise ParameterError(
            f"a part must be a verifier, not {part!r:.60}", fix="pass an instance, a function, or a registered name"
        )
    return part  # type: ignore[no-any-return]


def _parts(parts: Anything) -> dict[str, Callable[[Row], Anything]]:
    if isinstance(parts, Mapping):
        named = {str(k): resolve_part(v) for k, v in parts.items()}
    elif isinstance(parts, Sequence) and not isinstance(parts, str):
        named = {str(i): resolve_part(p) for i, p in enumerate(parts)}
    else:
        raise ParameterError("parts must be a list of verifiers, or name to verifier")
    if not named:
        raise ParameterError("a combination needs at least one part", why="nothing checked is not a pass")
    return named


def _ask(part: Callable[[Row], Anything], row: Row) -> Anything:
    try:
        return part(row)
    except Exception as error:  # noqa: BLE001 - a part that breaks is "not scored", and the reason says why
        return error_judgment(error)


async def _await(value: Awaitable[Anything]) -> Anything:
    try:
        return await value
    except Exception as error:  # noqa: BLE001 - as in _ask
        return error_judgment(error)


def _judged(part: Callable[[Row], Anything], value: Anything) -> Judgment:
    return to_judgment(value, threshold=float(getattr(part, "threshold", 1.0)))[0]


def _passed(j: Judgment) -> bool | None:
    return None if j.reward is None else j.reward >= j.threshold - PASS_TOLERANCE.value


def _summary(judged: Mapping[str, Judgment]) -> dict[str, Anything]:
    return {
        name: {
            "reward": j.reward,
            "status": j.status,
            "reason": j.reason,
            **({"evidence": j.evidence} if j.evidence else {}),
        }
        for name, j in judged.items()
    }


class _Combination:
    """Asks every part, also async ones, then lets `_decide` make one verdict of the judgments."""

    parts: dict[str, Callable[[Row], Anything]]

    def __call__(self, row: Row) -> Anything:
        """Return the verdict on one row (a coroutine when a part is async)."""
        values = {name: _ask(part, row) for name, part in self.parts.items()}
        if any(inspect.isawaitable(v) for v in values.values()):
            return self._later(row, values)
        return self._judge(row, values)

    async def _later(self, row: Row, values: dict[str, Anything]) -> Verdict:
        done = {k: await _await(v) if inspect.isawaitable(v) else v for k, v in values.items()}
        return self._judge(row, done)

    def _judge(self, row: Row, values: Mapping[str, Anything]) -> Verdict:
        judged = {name: _judged(self.parts[name], value) for name, value in values.items()}
        return {**self._decide(row, judged), "parts": _summary(judged)}

    def _decide(self, row: Row, judged: Mapping[str, Judgment]) -> Verdict:
        raise NotImplementedError


def _open(judged: Mapping[str, Judgment]) -> tuple[str, str]:
    """Return status and reason of a combination that its parts leave open; broken outweighs missing."""
    left = {name: j.status for name, j in judged.items() if j.reward is None}
    order = ("error", "timeout", "invalid", "abstained", "missing")
    status = min(left.values(), key=order.index)
    return status, "not scored: " + ", ".join(f"{name} ({s})" for name, s in left.items())


def _yes(row: Row) -> bool:
    return bool(raw_reply_of(row).strip())


def _right(row: Row) -> Anything:
    return {"reward": float(raw_reply_of(row) == "right"), "reason": ""}


_EXAMPLES = (
    Example({"final_text": "right"}, 1.0),
    Example({"final_text": "wrong"}, 0.0),
    Example({"final_text": ""}, 0.0),
)


class All(_Combination):
    """1 when every part passes, 0 when one fails, not scored when that is open.

    Args:
        parts: Verifiers: a list, or name to verifier.
        missing: What a part without anything to check (`missing`) means: `open` leaves the whole not scored,
            `skip` leaves the part out and says so; when every part is left out the whole is not scored.
        threshold: Reward from which a rollout passes.
    """

    example_params: ClassVar[dict[str, Anything]] = {"parts": (_yes, _right)}

    examples = _EXAMPLES

    def __init__(self, parts: Anything, *, missing: Literal["open", "skip"] = "open", threshold: float = 1.0) -> None:
        check_options(missing=(missing, ("open", "skip")))
        self.parts, self.missing, self.threshold = _parts(parts), missing, threshold

    def _decide(self, row: Row, judged: Mapping[str, Judgment]) -> Verdict:
        used = {n: j for n, j in judged.items() if not (self.missing == "skip" and j.status == "missing")}
        failed = [n for n, j in used.items() if _passed(j) is False]
        if failed:
            return verdict(0, f"fails {', '.join(failed)}")
        if not used or any(j.reward is None for j in used.values()):
            return not_scored(*_open(used or judged))
        left_out = [n for n in judged if n not in used]
        return verdict(1, "every part passes" + (f"; not evaluated: {', '.join(left_out)}" if left_out else ""))


class Any(_Combination):
    """1 when a part passes, 0 when all fail, not scored when that is open.

    Args:
        parts: Verifiers: a list, or name to verifier.
        threshold: Reward from which a rollout passes.
    """

    example_params: ClassVar[dict[str, Anything]] = {"parts": (_right,)}

    examples = _EXAMPLES

    def __init__(self, parts: Anything, *, threshold: float = 1.0) -> None:
        self.parts, self.threshold = _parts(parts), threshold

    def _decide(self, row: Row, judged: Mapping[str, Judgment]) -> Verdict:
        held = [n for n, j in judged.items() if _passed(j)]
        if held:
            return verdict(1, f"passes {', '.join(held)}")
        if any(j.reward is None for j in judged.values()):
            return not_scored(*_open(judged))
        return verdict(0, "no part passes")


class Weighted(_Combination):
    """Weighted mean of the rewards of the parts.

    Args:
        parts: Verifiers: a list, or name to verifier.
        weights: One weight per part (a list, or by name), each at least 0, together above 0; equal by default.
        required: Names of parts without which the whole is not scored.
        missing: `skip` leaves out parts that had nothing to check (the rest keeps its proportions), `open` leaves
            the whole not scored. A part that broke always leaves the whole not scored.
        threshold: Reward from which a rollout passes.
    """

    example_params: ClassVar[dict[str, Anything]] = {"parts": (_right,)}

    examples = _EXAMPLES

    def __init__(
        self,
        parts: Anything,
        weights: Mapping[str, float] | Sequence[float] | None = None,
        *,
        required: Sequence[str] = (),
        missing: Literal["skip", "open"] = "skip",
        threshold: float = 1.0,
    ) -> None:
        check_options(missing=(missing, ("skip", "open")))
        self.parts = _parts(parts)
        given = weights if weights is not None else [1.0] * len(self.parts)
        named = dict(given) if isinstance(given, Mapping) else dict(zip(self.parts, given, strict=False))
        if set(named) != set(self.parts) or (not isinstance(given, Mapping) and len(given) != len(self.parts)):
            raise ParameterError(
                "weights and parts do not match", why=f"parts: {', '.join(self.parts)}", fix="give one weight per part"
            )
        self.weights = {n: float(w) for n, w in named.items()}
        if not all(0 <= w < float("inf") for w in self.weights.values()) or sum(self.weights.values()) <= 0:
            raise ParameterError("weights must be finite, at least 0, and together above 0")
        unknown = set(required) - set(self.parts)
        if unknown:
            raise ParameterError(
                f"required names no part: {', '.join(sorted(unknown))}", why=f"parts: {', '.join(self.parts)}"
            )
        self.required, self.missing, self.threshold = tuple(required), missing, threshold

    def _decide(self, row: Row, judged: Mapping[str, Judgment]) -> Verdict:
        empty = {n for n, j in judged.items() if j.status in ("missing", "abstained")}
        broken = {n for n, j in judged.items() if j.reward is None and n not in empty}
        blocking = broken | (empty & set(self.required)) | (empty if self.missing == "open" else set())
        if blocking:
            return not_scored(*_open({n: judged[n] for n in judged if n in blocking}))
        used = {n: self.weights[n] for n in judged if n not in empty}
        total = sum(used.values())
        if total <= 0:
            return not_scored("missing", "no part with a weight was scored")
        reward = sum(w * (judged[n].reward or 0.0) for n, w in used.items()) / total
        note = f"; not evaluated: {', '.join(sorted(empty))}" if empty else ""
        return verdict(
            min(1.0, reward),
            f"weighted mean of {len(used)} parts{note}",
            scored_weight=total / sum(self.weights.values()),
        )


class Gate(_Combination):
    """The reward of `score` where `gate` passes, 0 where it fails, not scored where that is open.

    `score` is not asked when the gate is shut.

    Args:
        gate: Verifier that has to pass, for example a format.
        score: Verifier whose reward counts.
        threshold: Reward from which a rollout passes.
    """

    example_params: ClassVar[dict[str, Anything]] = {"gate": _yes, "score": _right}

    examples = _EXAMPLES

    def __init__(self, gate: Part, score: Part, *, threshold: float = 1.0) -> None:
        self.parts = {"gate": resolve_part(gate), "score": resolve_part(score)}
        self.threshold = threshold

    def __call__(self, row: Row) -> Anything:
        """Return the verdict on one row (a coroutine when a part is async)."""
        first = _ask(self.parts["gate"], row)
        if inspect.isawaitable(first):
            return self._gate_later(row, first)
        return self._after_gate(row, first)

    async def _gate_later(self, row: Row, first: Awaitable[Anything]) -> Verdict:
        result = self._after_gate(row, await _await(first))
        done: Verdict = await result if inspect.isawaitable(result) else result
        return done

    def _after_gate(self, row: Row, first: Anything) -> Anything:
        if not _passed(_judged(self.parts["gate"], first)):
            return self._judge(row, {"gate": first})
        second = _ask(self.parts["score"], row)
        if inspect.isawaitable(second):
            return self._later(row, {"gate": first, "score": second})
        return self._judge(row, {"gate": first, "score": second})

    def _decide(self, row: Row, judged: Mapping[str, Judgment]) -> Verdict:
        gate = _passed(judged["gate"])
        if gate is None:
            return not_scored(*_open({"gate": judged["gate"]}))
        if not gate:
            return verdict(0, "the gate fails")
        score = judged["score"]
        return (
            not_scored(*_open({"score": score}))
            if score.reward is None
            else verdict(score.reward, score.reason or "the gate passes")
        )


class Not(_Combination):
    """One minus the reward of a part; a reply that is empty is 0, because silence shows nothing.

    Args:
        part: The verifier to turn round.
        threshold: Reward from which a rollout passes.
    """

    example_params: ClassVar[dict[str, Anything]] = {"part": _right}

    examples = (
        Example({"final_text": "wrong"}, 1.0),
        Example({"final_text": "right"}, 0.0),
        Example({"final_text": ""}, 0.0),
    )

    def __init__(self, part: Part, *, threshold: float = 1.0) -> None:
        self.parts, self.threshold = {"part": resolve_part(part)}, threshold

    def _decide(self, row: Row, judged: Mapping[str, Judgment]) -> Verdict:
        if not raw_reply_of(row).strip() and not any(m.get("tool_calls") for m in row.get("messages") or ()):
            return verdict(0, "the run did nothing")
        part = judged["part"]
        return not_scored(*_open(judged)) if part.reward is None else verdict(1.0 - part.reward, "turned round")
