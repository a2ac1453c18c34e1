"""Rows of a deployed agent aim the grid: what fails there is asked for more often. Their text never enters.

Axis values are read from the rows where they stand, else from the calls: the tools that were called, and errors in
their results. Asks that share a run of words with a trace are dropped, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.messages import text_of, tool_calls
from whileai_kernel.rows import passed
from whileai_kernel.tools import Tool
from whileai_simulate import phrases
from whileai_simulate.axes import VOCABULARY
from whileai_simulate.dedup import shingles, words_in
from whileai_simulate.lexicon import words_of

__all__ = ["LeakCheck", "aim", "trace_texts"]

_ERRORS = (
    ("timeout", r"time[d ]?.?out"),
    ("rate_limited", r"rate.?limit|too many"),
    ("permission_denied", r"permission|forbidden|denied"),
    ("malformed", r"malformed|not json|parse error"),
    ("stale", r"out of date|stale|cached"),
)


class LeakCheck:
    """Whether a text shares a run of words with any trace.

    Args:
        traces: Rows; their prompts and user turns are what must not enter.
        n: Words in a row that count as a leak.
        tools: Tools of the run, whose names are the writer's own words too.
    """

    def __init__(self, traces: Iterable[Mapping[str, Any]], n: int, tools: Iterable[Tool] = ()) -> None:
        self.n = n
        names = [name for tool in tools for name in (tool.name, *tool.parameters.get("properties", {}))]
        self._own = {w for text in own_phrases() for w in words_in(text)} | {w for n in names for w in words_of(n)}
        self._known: set[str] = set()
        for row in traces:
            for text in trace_texts(row):
                self._known |= shingles(text, n)
        # Frames of the offline writer are its own words, wherever they turn up.
        self._known -= {g for text in own_phrases() for g in shingles(text, n)}

    def __call__(self, text: str) -> bool:
        """Return whether the text leaks."""
        return not self._known.isdisjoint(shingles(text, self.n))

    def of_frames(self, text: str) -> bool:
        """Return whether a text of the offline writer leaks: frames that follow each other are its own words."""
        return any(not self._own.issuperset(run.split()) for run in self._known & shingles(text, self.n))


def own_phrases() -> list[str]:
    """Return the fixed parts of all frames of the offline writer."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.extend(part for part in re.split(r"\{\w+\}", value) if part.strip())
        elif isinstance(value, Mapping):
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                walk(inner)

    for name in phrases.__all__:
        walk(getattr(phrases, name))
    return found


def trace_texts(row: Mapping[str, Any]) -> list[str]:
    """Return what people said in a trace: its prompt and user turns."""
    texts = [str(row["prompt"])] if row.get("prompt") else []
    texts += [text_of(m.get("content")) for m in row.get("messages") or () if m.get("role") == "user"]
    return [t for t in texts if t.strip()]


def _axes_of(row: Mapping[str, Any], known: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the labels of a row that name values of this run; rows of other tools say what they like."""
    axes = row.get("axes")
    if not isinstance(axes, Mapping):
        return {}
    return {k: v for k, v in axes.items() if k in known and isinstance(v, str) and v in known[k]}


def aim(
    traces: Sequence[Mapping[str, Any]], tools: Sequence[Tool], weights: Mapping[str, dict[Any, float]]
) -> tuple[dict[str, dict[Any, float]], list[str]]:
    """Return weights that ask more often for what fails in the traces, and notes for people.

    A value's weight is 1 plus three times its share among failing rows. Weights that the caller set stay.
    """
    failing = [row for row in traces if passed(row) is False or row.get("outcome") == "failed"]
    out = {axis: dict(values) for axis, values in weights.items()}
    if not failing:
        return out, ["traces: no failing row, so the grid is not aimed"]
    names = {t.name for t in tools}
    known = {**VOCABULARY, "tool": tuple(names)}
    counts: dict[str, Counter[Any]] = {}
    for row in failing:
        values = _axes_of(row, known)
        for axis, value in values.items():
            counts.setdefault(axis, Counter())[value] += 1
        if "tool" not in values or "tool_condition" not in values:
            calls = tool_calls(row.get("messages") or ())
            if "tool" not in values:
                for name in {c.name for c in calls} & names:
                    counts.setdefault("tool", Counter())[name] += 1
            found = {kind for c in calls if c.result for kind, look in _ERRORS if re.search(look, c.result[:500], re.I)}
            if "tool_condition" not in values:
                for kind in found:
                    counts.setdefault("tool_condition", Counter())[kind] += 1
    for axis, counter in counts.items():
        mine = out.setdefault(axis, {})
        for value, count in counter.items():
            mine.setdefault(value, 1.0 + 3.0 * count / len(failing))
    seen = ", ".join(f"{axis}: {counter.most_common(1)[0][0]}" for axis, counter in counts.items())
    return out, [f"traces: {len(failing)} of {len(traces)} rows fail; aimed at {seen or 'nothing in particular'}"]
