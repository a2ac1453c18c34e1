"""The end of a run: its report, its warnings, its file, and the dataset that the caller gets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from whileai_kernel.dataset import Dataset
from whileai_kernel.errors import RowError
from whileai_kernel.rowio import read_rows, write_rows
from whileai_simulate.journal import JournalError
from whileai_simulate.landing import Groups, Landing
from whileai_simulate.report import SimulationReport, make_report
from whileai_simulate.written import count_written, kept_path

__all__ = ["SimulatedDataset", "finish", "finished_before"]


class SimulatedDataset(Dataset):
    """Rows of a simulation, with the report of the run and what the repeat policy decided.

    Attributes:
        report: Figures of the run; print it.
        groups: Per task: `{"state", "rollouts", "saved"}`.
        finished_before: The same call was finished already: its rows were read and nothing ran.
    """

    report: SimulationReport
    groups: Mapping[str, dict[str, Any]]
    finished_before: bool = False


def finish(landing: Landing, stopped: str | None, output: Path | None) -> SimulatedDataset:
    """Write the output, and return what landed.

    Args:
        landing: What landed.
        stopped: Why the run ended early, or `None`.
        output: File for the rows; written when the run is complete, else the journal keeps them.
    """
    call, source, journal = landing.call, landing.call.source, landing.journal
    wording = {"reworded": source.reworded, "kept_duplicates": source.kept_duplicates, "leaks": source.leaks}
    if journal is not None and output is not None and stopped is None:
        if output.exists() and not call.options.overwrite and not _holds(output, journal.rows()):
            raise JournalError(
                f"{output.name} exists and is not what this call writes",
                why=f"nothing is replaced unasked; every rollout is in {journal.path.name}",
                fix="move it away, or give another output= and this checkpoint=: that runs nothing again",
            )
        try:
            write_rows(output, journal.rows())
            if call.arguments["checkpoint"] is None:
                kept_path(journal.path).unlink(missing_ok=True)
                journal.finish({**_proof(output), "wording": wording})
        except OSError as err:
            raise JournalError(
                f"cannot write {output.name}: {err.strerror or err}", why=f"every rollout is in {journal.path.name}",
                fix="make room, then repeat the call: it runs nothing again",
            ) from err  # fmt: skip
    return _dataset(landing, stopped, wording)


def _holds(output: Path, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a file has these rows: an earlier process may have ended between writing them and saying so."""
    try:
        return all(mine == theirs for mine, theirs in zip_longest(rows, read_rows(output)))
    except (RowError, UnicodeError):
        return False


def finished_before(landing: Landing, output: Path) -> SimulatedDataset:
    """Return the rows of the same call that stand in its output already.

    Raises:
        JournalError: The output is not what the run wrote.
    """
    journal = landing.journal
    assert journal is not None
    note = journal.finished or {}
    if {k: note.get(k) for k in ("bytes", "sha256")} != _proof(output):
        raise JournalError(
            f"{output.name} has changed since this call wrote it", why="its rows are no longer those of the run",
            fix="give another output=, or pass options={'overwrite': True} to run it again",
        )  # fmt: skip
    landing.call.warnings.append(
        f"{output.name}: this call finished before; its rows were read, and the agent was not run"
    )
    last, seen = None, -1
    for row in read_rows(output):
        # Rows stand in the order of tasks and rollouts; a replay may hold one task twice, one behind the other.
        if row["task_id"] != last or row["index"] <= seen:
            last = row["task_id"]
            landing.ids.append(last)
        seen = row["index"]
        landing.count(len(landing.ids) - 1, seen, row)
    data = _dataset(landing, None, note["wording"])
    data.finished_before = True
    return data


def _proof(output: Path) -> dict[str, Any]:
    with output.open("rb") as file:
        return {"bytes": output.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _dataset(landing: Landing, stopped: str | None, wording: Mapping[str, int]) -> SimulatedDataset:
    call, tally = landing.call, landing.tally
    if stopped:
        call.warnings.append(f"stopped early: {stopped}; {tally.rows} of {landing.planned} rollouts landed")
    groups = Groups(landing, stopped is None)
    report = _report(landing, groups, stopped, wording)
    if report.truncated:
        share = report.truncated / report.rows
        call.warnings.append(
            f"{report.truncated} of {report.rows} rollouts ({share:.0%}) were cut by a length or turn limit: "
            "a reward of a cut reply says nothing about the agent"
        )
    if report.failed:
        first = next(iter(report.reasons), "")
        call.warnings.append(f"{report.failed} of {report.rows} rollouts failed, most often: {first}")
    call.warnings += [*_of_the_policy(landing), *_of_the_sides(landing, report)]
    if wording["kept_duplicates"]:
        call.warnings.append(f"{wording['kept_duplicates']} near-duplicate asks were kept: no other wording was found")
    provenance = {
        "stage": "simulate",
        "plugin": "whileai-simulate",
        **call.description(),
        "rules": {r.value: r.text for r in call.setting.rules.values()},
        "report": report.to_dict(),
        "rows": tally.rows,
    }
    data = SimulatedDataset(landing.rows(), provenance=provenance, warnings=call.warnings)
    data.report = report
    data.groups = groups
    return data


def _of_the_policy(landing: Landing) -> list[str]:
    """Say which clauses of the policy no situation is about, for want of room."""
    call = landing.call
    if call.count == len(call.source.fixed):
        return []
    met = set(landing.tally.axes.get("policy_rule", ()))
    missing = [value for value in call.setting.rules if value not in met]
    if not missing:
        return []
    return [
        f"{len(missing)} clauses of the policy are in none of the {landing.tally.tasks} situations, the first of them "
        f"{missing[0]!r}; every pair takes situations={len(call.grid.array.rows) + len(call.source.fixed)}"
    ]


def _of_the_sides(landing: Landing, report: SimulationReport) -> list[str]:
    """Return what has to be known of user and writer."""
    call, out = landing.call, []
    if report.user_failed:
        out.append(
            f"{report.user_failed} of {report.rows} rollouts failed because the simulated user did: they say nothing "
            "about the agent and are not scored"
        )
    offline = report.writer.get("offline", 0)
    if offline:
        most = next(iter(report.writer["reasons"]), "")
        out.append(
            f"{offline} of {offline + report.writer['written']} asks were worded offline, as the writer's could not be "
            f"used, most often: {most}"
        )
    out += [f"writer: {note}" for note in getattr(call.source.writer, "notes", ())]
    told = {"tokens": landing.call.ledger.spent("tokens"), "usd": landing.call.ledger.spent("usd")}
    out += [
        f"budget of {limit:g} {unit}: no row and no model reports any, so it held nothing"
        for unit, limit in (("tokens", call.budget.tokens), ("usd", call.budget.usd))
        if limit is not None and not told[unit] and report.rows
    ]
    out += [
        f"budget of {limit:g} {unit} was passed: {told[unit]:g} spent, as one rollout took more than any before it; "
        f"pass options={{'rollout_{unit}': ...}} with the most that one takes"
        for unit, limit in (("tokens", call.budget.tokens), ("usd", call.budget.usd))
        if limit is not None and told[unit] > limit + 1e-9
    ]
    unpriced = [side for side, used in report.sides.items() if used.get("model") and "cost_usd" not in used]
    if call.budget.usd is not None and unpriced:
        out.append(f"cost unknown: {', '.join(unpriced)}; the budget in usd holds what is known alone")
    return out


def _report(landing: Landing, groups: Groups, stopped: str | None, wording: Mapping[str, int]) -> SimulationReport:
    call = landing.call
    axes, array = call.setting.axes, call.grid.array
    coverage = landing.coverage.result()
    new = call.count - len(call.source.fixed)
    pairs = {
        "planned": coverage.planned if new else 0,
        "covered": coverage.covered if new else 0,
        "missing_count": len(coverage.missing) if new else 0,
        "missing": [list(map(list, cell)) for cell in coverage.missing[:50]] if new else [],
        "array_rows": len(array.rows),
        "infeasible": array.infeasible,
    }
    tolerance = call.options.share_tolerance
    return make_report(
        landing.tally,
        asked={axis: axes.asked(axis) for axis in axes.values if axis != "policy_rule"} if new else {},
        pairs=pairs,
        groups=groups.counts(),
        wording=wording,
        stopped=stopped,
        tolerance=tolerance if new >= 2 * len(array.rows) else 3 * tolerance,
        sides=call.ledger.to_dict(),
        writer=count_written(call.source.written) if call.source.written else {},
        estimate=None if call.estimate is None else call.estimate.to_dict(),
    )
