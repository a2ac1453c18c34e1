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

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

from whileai_kernel.defaults import REWARD_TOLERANCE, THRESHOLD
from whileai_kernel.errors import describe
from whileai_kernel.models import Judgment, Scorer
from whileai_kernel.rows import STATUSES

__all__ = ["error_judgment", "jsonable", "timeout_judgment", "to_judgment"]

MESSAGE_LIMIT = 2_000  # characters of a foreign text that are kept: enough to act on, too short to flood a row


def jsonable(value: Any, _inside: tuple[int, ...] = ()) -> Any:
    """Return a copy of `value` that can be written as JSON; what cannot is `{"$repr": text}` or `{"$float": text}`.

    Used for evidence, which a judge may fill with anything; rewards never pass through here.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):  # a surrogate pair in two halves becomes the character that it stands for
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, int):
        return int(value) if value.bit_length() < 10_000 else {"$repr": f"integer of {value.bit_length()} bits"}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if len(_inside) > 50 or id(value) in _inside:
        return {"$repr": f"{type(value).__name__} nested deeper than 50, or in itself"}
    inside = (*_inside, id(value))
    if isinstance(value, Mapping):
        return {jsonable(k if isinstance(k, str) else _repr(k)): jsonable(v, inside) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [
            jsonable(v, inside) for v in (sorted(value, key=_repr) if isinstance(value, set | frozenset) else value)
        ]
    item = _scalar(value)
    return jsonable(item, inside) if item is not value else {"$repr": jsonable(_repr(value))}


def _scalar(value: Any) -> Any:
    """Return the Python scalar inside a zero-dimensional array-like (numpy, torch), else the value itself."""
    if isinstance(value, bool | int | float | str) or getattr(value, "shape", None) != ():
        return value
    return value.item() if hasattr(value, "item") else value


def _repr(value: Any) -> str:
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
        return None, "invalid", f"reward is {type(value).__name__} ({_repr(value)[:80]}), not a number"
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None, "invalid", f"reward {_repr(value)[:80]} does not fit a float"
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
    try:
        return _read(value, who, threshold, tolerance)
    except Exception as err:  # noqa: BLE001 - a foreign value may raise anything when it is looked at
        return _judgment(None, "invalid", f"the verdict cannot be read: {describe(err)}", who, {}, threshold), {}


def _read(
    value: Any, who: Scorer | None, threshold: float, tolerance: float
) -> tuple[Judgment, dict[str, float | None]]:
    if isinstance(value, Judgment):
        return (value if value.scorer is not None or who is None else value.model_copy(update={"scorer": who})), {}
    if not isinstance(value, Mapping):
        reward, status, why = _read_reward(value, tolerance)
        return _judgment(reward, status, why, who, {}, threshold), {}
    fields = dict(value)
    markers, evidence = _read_markers(fields.pop("markers", None), tolerance)
    said, status = fields.pop("reason", None), fields.pop("status", None)
    limit = _read_reward(fields.get("threshold"), tolerance)[0]
    if limit is not None:
        threshold = limit
        del fields["threshold"]
    given = {k: fields.pop(k) for k in ("reward", "score") if fields.get(k) is not None}
    named = bool(given) or "reward" in fields or "score" in fields or status is not None
    fields = {k: v for k, v in fields.items() if k not in ("reward", "score")}
    readings = [_read_reward(v, tolerance) for v in given.values()] or [_read_reward(None, tolerance)]
    reward, found, why = readings[0]
    if not named:
        found, why = "invalid", "the verdict has neither reward nor score"
    elif status is not None and not (isinstance(status, str) and status in STATUSES):
        found, why = "invalid", f"unknown status {_repr(status)[:60]}"
    elif status not in (None, "ok"):
        found, why = status, None
    elif len(readings) == 2 and readings[0][0] != readings[1][0]:
        found, why = "invalid", "reward and score differ"
    if found != "ok":  # what was given stays on the row, as evidence
        reward, fields = None, {**fields, **given}
    reason = why if said is None else said if isinstance(said, str) else _repr(said)
    return _judgment(reward, found, reason, who, {**jsonable(fields), **evidence}, threshold), markers


def _judgment(
    reward: float | None, status: str, reason: str | None, who: Scorer | None, evidence: dict[str, Any], limit: float
) -> Judgment:
    fields = {"reward": reward, "status": status, "reason": jsonable(reason), "scorer": who}
    return Judgment.model_validate({**fields, "evidence": evidence, "threshold": limit})


def error_judgment(error: BaseException, scorer: Scorer | None = None, threshold: float = THRESHOLD.value) -> Judgment:
    """Return the verdict of a judge that raised: not scored, with the type and the text of the error."""
    evidence = {"error_type": type(error).__name__}
    return _judgment(None, "error", describe(error, MESSAGE_LIMIT), scorer, evidence, threshold)


def timeout_judgment(seconds: float, scorer: Scorer | None = None, threshold: float = THRESHOLD.value) -> Judgment:
    """Return the verdict of a judge that did not answer within `seconds`: not scored."""
    return _judgment(None, "timeout", f"no verdict within {seconds:g} s", scorer, {"deadline_s": seconds}, threshold)
