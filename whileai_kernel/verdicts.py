"""Any judge's return value becomes a Judgment; the statuses are decided here and nowhere else.

| returned | becomes |
| --- | --- |
| `True`, `False` | 1.0, 0.0 |
| number in [0, 1] | that reward |
| dict with `reward` or `score`, and `reason`, `markers`, `status`, `threshold` | those; every other key is evidence |
| `Judgment` | itself |
| `None`, or a dict whose reward is `None` | not scored: `missing` (or the `status` that the dict names) |
| NaN, infinity, out of [0, 1], text, any other type | not scored: `invalid` |
| an exception, a deadline | not scored: `error`, `timeout` |

Nothing becomes 0 that was not returned as 0. Text is never parsed for a number: that is the judge's own work.

Example:
    >>> to_judgment(True)[0].reward, to_judgment(7)[0].status, to_judgment({"score": 0.5, "n": 3})[0].evidence
    (1.0, 'invalid', {'n': 3})
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

from whileai_kernel.defaults import REWARD_TOLERANCE, THRESHOLD
from whileai_kernel.models import Judgment, Scorer
from whileai_kernel.rows import STATUSES

__all__ = ["error_judgment", "jsonable", "timeout_judgment", "to_judgment"]

MESSAGE_LIMIT = 2_000  # characters of an exception's text that are kept: enough to act on, too short to flood a row


def jsonable(value: Any) -> Any:
    """Return `value` if it can be written as JSON, else a copy in which what cannot is `{"$repr": text}`.

    Used for evidence, which a judge may fill with anything; rewards and texts never pass through here.
    """
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        pass_through = False
    else:
        pass_through = not isinstance(value, dict | list | tuple) or _plain(value)
    return value if pass_through else _jsonable(value, 0)


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and _plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(_plain(v) for v in value)
    return not isinstance(value, tuple)


def _jsonable(value: Any, depth: int) -> Any:
    if depth > 50:
        return {"$repr": f"{type(value).__name__} nested deeper than 50"}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 10_000 else {"$repr": f"integer of {value.bit_length()} bits"}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_jsonable(v, depth + 1) for v in items]
    item = _scalar(value)
    return _jsonable(item, depth + 1) if item is not value else {"$repr": _safe_repr(value)}


def _scalar(value: Any) -> Any:
    """Return the Python scalar inside a zero-dimensional array-like (numpy, torch), else the value itself."""
    if (
        not isinstance(value, bool | int | float | str)
        and getattr(value, "shape", None) == ()
        and hasattr(value, "item")
    ):
        return value.item()
    return value


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)[:MESSAGE_LIMIT]
    except Exception as err:  # noqa: BLE001 - a foreign __repr__ may raise anything, and the row must live
        return f"<{type(value).__name__}: its repr raised {type(err).__name__}>"


def _read_reward(value: Any, tolerance: float) -> tuple[float | None, str, str | None]:
    """Return `(reward, status, reason)` of one reward value."""
    value = _scalar(value)
    if value is None:
        return None, "missing", "no verdict was returned"
    if isinstance(value, bool):
        return float(value), "ok", None
    if not isinstance(value, Real | Decimal):
        return None, "invalid", f"reward is {type(value).__name__} ({_safe_repr(value)[:80]}), not a number"
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None, "invalid", "reward is too large for a float"
    if not math.isfinite(number):
        return None, "invalid", f"reward is {number}"
    if not -tolerance <= number <= 1.0 + tolerance:
        return None, "invalid", f"reward {number!r} is outside [0, 1]"
    return min(max(number, 0.0), 1.0) + 0.0, "ok", None


def _read_markers(value: Any, tolerance: float) -> tuple[dict[str, float | None], dict[str, Any]]:
    if not isinstance(value, Mapping):
        return {}, {} if value is None else {"markers": jsonable(value)}
    good: dict[str, float | None] = {}
    bad: dict[str, Any] = {}
    for name, mark in value.items():
        number, status, reason = _read_reward(mark, tolerance)
        good[str(name)] = number
        if status == "invalid":
            bad[str(name)] = reason
    return good, {"invalid_markers": bad} if bad else {}


def to_judgment(
    value: Any,
    scorer: Scorer | Mapping[str, Any] | None = None,
    threshold: float = THRESHOLD.value,
    tolerance: float = REWARD_TOLERANCE.value,
) -> tuple[Judgment, dict[str, float | None]]:
    """Turn what a judge returned into a Judgment and its markers; never raises on the value.

    Args:
        value: Whatever the judge returned.
        scorer: Who judged.
        threshold: Reward from which a rollout passes, unless the verdict names its own.
        tolerance: How far outside [0, 1] a reward is still rounding.

    Returns:
        The judgment, and marker values by name (`None` where a marker's value was not a number in [0, 1]; the
        evidence then says why).
    """
    who = Scorer.model_validate(scorer) if isinstance(scorer, Mapping) else scorer
    if isinstance(value, Judgment):
        return (value if value.scorer is not None or who is None else value.model_copy(update={"scorer": who})), {}
    markers: dict[str, float | None] = {}
    evidence: dict[str, Any] = {}
    reason: str | None = None
    status: str | None = None
    if isinstance(value, Mapping):
        fields = dict(value)
        markers, evidence = _read_markers(fields.pop("markers", None), tolerance)
        said = fields.pop("reason", None)
        reason = said if isinstance(said, str) or said is None else _safe_repr(said)
        status = fields.pop("status", None)
        limit = _read_reward(fields.pop("threshold", threshold), tolerance)[0]
        threshold = threshold if limit is None else limit
        given = {k: fields.pop(k) for k in ("reward", "score") if k in fields}
        evidence = {**jsonable({str(k): v for k, v in fields.items()}), **evidence}
        if not given and status is None:
            status, reason = "invalid", reason or "the verdict has neither reward nor score"
        values = list(given.values())
        if len(values) == 2 and values[0] != values[1] and None not in values:
            return _judgment(
                None, "invalid", "reward and score differ", who, {**evidence, **jsonable(given)}, threshold
            ), markers
        value = next((v for v in values if v is not None), None)
    reward, read_status, why = _read_reward(value, tolerance)
    if status in STATUSES and status != "ok":
        return _judgment(None, status, reason, who, evidence, threshold), markers
    if status not in (None, "ok"):
        return _judgment(None, "invalid", f"unknown status {status!r:.60}", who, evidence, threshold), markers
    return _judgment(reward, read_status, reason or why, who, evidence, threshold), markers


def _judgment(
    reward: float | None,
    status: str,
    reason: str | None,
    scorer: Scorer | None,
    evidence: dict[str, Any],
    threshold: float,
) -> Judgment:
    return Judgment.model_validate(
        {
            "reward": reward,
            "status": status,
            "reason": reason,
            "scorer": scorer,
            "evidence": evidence,
            "threshold": threshold,
        }
    )


def error_judgment(error: BaseException, scorer: Scorer | None = None, threshold: float = THRESHOLD.value) -> Judgment:
    """Return the verdict of a judge that raised: not scored, with the type and the text of the error."""
    text = _safe_repr(str(error))[1:-1] if str(error) else ""
    reason = f"{type(error).__name__}: {text}"[:MESSAGE_LIMIT] if text else type(error).__name__
    return _judgment(None, "error", reason, scorer, {"error_type": type(error).__name__}, threshold)


def timeout_judgment(seconds: float, scorer: Scorer | None = None, threshold: float = THRESHOLD.value) -> Judgment:
    """Return the verdict of a judge that did not answer within `seconds`: not scored."""
    return _judgment(None, "timeout", f"no verdict within {seconds:g} s", scorer, {"deadline_s": seconds}, threshold)
