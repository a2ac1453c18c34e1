"""The exporters: rows in, files out, one class per target over one way of working.

Every export runs the installed checks on the rows first, leaves out what cannot be written and counts why, writes
beside the target and moves into place. What a target cannot be told (which turns are trained) is said in the report
as not enforced.

Example:
    >>> import tempfile
    >>> rows = [{"task_id": "t", "prompt": "2+2?", "final_text": "4", "reward": 1.0, "status": "ok"}]
    >>> report = Chat().export(rows, Path(tempfile.mkdtemp()) / "train.jsonl")
    >>> report.written, report.dropped
    (1, {})
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from whileai_export.card import card_text
from whileai_export.columns import FREE_FORM, as_text, column_types, column_values
from whileai_export.defaults import SHOWN_FLAGS
from whileai_export.files import MANIFEST, Written, commit, measured, staging, write_jsonl, write_text
from whileai_export.gathering import Tally, gather
from whileai_export.manifest import manifest_of, write_manifest
from whileai_export.options import Options
from whileai_export.settings import trainer_settings
from whileai_export.targets import TARGETS, Record, Target, token_ids
from whileai_kernel.errors import ParameterError
from whileai_kernel.lifecycle import Finding, check_rows, stage
from whileai_kernel.protocols import ExportReport
from whileai_kernel.rowio import read_rows
from whileai_kernel.rows import passed, task_key

__all__ = ["TRL", "Anthropic", "Chat", "OpenAI", "Options", "ShareGPT"]

SUFFIXES = (".jsonl", ".ndjson", ".json", ".gz", ".parquet")
"""Endings of the files that an export writes; `.gz` is compressed JSON Lines."""


class _Exporter:
    """What all exporters do; `target` says for whom."""

    target: ClassVar[str] = ""

    def export(
        self,
        rows: Iterable[Mapping[str, Any]] | str | Path,
        path: str | Path,
        *,
        overwrite: bool = False,
        allow: Collection[str] = (),
        **options: Any,
    ) -> ExportReport:
        """Write rows for the target.

        Args:
            rows: Rows, or the path of a JSONL file of rows. For `preference` also pairs that are there already:
                `{"prompt", "chosen", "rejected"}`, or an object with them under `pairs`.
            path: A file (`.jsonl`, `.parquet`), or a folder to write with manifest and card. Writing the same
                content again changes nothing; other content is replaced only with `overwrite`.
            overwrite: Replace other content that is there.
            allow: Names of error-level findings that do not stop the export, and of this plugin's own rules
                (`quotes_privileged`, `held_out`) that do not leave rows out.
            options: As `Options`.

        Returns:
            The report: records written, rows left out by reason, how the trainer is told what to train.

        Raises:
            ParameterError: An option is unknown, or the target holds other content.
            FindingsError: A check found something that stops the export.
            RowError: A column mixes text and numbers, or a value is no JSON.
        """
        target = TARGETS[self.target]
        chosen = Options.of(target, options)
        folder = _is_folder(path)
        names = [allow] if isinstance(allow, str) else list(allow)
        rows = getattr(rows, "pairs", rows)
        given: list[Mapping[str, Any]] = list(read_rows(rows) if isinstance(rows, str | Path) else rows)
        tally = Tally(rows=len(given))
        given = [row for row in map(_with_prompt, given) if not tally.misfit(row)]
        with stage("export", target=self.target, kind=chosen.kind, path=str(path), rows=len(given)) as st:
            findings = check_rows(given, st, names)
            return self._write(target, given, Path(path), folder, chosen, overwrite, names, findings, tally)

    def read(self, path: str | Path) -> Iterator[Record]:
        """Yield the records of an exported file or folder, JSON columns decoded.

        Raises:
            ParameterError: There is nothing to read.
        """
        from whileai_export.reading import read_records

        return read_records(Path(path))

    def _write(
        self,
        target: Target,
        rows: list[Mapping[str, Any]],
        path: Path,
        folder: bool,
        options: Options,
        overwrite: bool,
        allow: Collection[str],
        findings: list[Finding],
        tally: Tally,
    ) -> ExportReport:
        kind_of_file = options.file or ("parquet" if path.suffix == ".parquet" else "jsonl")
        columns = _columns(target, options, rows)
        records = self._records(target, rows, options, allow, tally, columns)
        with staging(path) as box:
            name = f"train.{kind_of_file}" if folder else path.name
            files = _write_records(box / name, kind_of_file, records, columns, options, tally, folder)
            written = sum(f.rows for f in files)
            settings = trainer_settings(
                target,
                options.kind,
                options.train,
                options.unroll,
                options.tokenizer is not None,
                options.train_arguments,
                options.pairs,
            )
            notes = _notes(target, options, tally, settings, rows)
            if options.references:
                files.append(
                    _write_references(box / ("references.jsonl" if folder else f"{path.stem}.references.jsonl"), rows)
                )
                notes.append(
                    f"{files[-1].name} holds private references: give it to the reward function, never to the model"
                )
            report = ExportReport(path, written, dict(tally.dropped), notes, {})
            manifest = manifest_of(
                target=target, options=options, report=report, files=files, rows=rows, findings=findings,
                columns=columns, settings=settings, declared=sorted(tally.declared), flags=tally.flags,
                name=path.name if not folder else ".",
            )  # fmt: skip
            if folder:
                write_text(box / "README.md", card_text(manifest))
            if options.manifest if options.manifest is not None else folder:
                write_manifest(box / (MANIFEST if folder else f"{path.stem}.manifest.json"), manifest)
            changed = commit(box, path, overwrite=overwrite, folder=folder)
        return ExportReport(path, written, dict(tally.dropped), tuple(notes), {**manifest, "changed": changed})

    def _records(
        self,
        target: Target,
        rows: list[Mapping[str, Any]],
        options: Options,
        allow: Collection[str],
        tally: Tally,
        columns: Mapping[str, str],
    ) -> Iterator[Record]:
        shape = shape_of(target, options)
        weights = options.train != "all" or options.unroll
        own = _own_columns(target, options)
        extra = {name: columns[name] for name in names_of(options.columns) if name not in own}
        for sample in gather(target, rows, options, allow, tally):
            if options.tokenizer is None:
                record = target.record(sample, shape, weights=weights)
            else:
                from whileai_export.tokens import TemplateProblem, token_record

                try:
                    record = token_record(sample, options.tokenizer, train_arguments=options.train_arguments)
                except TemplateProblem as err:
                    tally.dropped[f"template: {err.what}"] += 1
                    continue
            record.update(column_values(sample.row, extra, tally.declared))
            yield as_text(record, own, tally.declared) if options.as_text else record


def _is_folder(path: str | Path) -> bool:
    """Say whether an export goes to a folder; a file must have a suffix that says what is written.

    Raises:
        ParameterError: The suffix is of no file that an export writes.
    """
    place = Path(path)
    if place.is_dir() or str(path).endswith(("/", "\\")) or not place.suffix:
        return True
    if place.suffix.lower() not in SUFFIXES:
        raise ParameterError(
            f"an export writes no {place.suffix} file",
            why=f"it writes {', '.join(SUFFIXES)}, and folders",
            fix=f"name {place.with_suffix('.jsonl').name}, or a folder with / at its end",
        )
    return False


def _with_prompt(row: Any) -> Any:
    """Return a row that holds only messages with its first ask as prompt, so that it belongs to a task."""
    if not isinstance(row, Mapping) or row.get("task_id") is not None or row.get("prompt"):
        return row
    messages = row.get("messages") if isinstance(row.get("messages"), list) else row.get("prompt")
    asked = next((m for m in messages or () if isinstance(m, Mapping) and m.get("role") == "user"), None)
    return {**row, "prompt": asked["content"]} if asked and isinstance(asked.get("content"), str) else row


def shape_of(target: Target, options: Options) -> str:
    """Return the name of the record's shape: for a target that splits, what is not all is prompt and completion."""
    split = target.mask == "split" and options.kind == "sft" and (options.train != "all" or options.unroll)
    return "completion" if split else options.kind


def names_of(columns: Sequence[str]) -> list[str]:
    """Return the names of further columns as a list."""
    return [columns] if isinstance(columns, str) else list(columns)


def _own_columns(target: Target, options: Options) -> dict[str, str]:
    if options.tokenizer is not None:
        return {"input_ids": "ints", "labels": "ints"}
    return target.columns(shape_of(target, options))


def _columns(target: Target, options: Options, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    known = _own_columns(target, options)
    if options.as_text:
        known = {name: "text" if kind in FREE_FORM else kind for name, kind in known.items()}
    return {**known, **column_types(rows, [n for n in names_of(options.columns) if n not in known])}


def _write_records(
    path: Path,
    kind_of_file: str,
    records: Iterator[Record],
    columns: Mapping[str, str],
    options: Options,
    tally: Tally,
    folder: bool,
) -> list[Written]:
    if kind_of_file == "parquet":
        from whileai_export.parquet import write_parquet

        shard = options.shard_bytes if folder else None
        return write_parquet(path, records, columns, declared=tally.declared, shard_bytes=shard)
    return write_jsonl(path, records, shard_bytes=options.shard_bytes if folder else None, declared=tally.declared)


def _write_references(path: Path, rows: Sequence[Mapping[str, Any]]) -> Written:
    known: dict[str, Any] = {}
    for row in rows:
        private = row.get("privileged") or {}
        if "reference" in private:
            known.setdefault(task_key(row), private["reference"])
    write_jsonl(path, ({"task_id": task, "reference": reference} for task, reference in known.items()))
    return measured(path, len(known))


def _notes(
    target: Target, options: Options, tally: Tally, settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    notes = [*settings.get("notes", ())]
    if tally.unrolled:
        notes.append(
            f"{tally.unrolled} conversations were written as one sample per trained turn: "
            f"{target.name} has no weight per message"
        )
    notes += [f"{count} conversations {loss}" for loss, count in tally.lossy.items()]
    if target.name == "trl" and options.kind == "prompts" and any(row.get("tools") for row in rows):
        notes.append(
            "TRL's GRPOTrainer does not read the tools column: pass the functions as tools=, or the policy sees none"
        )
    if tally.flags:
        shown = "; ".join(tally.flags[: SHOWN_FLAGS.value])
        more = len(tally.flags) - SHOWN_FLAGS.value
        notes.append(f"{len(tally.flags)} flagged: {shown}{f'; and {more} more' if more > 0 else ''}")
    if tally.declared:
        notes.append(f"integers beyond 64 bits became text at {', '.join(sorted(tally.declared))}")
    if options.kind == "sft" and "reward" not in target.columns("sft"):
        failing = sum(1 for r in rows if passed(r) is False)
        if failing:
            notes.append(
                f"{failing} of {len(rows)} rows did not pass; select rows first if only passing ones should teach"
            )
    if options.kind == "rewarded":
        with_ids = sum(1 for r in rows if token_ids(r))
        if with_ids < len(rows):
            notes.append(
                f"tokens will be re-created by the trainer for {len(rows) - with_ids} of {len(rows)} rows: "
                "they hold no sampled token ids"
            )
    return notes


class Chat(_Exporter):
    """OpenAI chat JSONL with task, reward, status and the figures of the group on every record."""

    target = "chat"


class OpenAI(_Exporter):
    """OpenAI fine-tuning files: only what the platform reads; what is trained as a weight per message."""

    target = "openai"


class TRL(_Exporter):
    """TRL and Hugging Face templates: arguments as objects, tools as JSON text, prompt and completion split."""

    target = "trl"


class Anthropic(_Exporter):
    """Anthropic messages: system, blocks, results merged per turn."""

    target = "anthropic"


class ShareGPT(_Exporter):
    """ShareGPT conversations: calls and results as turns, ids as further keys."""

    target = "sharegpt"
