"""The fluent objects: rows that know what can be done next.

`SimulationData` can be graded, `ScoredData` measured and selected, a `Selection` exported. Each method calls the
plugin that does the work and wraps its answer; nothing is computed here.

Example:
    >>> scored = rows(["2+2?"] * 2, ["4", "5"], [1, 0])
    >>> scored.select(mode="rl").export  # doctest: +ELLIPSIS
    <bound method ...>
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from whileai_kernel.dataset import Dataset
from whileai_kernel.rows import Row, make_rows

if TYPE_CHECKING:
    from whileai_kernel.protocols import ExportReport, LedgerEntry
    from whileai_measure import PassAt

__all__ = [
    "ScoredData",
    "Selection",
    "SimulationData",
    "asimulate",
    "grade",
    "read",
    "rows",
    "select",
    "simulate",
]


class _Data(Dataset):
    """Rows that can be graded and exported."""

    @classmethod
    def of(cls, data: Iterable[Row]) -> Self:
        """Wrap rows, keeping provenance, warnings and whatever else a plugin put on its dataset."""
        new = object.__new__(cls)
        if isinstance(data, Dataset):
            new.__dict__.update({k: v for k, v in vars(data).items() if k != "pass_at"})
        else:
            Dataset.__init__(new, data)
        return new

    def grade(self, judge: Any = None, **options: Any) -> ScoredData:
        """Grade every row with a judge or verifier; see `whileai_judge.grade` for the options.

        Args:
            judge: A callable, a registered name, `"file.py:function"` or an object; sync or async. By default the one
                that `wai.context`, `wai.configure` or `WHILEAI_JUDGE` names.
            options: `concurrency`, `deadline`, `threshold` and the others of the grading pipeline.
        """
        from whileai.settings import grade as run

        return run(self, judge, **options)

    def export(self, path: str | Path, **options: Any) -> ExportReport:
        """Write the rows as a file that a trainer reads; see `whileai_export.export` for the options."""
        from whileai_export import export

        return export(self, path, **options)


class SimulationData(_Data):
    """What a simulation returned: rows without verdicts; `report` says what was asked for and what happened."""


class ScoredData(_Data):
    """Rows with verdicts."""

    @functools.cached_property
    def pass_at(self) -> PassAt:
        """pass@1, pass^k, pass@k and headroom with intervals; `wai.pass_at(data, ...)` takes options."""
        from whileai_measure import pass_at

        return pass_at(self)

    def select(self, mode: str = "rl", **options: Any) -> Selection:
        """Keep the rows that teach; see `whileai_select.select` for the modes and options."""
        return select(self, mode=mode, **options)


class Selection(_Data):
    """Kept rows, with the reason for every row that was left out.

    Attributes:
        ledger: One entry per input row, in input order.
        report: Figures of the selection.
    """

    ledger: tuple[LedgerEntry, ...] = ()
    report: Mapping[str, Any] = {}

    @property
    def dropped(self) -> dict[str, int]:
        """Number of rows left out, by reason."""
        counts: dict[str, int] = {}
        for entry in self.ledger:
            if not entry.kept:
                counts[entry.reason] = counts.get(entry.reason, 0) + 1
        return counts

    def __str__(self) -> str:
        tasks = len({row.get("task_id") for row in self.rows})
        left = ", ".join(f"{n} {reason}" for reason, n in self.dropped.items()) or "none"
        return f"kept {len(self)} of {len(self.ledger)} rows in {tasks} tasks (left out: {left})"


def simulate(agent: Any, **options: Any) -> SimulationData:
    """Simulate an agent through many situations; the options are those of `whileai_simulate.simulate`."""
    from whileai_simulate import simulate as run

    return SimulationData.of(run(agent, **options))


async def asimulate(agent: Any, **options: Any) -> SimulationData:
    """`simulate` for callers that are already async."""
    from whileai_simulate import asimulate as run

    return SimulationData.of(await run(agent, **options))


def grade(rows: Iterable[Row], judge: Any, **options: Any) -> ScoredData:
    """Grade rows with a judge or verifier; the options are those of `whileai_judge.grade`."""
    from whileai_judge import grade as run

    return ScoredData.of(run(rows, judge, **options))


def read(path: Any, **options: Any) -> ScoredData:
    """Read rows from a file, folder or records in any format that a source knows; see `whileai_traces.read`."""
    from whileai_traces import read as run

    return ScoredData.of(run(path, **options))


def rows(
    prompts: Iterable[Any], completions: Iterable[Any], reward: Iterable[Any] | None = None, **columns: Any
) -> ScoredData:
    """Make rows from prompts and completions that already exist; see `whileai_kernel.rows.make_rows`.

    Args:
        prompts: One prompt per rollout: text, or a list of chat messages.
        completions: One completion per prompt.
        reward: One verdict per prompt; `None` is not scored.
        columns: `references`, `task_ids`, `markers`, `finish_reasons`, `system_prompt`, `tools`, `threshold`.
    """
    made = make_rows(prompts, completions, reward, **columns)
    return ScoredData(made, provenance={"stage": "rows", "rows": len(made)})


def select(rows: Iterable[Row], mode: str = "rl", **options: Any) -> Selection:
    """Keep the rows that teach; the options are those of `whileai_select.select`."""
    from whileai_select import select as run

    source = rows if isinstance(rows, Dataset) else Dataset(rows)
    chosen = run(source, mode=mode, **options)
    selection = Selection(
        (dict(row) for row in chosen.rows),
        provenance={**source.provenance, "select": {"mode": mode, **_plain(options)}},
        warnings=source.warnings,
    )
    selection.ledger, selection.report = tuple(chosen.ledger), dict(chosen.report)
    return selection


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    from whileai_kernel.verdicts import jsonable

    return {key: jsonable(value) for key, value in options.items()}
