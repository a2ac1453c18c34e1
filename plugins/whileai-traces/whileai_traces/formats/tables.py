"""Prompt and completion in columns: CSV, TSV, JSON Lines and Parquet.

Columns are found by name (`prompt`, `question`, `input`, `instruction` and `completion`, `response`, `output`,
`answer`...), or named by the caller. Values of a CSV stay text, except the reward.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from whileai_kernel.errors import MissingDependencyError
from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score, leftovers
from whileai_traces.defaults import LIKELY, NAMED
from whileai_traces.files import OnProblem, json_records, open_bytes, plain_head, suffix_of
from whileai_traces.formats.base import JsonSource, Records, as_mapping

__all__ = ["PromptCompletion"]

PROMPTS = ("prompt", "question", "input", "instruction", "query")
COMPLETIONS = ("completion", "response", "output", "generation", "reply", "prediction", "model_output")
REFERENCES = ("reference", "answer", "target", "gold", "expected", "label")
REWARDS = ("reward", "score", "correct", "is_correct", "passed")
TASKS = ("task_id", "id", "example_id", "question_id")


class PromptCompletion(JsonSource):
    """One prompt and one completion per line.

    Args:
        prompt: Column of the prompt; by default found by name.
        completion: Column of the completion; by default found by name.
        reward: Column of the reward; by default found by name, none is fine.
        reference: Column of the private reference; by default found by name, none is fine.
        task_id: Column of the task id; by default found by name, else the prompt decides.
    """

    name = "prompt_completion"

    def __init__(
        self,
        prompt: str | None = None,
        completion: str | None = None,
        reward: str | None = None,
        reference: str | None = None,
        task_id: str | None = None,
    ) -> None:
        self.columns = {
            "prompt": prompt,
            "completion": completion,
            "reward": reward,
            "reference": reference,
            "task_id": task_id,
        }

    def sniff(self, path: Path, head: bytes) -> float:
        """Likely for a table whose header names a prompt and a completion."""
        head = plain_head(path, head)
        if head.startswith(b"PAR1"):
            return self.sniff_records([dict.fromkeys(_parquet_columns(path), "")])
        if suffix_of(path) in (".csv", ".tsv") or head.lstrip()[:1] not in (b"{", b"["):
            header = _header(head, path)
            return LIKELY.value if self._found(header) else 0.0
        return super().sniff(path, head)

    def sniff_records(self, records: list[Any]) -> float:
        """Fits when records name a prompt and a completion and neither is a conversation."""
        good = [
            r
            for r in records
            if isinstance(r, Mapping)
            and (found := self._found(list(r)))
            and not isinstance(r[found["prompt"]], list | Mapping)
            and not isinstance(r[found["completion"]], list | Mapping)
        ]
        return NAMED.value if records and len(good) == len(records) else 0.0

    def _found(self, names: list[str]) -> dict[str, str] | None:
        lower = {str(n).strip().lower(): n for n in names}
        found: dict[str, str] = {}
        choices = {
            "prompt": PROMPTS,
            "completion": COMPLETIONS,
            "reward": REWARDS,
            "reference": REFERENCES,
            "task_id": TASKS,
        }
        for role, options in choices.items():
            wanted = self.columns[role]
            match = wanted if wanted in names else next((lower[o] for o in options if o in lower), None)
            if match is not None and match not in found.values():
                found[role] = match
        if (
            "completion" not in found
            and self.columns["completion"] is None
            and "reference" in found
            and found["reference"] == "answer"
        ):
            found["completion"] = found.pop("reference")
        return found if {"prompt", "completion"} <= found.keys() else None

    def read(self, path: Path, *, on_problem: OnProblem) -> Iterator[Row]:
        """Yield one row per line of the table."""
        build = RowBuilder(self.name, path, on_problem)
        with open_bytes(path) as stream:
            head = stream.read(4096)
        records: Records
        if head.startswith(b"PAR1"):
            records = _parquet_records(path)
        elif head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"["):
            records = json_records(path, on_problem)
        else:
            records = _csv_records(path, head, on_problem)
        yield from self.rows(records, build)

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per record."""
        for where, record in records:
            record = as_mapping(record)
            found = self._found(list(record))
            if found is None:
                build.problem(
                    where, f"names no prompt and completion (columns: {', '.join(map(str, record)) or 'none'})"
                )
                continue
            prompt, completion = record[found["prompt"]], record[found["completion"]]
            if not isinstance(prompt, str) or not isinstance(completion, str):
                build.problem(where, "its prompt or its completion is not text")
                continue
            reward = _number(record[found["reward"]]) if "reward" in found else None
            reference = record.get(found.get("reference", ""))
            task = record.get(found.get("task_id", ""))
            row = build.row(
                where,
                [{"role": "user", "content": prompt}, {"role": "assistant", "content": completion}],
                task_id=str(task) if task not in (None, "") else None,
                scores=[Score(f"prompt_completion/{found['reward']}", reward)] if "reward" in found else (),
                privileged={"reference": reference} if reference not in (None, "") else None,
                rest=leftovers(record, found.values()),
            )
            if row is not None:
                yield row


def _number(value: Any) -> Any:
    """Return a reward cell as a number or a truth value; an empty cell is no reward, other text stays text."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if not text:
        return None
    if text in ("true", "yes", "false", "no"):
        return text in ("true", "yes")
    try:
        return float(text)
    except ValueError:
        return value


def _dialect(text: str, path: Path) -> str:
    line = text.split("\n", 1)[0]
    if suffix_of(path) == ".tsv":
        return "\t"
    return max((",", ";", "\t"), key=line.count)


def _header(head: bytes, path: Path) -> list[str]:
    text = head.decode("utf-8-sig", errors="replace")
    lines = csv.reader(io.StringIO(text), delimiter=_dialect(text, path))
    try:
        return [name.strip() for name in next(lines, [])]
    except csv.Error:
        return []


def _csv_records(path: Path, head: bytes, on_problem: OnProblem) -> Iterator[tuple[str, Any]]:
    delimiter = _dialect(head.decode("utf-8-sig", errors="replace"), path)
    csv.field_size_limit(2**31 - 1)
    with io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter)
        names = [name.strip() for name in next(reader, [])]
        while True:
            start = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as err:
                on_problem(ReadProblem(str(path), f"line {start}", f"is no CSV: {err}"))
                continue
            if cells is None:
                return
            if not any(cells):
                continue
            if len(cells) != len(names):
                on_problem(ReadProblem(str(path), f"line {start}", f"has {len(cells)} cells for {len(names)} columns"))
                continue
            yield f"line {start}", dict(zip(names, cells, strict=True))


def _arrow(path: Path) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError as err:
        raise MissingDependencyError(
            f"{path} is Parquet, and pyarrow is not installed", fix='pip install "whileai-traces[parquet]"'
        ) from err
    return parquet.ParquetFile(path)


def _parquet_columns(path: Path) -> list[str]:
    with _arrow(path) as file:
        return [str(n) for n in file.schema_arrow.names]


def _parquet_records(path: Path) -> Iterable[tuple[str, Any]]:
    number = 0
    with _arrow(path) as file:
        for batch in file.iter_batches():
            for record in batch.to_pylist():
                number += 1
                yield f"row {number}", record
