"""Pictures of reports as inline SVG, and their HTML: no plotting library, readable in dark and light pages.

Each function takes a report and returns text. A terminal gets the same numbers from `str(report)`.

Example:
    >>> interval_plot([("a", 0.5, 0.25, 0.75)], "pass@1").startswith("<svg")
    True
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from whileai_measure.columns import safe

if TYPE_CHECKING:
    from whileai_measure.changes import Comparison
    from whileai_measure.intervals import Estimate
    from whileai_measure.passat import PassAt

__all__ = [
    "comparison_html",
    "comparison_plot",
    "curve_plot",
    "differences_plot",
    "interval_plot",
    "pass_at_html",
    "pass_at_plot",
    "table",
]

INK, MUTED, GRID, BLUE, ORANGE = "#444", "#777", "#ccc", "#2b6cb0", "#c05621"
STYLE = 'font-family="system-ui, sans-serif" font-size="12"'


def esc(text: object) -> str:
    """Return text that is safe inside HTML and SVG and can be encoded."""
    return html.escape(safe(text if isinstance(text, str) else str(text), 200))


def _svg(width: int, height: int, title: str, body: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
    return (
        f'{head}role="img" style="vertical-align:top" {STYLE}><title>{esc(title)}</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text x="8" y="16" fill="{INK}" font-weight="600">{esc(title)}</text>{"".join(body)}</svg>'
    )


def _ticks(low: float, high: float) -> list[float]:
    span = high - low
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0) if span / s <= 6 or s == 1.0)
    first = -(-low // step)
    return [round(i * step, 6) for i in range(int(first), int(high / step + 1e-9) + 1)]


def interval_plot(
    items: Sequence[tuple[str, float, float, float]],
    title: str,
    *,
    domain: tuple[float, float] = (0.0, 1.0),
    zero: bool = False,
) -> str:
    """Return one line per item: a dot at the estimate and a bar over its interval.

    Args:
        items: `(label, value, low, high)` from top to bottom.
        title: Heading.
        domain: Ends of the axis.
        zero: Draw a line at 0.
    """
    low, high = domain
    left = 16 + min(220, 7 * max((len(safe(label)) for label, *_ in items), default=4))
    width, row, top = left + 420, 22, 30
    height = top + row * len(items) + 34
    body = []

    def x(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * 340

    base = top + row * len(items)
    for tick in _ticks(low, high):
        body.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{base}" stroke="{GRID}"/>')
        body.append(f'<text x="{x(tick):.1f}" y="{base + 16}" fill="{MUTED}" text-anchor="middle">{tick:g}</text>')
    if zero:
        body.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{top}" y2="{base}" stroke="{INK}" stroke-width="1.5"/>')
    for i, (label, value, lo, hi) in enumerate(items):
        y = top + row * i + row / 2
        body.append(
            f'<text x="{left - 8}" y="{y + 4:.1f}" fill="{INK}" text-anchor="end">{esc(safe(label, 30))}</text>'
        )
        body.append(
            f'<line x1="{x(lo):.1f}" x2="{x(hi):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{BLUE}" stroke-width="5" '
            'stroke-opacity="0.45"/>'
            f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="4" fill="{BLUE}"/>'
        )
        text = f"{value:+.2f} [{lo:+.2f}..{hi:+.2f}]" if zero else f"{value:.2f} [{lo:.2f}..{hi:.2f}]"
        body.append(f'<text x="{left + 348}" y="{y + 4:.1f}" fill="{INK}">{text}</text>')
    return _svg(width + 60, height, title, body)


def curve_plot(series: Sequence[tuple[str, Sequence[tuple[int, float, float, float]]]], title: str) -> str:
    """Return curves over k with bars for their intervals.

    Args:
        series: `(name, [(k, value, low, high), ...])`.
        title: Heading.
    """
    ks = sorted({k for _, points in series for k, *_ in points})
    left, top, wide, tall = 44, 30, 380, 190
    body = []

    def x(k: int) -> float:
        return left + (0.5 if len(ks) == 1 else 0.06 + 0.88 * ks.index(k) / (len(ks) - 1)) * wide

    def y(value: float) -> float:
        return top + (1 - value) * tall

    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        body.append(f'<line x1="{left}" x2="{left + wide}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{GRID}"/>')
        body.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" fill="{MUTED}" text-anchor="end">{tick:g}</text>')
    for k in ks:
        body.append(f'<text x="{x(k):.1f}" y="{top + tall + 16}" fill="{MUTED}" text-anchor="middle">k={k}</text>')
    for i, (name, points) in enumerate(series):
        colour, shift = (BLUE, ORANGE, INK)[i % 3], (i - (len(series) - 1) / 2) * 5
        path = " ".join(f"{x(k) + shift:.1f},{y(v):.1f}" for k, v, _, _ in points)
        dash = ' stroke-dasharray="6 3"' if i % 2 else ""
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for k, v, lo, hi in points:
            at = x(k) + shift
            body.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y(lo):.1f}" y2="{y(hi):.1f}" stroke="{colour}" '
                'stroke-width="4" stroke-opacity="0.35"/>'
                f'<circle cx="{at:.1f}" cy="{y(v):.1f}" r="3.5" fill="{colour}"/>'
            )
        if points:
            k, v, _, _ = points[-1]
            body.append(f'<text x="{left + wide + 8}" y="{y(v) + 4:.1f}" fill="{colour}">{esc(name)}</text>')
    return _svg(left + wide + 80, top + tall + 28, title, body)


def differences_plot(deltas: Sequence[float], low: float, high: float, title: str) -> str:
    """Return the paired differences sorted, with the mean and its interval as a band.

    Args:
        deltas: One difference per task, in [-1, 1].
        low: Lower bound of the mean difference.
        high: Upper bound.
        title: Heading.
    """
    ordered = sorted(deltas)
    step = max(1, len(ordered) // 400)
    shown = ordered[::step]
    reach = max((abs(d) for d in ordered), default=1.0) or 1.0
    left, top, wide, tall = 48, 30, 420, 180
    body = []

    def y(value: float) -> float:
        return top + (reach - min(max(value, -reach), reach)) / (2 * reach) * tall

    for tick in (-reach, -reach / 2, 0.0, reach / 2, reach):
        body.append(f'<line x1="{left}" x2="{left + wide}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{GRID}"/>')
        body.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" fill="{MUTED}" text-anchor="end">{tick:+.2g}</text>')
    bar = wide / max(len(shown), 1)
    for i, d in enumerate(shown):
        colour = BLUE if d > 0 else ORANGE
        a, b = min(y(d), y(0)), max(y(d), y(0))
        body.append(
            f'<rect x="{left + i * bar:.2f}" y="{a:.1f}" width="{max(bar - 0.5, 0.5):.2f}" '
            f'height="{max(b - a, 1):.1f}" fill="{colour}" fill-opacity="0.75"/>'
        )
    mean = sum(ordered) / len(ordered) if ordered else 0.0
    body.append(
        f'<rect x="{left}" y="{y(high):.1f}" width="{wide}" height="{max(y(low) - y(high), 1):.1f}" fill="{INK}" '
        f'fill-opacity="0.15"/><line x1="{left}" x2="{left + wide}" y1="{y(mean):.1f}" y2="{y(mean):.1f}" '
        f'stroke="{INK}" stroke-width="1.5"/>'
    )
    body.append(
        f'<text x="{left}" y="{top + tall + 16}" fill="{MUTED}">{len(ordered)} tasks, sorted; line and band: mean '
        f"{mean:+.3f} [{low:+.3f}..{high:+.3f}]</text>"
    )
    return _svg(left + wide + 16, top + tall + 26, title, body)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of plain cells."""
    head = "".join(f"<th>{esc(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{esc(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def report_html(lines: Sequence[str], *parts: str) -> str:
    """Return a report as HTML: its text lines, then tables and pictures."""
    text = "".join(f'<div style="white-space:pre-wrap">{html.escape(line)}</div>' for line in lines)
    return f'<div class="whileai-report">{text}{"".join(parts)}</div>'


def _item(label: str, e: Estimate) -> tuple[str, float, float, float] | None:
    return None if e.value is None or e.low is None or e.high is None else (label, e.value, e.low, e.high)


def pass_at_plot(report: PassAt) -> str:
    """Return the interval plot (per slice where there are slices) and the curves over k."""
    parts = {"all": report} | report.slices
    if report.slices:
        items = [_item(name, part.pass_1) for name, part in parts.items()]
        title = "pass@1 per slice"
    else:
        named = [("pass@1", report.pass_1)]
        if report.fractional:
            named.append(("mean reward", report.mean_reward))
        named += [(f"pass^{k}", e) for k, e in sorted(report.hat.items()) if k > 1]
        named += [(f"pass@{k}", e) for k, e in sorted(report.at.items()) if k > 1]
        items = [_item(name, e) for name, e in named]
        title = f"{report.tasks} tasks, {report.pass_1.confidence:.0%} intervals"
    out = interval_plot([item for item in items if item], title)
    if report.k > 1:
        series = []
        for name, values in (("pass@k", report.at), ("pass^k", report.hat)):
            points = [(1, _item(name, report.pass_1)), *((k, _item(name, e)) for k, e in values.items() if k > 1)]
            series.append((name, [(k, *item[1:]) for k, item in points if item]))
        out += curve_plot(series, "pass@k and pass^k")
    return out


def pass_at_html(report: PassAt) -> str:
    """Return the report as HTML for a notebook."""
    return report_html(str(report).split("\n"), pass_at_plot(report))


def comparison_plot(report: Comparison) -> str:
    """Return the interval of every change, and the paired differences of the target."""
    items = [
        (name, c.delta, c.low, c.high)
        for name, c in report.changes.items()
        if c.delta is not None and c.low is not None and c.high is not None
    ]
    if not items:
        return ""
    reach = max(0.05, *(max(abs(low), abs(high)) for *_, low, high in items))
    out = interval_plot(items, f"after - before: {report.verdict}", domain=(-reach, reach), zero=True)
    target = report.change
    if target is not None and target.deltas and target.low is not None and target.high is not None:
        out += differences_plot(target.deltas, target.low, target.high, f"{target.metric}: difference of each task")
    return out


def comparison_html(report: Comparison) -> str:
    """Return the comparison as HTML for a notebook."""
    return report_html(str(report).split("\n"), comparison_plot(report))
