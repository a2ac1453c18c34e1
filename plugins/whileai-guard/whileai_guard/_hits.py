"""The report of a decontamination: hits with spans side by side, counts, and what could not be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

RULES = ("task", "exact", "short", "near", "template", "semantic")
"""Rules in the order in which they are tried; the first that hits names the hit."""

MEANING = {
    "task": "both rows name the same task",
    "exact": "the texts are equal but for case, spaces, accents and punctuation",
    "short": "a short evaluation text stands whole inside the row",
    "near": "most words of the evaluation text are shared",
    "template": "the texts differ in numbers and names only",
    "semantic": "the embedder finds the texts alike",
}


@dataclass(frozen=True, slots=True)
class SpanPair:
    """A matched stretch in both texts.

    Attributes:
        start: First character in the training text.
        end: One past the last character.
        text: The training text's characters.
        against_start: First character in the evaluation text.
        against_end: One past the last character.
        against_text: The evaluation text's characters.
    """

    start: int
    end: int
    text: str
    against_start: int
    against_end: int
    against_text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Hit:
    """One training row that holds an evaluation text.

    Attributes:
        position: Position of the training row.
        rollout_id: Its rollout id, when it has one.
        rule: Which rule hit.
        against: Position of the evaluation row.
        against_id: Its rollout or task id, when it has one.
        field: Compared field of the training row.
        against_field: Compared field of the evaluation row.
        coverage: Share of the evaluation text's words that are shared; for `semantic`, the similarity.
        spans: Matched spans, longest first.
    """

    position: int
    rollout_id: str
    rule: str
    against: int
    against_id: str
    field: str
    against_field: str
    coverage: float
    spans: tuple[SpanPair, ...] = ()

    def __str__(self) -> str:
        shown = f": {self.spans[0].text[:60]!r}" if self.spans else ""
        return f"row {self.position} {self.rule} evaluation row {self.against} ({self.coverage:.0%}){shown}"

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as a plain dict."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "spans"}
        return {**plain, "spans": [s.to_dict() for s in self.spans]}


@dataclass(frozen=True)
class Decontaminated:
    """Clean rows and what was found.

    Attributes:
        rows: Rows without a dropped hit, in input order; empty when the input was a file.
        hits: Hits of every rule but `template`, by position.
        templates: Hits that differ in numbers and names only.
        dropped: Positions that left the result.
        counts: Rows per rule.
        n_rows: Training rows read.
        n_against: Evaluation rows read.
        not_checked: Sentences on what could not be checked.
        source: The training file, when the input was one.
    """

    rows: Sequence[Any]
    hits: tuple[Hit, ...]
    templates: tuple[Hit, ...]
    dropped: tuple[int, ...]
    counts: Mapping[str, int]
    n_rows: int
    n_against: int
    not_checked: tuple[str, ...] = ()
    source: Path | None = field(default=None, compare=False)

    @property
    def flagged(self) -> list[int]:
        """Positions of rows with a hit, template hits not among them."""
        return [hit.position for hit in self.hits]

    @property
    def clean(self) -> bool | None:
        """Whether nothing was found; `None` when no rule could run."""
        if any(line.startswith("no rule") for line in self.not_checked):
            return None
        return not self.hits

    def __str__(self) -> str:
        if self.clean is None:
            return f"decontaminate: not checked | {self.not_checked[0]}"
        found = ", ".join(f"{rule} {self.counts[rule]}" for rule in RULES if self.counts.get(rule)) or "nothing"
        return (
            f"decontaminate: {len(self.dropped)} of {self.n_rows} rows left out against {self.n_against} | "
            f"found: {found} | not checked: {'; '.join(self.not_checked) or 'nothing'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report, without the rows, as plain values."""
        return {
            "n_rows": self.n_rows,
            "n_against": self.n_against,
            "counts": dict(self.counts),
            "dropped": list(self.dropped),
            "hits": [h.to_dict() for h in self.hits],
            "templates": [h.to_dict() for h in self.templates],
            "not_checked": list(self.not_checked),
            "clean": self.clean,
        }

    def write(self, path: str | Path) -> int:
        """Write the clean rows as JSONL, streaming when the input was a file; return how many.

        Args:
            path: File to write; never the input itself.
        """
        from whileai_kernel.rowio import read_rows, write_rows

        if self.source is None:
            return write_rows(path, self.rows)
        leaving = set(self.dropped)
        return write_rows(path, (row for at, row in enumerate(read_rows(self.source)) if at not in leaving))

    def to_html(self, limit: int = 200) -> str:
        """Return a page that shows the matched spans side by side.

        Args:
            limit: Hits shown at most.
        """
        lines = []
        for hit in (*self.hits, *self.templates)[:limit]:
            left = _marked([(s.start, s.text) for s in hit.spans])
            right = _marked([(s.against_start, s.against_text) for s in hit.spans])
            lines.append(
                f"<tr><td>{hit.position}</td><td>{escape(hit.rollout_id)}</td><td>{hit.rule}</td>"
                f"<td>{hit.coverage:.0%}</td>"
                f"<td>{left}</td><td>{right}</td><td>{hit.against} {escape(hit.against_id)}</td></tr>"
            )
        more = len(self.hits) + len(self.templates) - limit
        tail = f"<p>{more} more hits are not shown.</p>" if more > 0 else ""
        items = "".join(f"<li>{escape(line)}</li>" for line in self.not_checked)
        rules = "".join(
            f"<tr><td>{rule}</td><td>{self.counts.get(rule, 0)}</td><td>{MEANING[rule]}</td></tr>" for rule in RULES
        )
        return (
            "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Decontamination</title><style>"
            "body{font:14px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}table.hits{width:100%}"
            "td,th{border:1px solid #bbb;padding:.4em;vertical-align:top;text-align:left}mark{background:#fe9}"
            f"</style></head><body><h1>Decontamination</h1><p>{escape(str(self))}</p>"
            f"<h2>Rules</h2><table><tr><th>rule</th><th>rows</th><th>meaning</th></tr>{rules}</table>"
            f"<h2>Not checked</h2><ul>{items or '<li>nothing was left unchecked</li>'}</ul><h2>Hits</h2>"
            "<table class='hits'><tr><th>row</th><th>rollout</th><th>rule</th><th>share</th><th>training text</th>"
            f"<th>evaluation text</th><th>evaluation row</th></tr>{''.join(lines)}</table>{tail}</body></html>"
        )

    def _repr_html_(self) -> str:
        return self.to_html(limit=50)


def _marked(spans: Sequence[tuple[int, str]]) -> str:
    """Return the spans in the order of the text, with an ellipsis where something lies between them."""
    return " &hellip; ".join(f"<mark>{escape(text)}</mark>" for _, text in sorted(spans)) or "&ndash;"
