"""What an eval set never reaches: axis values and pairs of them, tools, and rules given as text.

A number over situations says nothing about a situation that is not among them. Axes are read from the rows; values that
could occur but do not can only be found where they are declared (`axes=`). Rules are plain text patterns with a name.

Example:
    >>> rows = [{"axes": {"channel": "chat", "tone": "calm"}}, {"axes": {"channel": "mail", "tone": "angry"}}]
    >>> gap = coverage_gap(rows, axes={"channel": ["chat", "mail", "phone"]})
    >>> gap.never, gap.pairs, gap.possible_pairs
    (('channel=phone',), 2, 6)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from whileai_kernel.errors import ParameterError, RowError
from whileai_measure.blocks import RowsLike, few, row_stream, safe

__all__ = ["CoverageGap", "coverage_gap"]

Rule = str | Sequence[str] | Callable[[Mapping[str, Any]], bool]
"""A rule is reached by a row whose conversation holds the text (any of the texts, without case), or by a function."""


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """What a set of rows reaches and what it does not.

    Attributes:
        rows: Rows read.
        scored: Rows with a reward: what is reached but never scored is not measured either.
        without_axes: Rows without axes.
        axes: Rows per value, by axis; declared values that never occur have 0.
        pairs: Pairs of values of two axes that occur together.
        possible_pairs: Pairs of the known values.
        missing_pairs: Pairs that never occur together, as `(axis, value, axis, value)`.
        tools: Rows that call the tool, by name; tools that are offered and never called have 0.
        undeclared_tools: Tools that are called and not offered.
        rules: Rows that reach the rule, by name.
    """

    rows: int
    scored: int
    without_axes: int
    axes: dict[str, dict[str, int]]
    pairs: int
    possible_pairs: int
    missing_pairs: tuple[tuple[str, str, str, str], ...]
    tools: dict[str, int]
    undeclared_tools: tuple[str, ...]
    rules: dict[str, int]

    @property
    def never(self) -> tuple[str, ...]:
        """Axis values, tools and rules that no row reaches."""
        values = [f"{axis}={value}" for axis, counts in self.axes.items() for value, n in counts.items() if not n]
        tools = [f"tool {name}" for name, n in self.tools.items() if not n]
        return (*values, *tools, *(f"rule {name}" for name, n in self.rules.items() if not n))

    def __str__(self) -> str:
        unscored = f" ({self.rows - self.scored} not scored)" if self.scored < self.rows else ""
        parts = [f"{self.rows} rows{unscored}", f"never reached: {few(self.never) or 'nothing'}"]
        if self.possible_pairs:
            missing = [f"{a}={x} & {b}={y}" for a, x, b, y in self.missing_pairs]
            tail = f" (never: {few(missing)})" if missing else ""
            parts.append(f"pairs {self.pairs} of {self.possible_pairs}{tail}")
        if self.undeclared_tools:
            parts.append(f"called but not offered: {few(self.undeclared_tools)}")
        if self.without_axes and self.axes:
            parts.append(f"{self.without_axes} rows without axes")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return out | {
            "missing_pairs": [list(p) for p in self.missing_pairs],
            "undeclared_tools": list(self.undeclared_tools),
            "never": list(self.never),
        }

    def _repr_html_(self) -> str:
        from whileai_measure.plots import report_html, table

        cells = [(f"{axis}={value}", n) for axis, counts in self.axes.items() for value, n in counts.items()]
        cells += [(f"tool {name}", n) for name, n in self.tools.items()]
        cells += [(f"rule {name}", n) for name, n in self.rules.items()]
        return report_html([str(self)], table(["what", "rows"], cells))


def coverage_gap(
    rows: RowsLike,
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    rules: Mapping[str, Rule] | None = None,
    tools: Sequence[Any] | None = None,
) -> CoverageGap:
    """Return which situations, tools and rules an eval set never reaches.

    Args:
        rows: Rows, an iterator or a path.
        axes: Values that each axis can take; values seen in the rows are added.
        rules: By name: a text that the conversation must hold, several of which one must, or a function of the row.
        tools: Tools that are offered, by name or as tool dicts; tools on the rows are added.

    Raises:
        RowError: A row or its axes cannot be read.
        ParameterError: A rule is neither text nor callable.
    """
    matchers = {name: _matcher(name, rule) for name, rule in (rules or {}).items()}
    seen: dict[str, Counter[str]] = {
        axis: Counter(dict.fromkeys(map(_text, values), 0)) for axis, values in (axes or {}).items()
    }
    together: Counter[tuple[str, str, str, str]] = Counter()
    offered: dict[str, int] = dict.fromkeys((_tool_name(t) for t in tools or ()), 0)
    called: Counter[str] = Counter()
    reached: dict[str, int] = dict.fromkeys(matchers, 0)
    total = without = scored = 0
    for position, row in enumerate(row_stream(rows)):
        total += 1
        scored += row.get("reward") is not None
        values = row.get("axes")
        if values is not None and not isinstance(values, Mapping):
            raise RowError(f"axes must be a mapping, not {type(values).__name__}", row=position, field="axes")
        for field in ("tools", "messages"):
            if row.get(field) is not None and not isinstance(row[field], list | tuple):
                raise RowError(f"{field} must be a list, not {type(row[field]).__name__}", row=position, field=field)
        pairs = sorted((str(axis), _text(value)) for axis, value in (values or {}).items())
        without += not pairs
        for axis, value in pairs:
            seen.setdefault(axis, Counter())[value] += 1
        together.update((a, x, b, y) for (a, x), (b, y) in combinations(pairs, 2))
        offered |= dict.fromkeys((name for t in row.get("tools") or () if (name := _tool_name(t)) not in offered), 0)
        called.update(_called(row))
        for name, matches in matchers.items():
            reached[name] += bool(matches(row))
    known = {axis: list(counts) for axis, counts in sorted(seen.items())}
    possible = [(a, x, b, y) for a, b in combinations(known, 2) for x, y in product(known[a], known[b])]
    return CoverageGap(
        rows=total,
        scored=scored,
        without_axes=without,
        axes={axis: dict(counts) for axis, counts in sorted(seen.items())},
        pairs=len(together),
        possible_pairs=len(possible),
        missing_pairs=tuple(p for p in possible if p not in together),
        tools={name: called[name] for name in offered},
        undeclared_tools=tuple(sorted(name for name in called if offered and name not in offered)),
        rules=reached,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _tool_name(tool: Any) -> str:
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        inner = tool.get("function")
        name = inner.get("name") if isinstance(inner, Mapping) else tool.get("name")
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(name, str) or not name:
        raise ParameterError(f"a tool has no name: {safe(repr(tool))}", fix="pass names, tool dicts or @tool functions")
    return name


def _called(row: Mapping[str, Any]) -> set[str]:
    names = set()
    for message in row.get("messages") or ():
        for call in (message.get("tool_calls") if isinstance(message, Mapping) else None) or ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                names.add(function["name"])
    return names


def _matcher(name: str, rule: Rule) -> Callable[[Mapping[str, Any]], bool]:
    if callable(rule):
        return rule
    texts = [rule] if isinstance(rule, str) else list(rule)
    if not texts or not all(isinstance(t, str) and t.strip() for t in texts):
        raise ParameterError(
            f"rule {name!r} must be text, a list of texts or a function", fix='rules={"refund": "refund"}'
        )
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(t.strip())}(?!\w)" for t in texts), re.IGNORECASE)
    return lambda row: any(pattern.search(text) for text in _conversation(row))


def _conversation(row: Mapping[str, Any]) -> Iterable[str]:
    from whileai_kernel.messages import text_of

    for field in ("prompt", "final_text"):
        if isinstance(row.get(field), str):
            yield row[field]
    for message in row.get("messages") or ():
        if isinstance(message, Mapping) and message.get("role") not in ("system", "developer"):
            yield text_of(message.get("content"))
