"""Rows of a deployed agent aim the grid: what fails there is asked for more often. Their text never enters.

Axis values are read from the rows where they stand, else from the calls: the tools that were called, and errors in
their results. Asks that share a run of words with a trace are dropped, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import normalise_messages, text_of, tool_calls
from whileai_kernel.rows import passed
from whileai_kernel.tools import Tool
from whileai_simulate import phrases
from whileai_simulate.axes import VOCABULARY
from whileai_simulate.dedup import shingles, words_in
from whileai_simulate.draw import hash64
from whileai_simulate.lexicon import words_of
from whileai_simulate.scenes import Setting, build_scene
from whileai_simulate.writer import word_scene

__all__ = ["LeakCheck", "aim", "spoken_words", "trace_texts"]

_SPOKEN = 200
"""Asks of another seed that are read for the writer's own words."""

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
        spoken: Further words that the offline writer says by itself, see `spoken_words`.
    """

    def __init__(
        self, traces: Iterable[Mapping[str, Any]], n: int, tools: Iterable[Tool] = (), spoken: Iterable[str] = ()
    ) -> None:
        self.n = n
        names = [name for tool in tools for name in (tool.name, *tool.parameters.get("properties", {}))]
        self._own = {w for text in own_phrases() for w in words_in(text)} | {w for n in names for w in words_of(n)}
        self._own.update(spoken)
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


def spoken_words(setting: Setting, situations: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return what the offline writer says whoever asks: words, and no numbers, of asks that no run of its seed makes.

    Frames and names of tools are not all: the beginnings of ids and the values of a schema are its own words too. Where
    they were not known as such, rows of an earlier run left no wording for the next one.
    """
    other = replace(setting, seed=hash64(setting.seed, "spoken"))
    words: set[str] = set()
    for n, axes in enumerate(islice(situations, _SPOKEN)):
        words.update(words_in(word_scene(other, build_scene(other, axes, n), n)))
    return {w for w in words if not any(c.isdigit() for c in w)}


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
    said = row.get("messages")
    for message in said if isinstance(said, list | tuple) else ():
        if isinstance(message, Mapping) and message.get("role") == "user":
            texts.append(text_of(message.get("content")))
    return [t for t in texts if t.strip()]


def _axes_of(row: Mapping[str, Any], known: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the labels of a row that name values of this run; rows of other tools say what they like."""
    axes = row.get("axes")
    if not isinstance(axes, Mapping):
        return {}
    return {k: v for k, v in axes.items() if k in known and isinstance(v, str) and v in known[k]}


def _failed(row: Mapping[str, Any]) -> bool:
    """Whether a trace failed; a reward that is no number says nothing."""
    reward = row.get("reward")
    scored = isinstance(reward, int | float) and not isinstance(reward, bool)
    return row.get("outcome") == "failed" or (scored and passed(row) is False)


def _calls(row: Mapping[str, Any]) -> list[Any]:
    """Return the calls of a trace; messages of another shape than chat say nothing of them."""
    try:
        return list(tool_calls(normalise_messages(row.get("messages") or ())))
    except RowError:
        return []


def aim(
    traces: Sequence[Mapping[str, Any]], tools: Sequence[Tool], weights: Mapping[str, dict[Any, float]]
) -> tuple[dict[str, dict[Any, float]], list[str]]:
    """Return weights that ask more often for what fails in the traces, and notes for people.

    A value's weight is 1 plus three times its share among failing rows. Weights that the caller set stay.
    """
    failing = [row for row in traces if _failed(row)]
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
            calls = _calls(row)
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
