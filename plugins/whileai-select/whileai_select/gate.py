"""`publish_gate`: one call that runs every guard for a purpose and returns findings.

It asks the checks of all installed plugins (`wai_check_rows`), adds what selection itself knows (dead groups, failing
rows in an SFT set, ties in a preference set, repeated tasks in an evaluation set), and, where the guard plugin is
installed, its scan and its comparison with evaluation rows. It changes nothing and trains nothing.

Example:
    >>> wrong = {"task_id": "t", "prompt": "q", "final_text": "a", "reward": 0.0, "status": "ok"}
    >>> report = publish_gate([wrong], purpose="sft")
    >>> report.ok, [f.name for f in report.findings if f.level == "error"]
    (False, ['select/failing_rows'])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

from whileai_kernel.errors import FindingsError, WhileaiError, unknown_name
from whileai_kernel.lifecycle import Finding, check_rows, stage
from whileai_kernel.messages import validate_messages
from whileai_kernel.rows import passed
from whileai_select._confounds import confounds
from whileai_select._rows import completeness, copy_key, is_junk, read_all, task_keys
from whileai_select.defaults import CONFOUND_ALPHA, DEAD_GROUPS
from whileai_select.signal import group_signal

__all__ = ["GateReport", "publish_gate"]

Row = Mapping[str, Any]
PURPOSES = ("sft", "rl", "preference", "eval")
Level = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class GateReport:
    """What the guards found.

    Attributes:
        purpose: What the rows are for.
        findings: Findings, errors first.
        allowed: Names of errors that the caller allows.
        rows: Rows looked at.
        not_checked: What could not be checked.
    """

    purpose: str
    findings: tuple[Finding, ...]
    allowed: tuple[str, ...]
    rows: int
    not_checked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing stops the rows."""
        return not any(f.level == "error" and f.name not in self.allowed for f in self.findings)

    def __str__(self) -> str:
        names = ", ".join(f"{f.name} ({f.level}, {f.count} rows)" for f in self.findings) or "nothing"
        missing = f" | not checked: {'; '.join(self.not_checked)}" if self.not_checked else ""
        return f"gate {self.purpose}: {'open' if self.ok else 'CLOSED'} | {self.rows} rows | found: {names}{missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "purpose": self.purpose,
            "ok": self.ok,
            "rows": self.rows,
            "findings": [f.to_dict() for f in self.findings],
            "allowed": list(self.allowed),
            "not_checked": list(self.not_checked),
        }

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(str(f))}<br>{escape(f.fix)}</li>" for f in self.findings)
        return f"<p>{escape(str(self))}</p><ul>{items}</ul>"

    def require(self) -> GateReport:
        """Return the report itself, or raise.

        Raises:
            FindingsError: An error-level finding is not allowed.
        """
        stopping = [f for f in self.findings if f.level == "error" and f.name not in self.allowed]
        if stopping:
            raise FindingsError(
                f"the rows are not fit for {self.purpose}: {stopping[0].message}",
                why="; ".join(str(f) for f in stopping),
                fix=f"{stopping[0].fix}; or pass allow=[{', '.join(repr(f.name) for f in stopping)}]",
                findings=stopping,
            )
        return self


def publish_gate(
    rows: Iterable[Row] | str | Path,
    *,
    purpose: str = "rl",
    against: Iterable[Row] | str | Path | None = None,
    allow: Collection[str] = (),
    scan: bool = True,
    dead_groups: float = DEAD_GROUPS.value,
) -> GateReport:
    """Run all guards on rows that are about to be used.

    Args:
        rows: Rows (for `"preference"`: pairs as made by `build_preference_pairs`), a dataset, or a JSONL path.
        purpose: `"sft"`, `"rl"`, `"preference"` or `"eval"`.
        against: Evaluation rows that must not be inside; for `"eval"`, the training rows.
        allow: Names of error-level findings to let pass.
        scan: Whether to scan for gamed rewards (needs the guard plugin).
        dead_groups: Share of groups without a reward difference from which the gate warns.

    Raises:
        ParameterError: The purpose is unknown.
    """
    if purpose not in PURPOSES:
        unknown_name("purpose", purpose, PURPOSES)
    found = read_all(rows)
    findings: list[Finding] = []
    missing: list[str] = []
    with stage(f"publish:{purpose}", rows=len(found)) as st:
        try:
            findings += check_rows(found, st)
        except FindingsError as err:
            # The gate collects; `require` is what raises.
            names = [f.name for f in err.findings]
            findings += check_rows(found, st, allow=names)
    if not found:
        findings.append(Finding("select/empty", "error", "there are no rows", "select or read rows first"))
    if purpose == "preference":
        findings += _preference(found)
    else:
        findings += [*_common(found, purpose), *_for_purpose(found, purpose, dead_groups)]
        if scan and purpose in ("rl", "sft"):
            findings += _scan(found, missing)
    if against is not None:
        findings += _against(found, against, missing)
    elif purpose != "preference":
        missing.append("no rows to compare with were given")
    order = {"error": 0, "warning": 1, "info": 2}
    findings.sort(key=lambda f: order[f.level])
    return GateReport(purpose, tuple(findings), tuple(allow), len(found), tuple(missing))


def _finding(
    name: str, level: Level, message: str, fix: str, rows: Sequence[Row], places: Sequence[int]
) -> Iterable[Finding]:
    if places:
        ids: list[str | int] = [str(rows[i]["rollout_id"]) if rows[i].get("rollout_id") else i for i in places[:5]]
        yield Finding(f"select/{name}", level, message, fix, len(places), tuple(ids))


def _common(rows: Sequence[Row], purpose: str) -> Iterable[Finding]:
    cut = [i for i, r in enumerate(rows) if completeness(r) == "truncated"]
    broke = [i for i, r in enumerate(rows) if completeness(r) == "failed"]
    empty = [i for i, r in enumerate(rows) if is_junk(r)] if purpose != "eval" else []
    torn = [
        i
        for i, r in enumerate(rows)
        if r.get("messages") and validate_messages(r["messages"], ends_on_call=r.get("finish_reason") == "tool_calls")
    ]
    level: Level = "error" if purpose == "sft" else "warning"
    yield from _finding(
        "truncated_rows", level, "replies were cut at the length limit", "drop them with select", rows, cut
    )
    yield from _finding("failed_rows", level, "runs broke before they ended", "drop them with select", rows, broke)
    yield from _finding(
        "empty_rows", level, "rows have no reply and no tool call", "drop them with select", rows, empty
    )
    yield from _finding(
        "torn_messages", "error", "a tool call and its result do not pair, and trainers refuse such rows",
        "look at messages.validate_messages(row['messages'])", rows, torn if purpose != "eval" else [],
    )  # fmt: skip


def _for_purpose(rows: Sequence[Row], purpose: str, dead_groups: float) -> Iterable[Finding]:
    unscored = [i for i, r in enumerate(rows) if passed(r) is None]
    if purpose == "sft":
        failing = [i for i, r in enumerate(rows) if passed(r) is False]
        yield from _finding(
            "failing_rows",
            "error",
            "rows below their threshold would be imitated",
            "use select(mode='sft')",
            rows,
            failing,
        )
        yield from _finding("unscored_rows", "warning", "rows were never scored", "grade them", rows, unscored)
        seen: set[str] = set()
        copies = [i for i, r in enumerate(rows) for key in [copy_key(r)] if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        yield from _finding("copies", "warning", "rows are copies of others", "use select(mode='sft')", rows, copies)
    elif purpose == "rl":
        yield from _finding("unscored_rows", "warning", "rows were never scored", "grade them", rows, unscored)
        signal = group_signal(rows)
        dead = signal.groups - signal.live
        if signal.groups and dead >= dead_groups * signal.groups:
            yield Finding(
                "select/dead_groups", "error" if dead == signal.groups else "warning",
                f"{dead} of {signal.groups} groups have no reward difference and carry no gradient",
                "use select(mode='rl')", signal.dead_rows,
            )  # fmt: skip
    else:
        firsts: dict[str, int] = {}
        keys = task_keys(rows)
        prompts: dict[str, str] = {}
        clash = []
        for i, (row, key) in enumerate(zip(rows, keys, strict=True)):
            firsts.setdefault(key, i)
            text = str(row.get("prompt"))
            if prompts.setdefault(text, key) != key:
                clash.append(i)
        yield from _finding(
            "repeated_prompts", "warning", "one prompt stands under several task ids and counts several times",
            "give equal tasks one id", rows, clash,
        )  # fmt: skip


def _preference(pairs: Sequence[Row]) -> Iterable[Finding]:
    ties = [i for i, p in enumerate(pairs) if p.get("margin") is not None and p["margin"] <= 0]
    same = [i for i, p in enumerate(pairs) if p.get("chosen") == p.get("rejected")]
    off = [i for i, p in enumerate(pairs) if p.get("on_policy") is False]
    yield from _finding("ties", "error", "chosen is not better than rejected", "build pairs with a margin", pairs, ties)
    yield from _finding("same_sides", "error", "chosen equals rejected", "drop these pairs", pairs, same)
    yield from _finding(
        "off_policy", "warning", "pairs were not sampled from the policy to be trained", "sample again", pairs, off
    )
    whole = all("chosen_length" in p and "rejected_length" in p for p in pairs)
    for test in confounds(pairs, CONFOUND_ALPHA.value) if whole else ():
        if test.found:
            yield Finding(
                "select/confounded_pairs", "warning",
                f"{test.name}: chosen has more in {test.share:.0%} of {test.n} pairs that differ (p {test.p:.2g})",
                "match on it, or balance the set", test.n,
            )  # fmt: skip


def _component(kind: str, name: str, missing: list[str]) -> Any:
    from whileai_kernel import make

    try:
        return make(kind, name)
    except WhileaiError:  # no such kind or name: the guard plugin is not installed
        missing.append(f"{name} is not installed")
        return None


def _scan(rows: Sequence[Row], missing: list[str]) -> Iterable[Finding]:
    scan = _component("statistics", "guard/hack_scan", missing)
    if scan is None or not rows:
        return
    report = scan(rows)
    if report.regime == "suspected_hack":
        yield Finding(
            "select/suspected_hack", "warning", report.sentence,
            "look at hack_scan(rows).table(); endorse what is wanted, or mend the grader", report.counts.get("used", 0),
        )  # fmt: skip
    if report.flagged:
        yield Finding(
            "select/grader_address", "warning", "replies speak to their grader", "drop them", len(report.flagged),
            tuple(report.flagged[:5]),
        )  # fmt: skip


def _against(rows: Sequence[Row], against: Iterable[Row] | str | Path, missing: list[str]) -> Iterable[Finding]:
    compare = _component("guards", "guard/contamination", missing)
    if compare is None:
        return
    report = compare(rows, against=against)
    missing.extend(report.not_checked)
    if report.flagged:
        yield Finding(
            "select/contaminated", "error", f"rows hold texts of the other set: {report}", "use decontaminate",
            len(report.flagged), tuple(report.flagged[:5]),
        )  # fmt: skip
