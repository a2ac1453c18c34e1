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

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from whileai_kernel.errors import ParameterError, RowError, nearest, unknown_name
from whileai_kernel.lifecycle import Finding, check_rows, stage
from whileai_kernel.protocols import ExportReport
from whileai_kernel.rowio import read_rows
from whileai_kernel.rows import group_by_task, passed, task_key

from whileai_export.card import card_text
from whileai_export.defaults import SHARD_BYTES, SHOWN_FLAGS
from whileai_export.files import MANIFEST, Written, commit, measured, staging, write_jsonl, write_text
from whileai_export.manifest import manifest_of, write_manifest
from whileai_export.preparing import prepare
from whileai_export.samples import KINDS, Sample, conversation_samples, group_figures, pair_samples, prompt_of, rank_pair
from whileai_export.settings import trainer_settings
from whileai_export.targets import TARGETS, Record, Target

__all__ = ["TRL", "Anthropic", "Chat", "OpenAI", "Options", "ShareGPT"]

HELD_OUT = ("holdout", "held_out", "test", "eval", "validation", "val")
RULES = ("quotes_privileged", "held_out")
"""Rules of this plugin that leave a row out and that `allow` can name."""


@dataclass(frozen=True, slots=True)
class Options:
    """How rows are written; the keyword arguments of `export`.

    Attributes:
        kind: `sft`, `preference`, `prompts`, `rewarded` or `eval`.
        train: What the loss covers: `all` assistant turns, the `last`, the `final` answer only, or positions.
        train_arguments: Cover the arguments of tool calls. `False` needs `tokenizer` to be enforced.
        unroll: One sample per trained assistant turn, with what that turn saw.
        pairs: For preference: `turn` cuts a pair at the first differing turn, `whole` keeps the rest.
        reasoning: `keep`, `strip` or `inline`; by default what the target reads.
        media: `drop` rows with parts other than text, or `keep`.
        bad_arguments: `flag` calls whose arguments are not JSON, or `drop` their rows.
        columns: Further keys of the row to write as columns; objects become JSON text.
        file: `jsonl` or `parquet`; by default from the suffix of the path.
        shard_bytes: Size of a shard when a folder is written.
        manifest: Write a manifest; by default when a folder is written.
        references: Write the private references to a file of their own for the reward side.
        tokenizer: For TRL: write token ids and labels instead of messages.
    """

    kind: str = "sft"
    train: Any = "all"
    train_arguments: bool = True
    unroll: bool = False
    pairs: str = "turn"
    reasoning: str | None = None
    media: str = "drop"
    bad_arguments: str = "flag"
    columns: Sequence[str] = ()
    file: str | None = None
    shard_bytes: int = SHARD_BYTES.value
    manifest: bool | None = None
    references: bool = False
    tokenizer: Any = None

    @classmethod
    def of(cls, target: Target, given: Mapping[str, Any]) -> Options:
        """Return the options of a call; an unknown name or word is an error with the nearest match.

        Raises:
            ParameterError: A name or a word is unknown, or two options exclude each other.
        """
        names = list(cls.__dataclass_fields__)
        for name in given:
            if name not in names:
                near = nearest(name, names)
                raise ParameterError(
                    f"export has no option {name!r}",
                    why=f"options are {', '.join(names)}",
                    fix=f"did you mean {near[0]!r}?" if near else "leave it out",
                )
        options = cls(**given)
        if options.kind not in KINDS:
            unknown_name("kind", options.kind, KINDS)
        if options.pairs not in ("turn", "whole"):
            unknown_name("pairs", options.pairs, ("turn", "whole"))
        if options.file not in (None, "jsonl", "parquet"):
            unknown_name("file", str(options.file), ("jsonl", "parquet"))
        if isinstance(options.train, str) and options.train not in ("all", "last", "final"):
            unknown_name("train", options.train, ("all", "last", "final"))
        if options.tokenizer is not None and (target.name != "trl" or options.kind != "sft"):
            raise ParameterError(
                "tokenizer= is for to='trl', kind='sft'", why="no other target reads token ids and labels", fix="leave it out"
            )
        return options


@dataclass(slots=True)
class _Tally:
    """What happened to the rows of one export."""

    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    unrolled: int = 0
    figures: dict[str, Any] = field(default_factory=dict)


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
            rows: Rows, or the path of a JSONL file of rows.
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
        names = [allow] if isinstance(allow, str) else list(allow)
        given = list(read_rows(rows)) if isinstance(rows, str | Path) else list(rows)
        with stage("export", target=self.target, kind=chosen.kind, path=str(path), rows=len(given)) as st:
            findings = check_rows(given, st, names)
            return self._write(target, given, Path(path), chosen, overwrite, names, findings)

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
        options: Options,
        overwrite: bool,
        allow: Collection[str],
        findings: list[Finding],
    ) -> ExportReport:
        folder = path.is_dir() or not path.suffix
        kind_of_file = options.file or ("parquet" if path.suffix == ".parquet" else "jsonl")
        tally = _Tally(rows=len(rows))
        columns = _columns(target, options)
        records = self._records(target, rows, options, allow, tally, columns)
        with staging(path) as box:
            name = f"train.{kind_of_file}" if folder else path.name
            files = _write_records(box / name, kind_of_file, records, columns, options, tally, folder)
            written = sum(f.rows for f in files)
            settings = trainer_settings(target, options.kind, options.train, options.unroll, options.tokenizer is not None)
            notes = _notes(target, options, tally, settings, rows)
            if options.references:
                files.append(_write_references(box / ("references.jsonl" if folder else f"{path.stem}.references.jsonl"), rows))
                notes.append(f"{files[-1].name} holds private references: give it to the reward function, never to the model")
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
        tally: _Tally,
        columns: Mapping[str, str],
    ) -> Iterator[Record]:
        shape = _shape(target, options)
        weights = options.train != "all" or options.unroll
        extra = _ExtraColumns(options.columns)
        encode: Callable[[Sample], Record]
        if options.tokenizer is not None:
            from whileai_export.tokens import token_record

            def encode(sample: Sample) -> Record:
                return token_record(sample, options.tokenizer, train_arguments=options.train_arguments)
        else:

            def encode(sample: Sample) -> Record:
                return target.record(sample, shape, weights=weights)

        for sample in _samples(target, rows, options, allow, tally):
            record = encode(sample)
            record.update(extra.of(sample.row))
            yield record


def _shape(target: Target, options: Options) -> str:
    """Return the name of the record's shape: for a target that splits, what is not all is prompt and completion."""
    split = target.mask == "split" and options.kind == "sft" and (options.train != "all" or options.unroll)
    return "completion" if split else options.kind


def _columns(target: Target, options: Options) -> dict[str, str]:
    if options.tokenizer is not None:
        return {"input_ids": "ints", "labels": "ints", **dict.fromkeys(options.columns, "text")}
    known = target.columns(_shape(target, options))
    return {**known, **{name: "any" for name in options.columns if name not in known}}


def _samples(
    target: Target, rows: list[Mapping[str, Any]], options: Options, allow: Collection[str], tally: _Tally
) -> Iterator[Sample]:
    reasoning = options.reasoning or target.reasoning
    ready: list[tuple[Mapping[str, Any], list[dict[str, Any]]]] = []
    figures = group_figures(rows) if "group" in "".join(target.columns(options.kind)) else {}
    one_by_one = options.kind in ("sft", "rewarded")
    for position, row in enumerate(rows):
        if options.kind != "eval" and row.get("split") in HELD_OUT and "held_out" not in allow:
            tally.dropped["held out"] += 1
            continue
        if options.kind in ("prompts", "eval") and not row.get("messages") and row.get("final_text") is None:
            row = {**row, "final_text": "."}  # only what comes before the reply is written
        done = prepare(row, reasoning=reasoning, media=options.media, bad_arguments=options.bad_arguments, allow=allow,
                       empty="keep" if options.kind in ("prompts", "eval", "rewarded") and target.name != "anthropic" else "drop")  # fmt: skip
        tally.flags += [f"row {row.get('rollout_id') or position}: {flag}" for flag in done.flags]
        reason = done.dropped
        if not reason and options.kind == "rewarded" and row.get("reward") is None:
            reason = "not scored"
        if not reason and target.name == "anthropic" and prompt_of([m for m in done.messages if m["role"] not in ("system", "developer")]) == []:
            reason = "does not begin with the user"
        messages = _without_tail(done.messages) if one_by_one else done.messages
        if not reason and one_by_one and target.name == "openai" and messages[-1]["role"] == "tool":
            reason = "ends on a tool result"
        if reason:
            tally.dropped[reason] += 1
        elif one_by_one:
            yield from _conversation(target, row, messages, options, figures.get(task_key(row)), tally)
        else:
            ready.append((row, done.messages))
    if options.kind == "preference":
        yield from _pairs(ready, options, tally)
    elif not one_by_one:
        yield from _tasks(ready, tally)


def _without_tail(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation without what was said to the assistant after its last turn: nothing follows it."""
    end = len(messages)
    while end and messages[end - 1]["role"] in ("user", "system", "developer"):
        end -= 1
    return messages[:end]


def _conversation(
    target: Target,
    row: Mapping[str, Any],
    messages: list[dict[str, Any]],
    options: Options,
    figures: Mapping[str, Any] | None,
    tally: _Tally,
) -> Iterator[Sample]:
    try:
        made = conversation_samples(row, messages, train=options.train, unroll=options.unroll, figures=figures)
    except ParameterError:
        if isinstance(options.train, str):
            raise
        tally.dropped["train names a message that is not the assistant's"] += 1
        return
    if not made:
        tally.dropped["no turn to train"] += 1
        return
    if options.kind == "rewarded" and target.mask == "split" and made[0].start is None or (
        target.mask == "split" and options.train != "all" and any(s.start is None for s in made)
    ):
        tally.unrolled += 1
        made = conversation_samples(row, messages, train=options.train, unroll=True, figures=figures)
    yield from made


def _pairs(
    ready: list[tuple[Mapping[str, Any], list[dict[str, Any]]]], options: Options, tally: _Tally
) -> Iterator[Sample]:
    chats = {id(row): messages for row, messages in ready}
    for members in group_by_task([row for row, _ in ready]).values():
        pair = rank_pair(members)
        if pair is None:
            tally.dropped["no pair: rewards of the task do not differ"] += len(members)
            continue
        made = pair_samples((pair[0], chats[id(pair[0])]), (pair[1], chats[id(pair[1])]), pairs=options.pairs)
        if isinstance(made, str):
            tally.dropped[f"no pair: {made}"] += len(members)
            continue
        if len(members) > 2:
            tally.dropped["not in a pair: neither the best nor the worst of the task"] += len(members) - 2
        yield made


def _tasks(ready: list[tuple[Mapping[str, Any], list[dict[str, Any]]]], tally: _Tally) -> Iterator[Sample]:
    chats = {id(row): messages for row, messages in ready}
    for members in group_by_task([row for row, _ in ready]).values():
        first = members[0]
        rewards = [float(r["reward"]) for r in members if r.get("reward") is not None]
        passes = [p for r in members if (p := passed(r)) is not None]
        figures = {
            "n": len(members),
            "scored": len(rewards),
            "mean_reward": sum(rewards) / len(rewards) if rewards else None,
            "pass_rate": sum(passes) / len(passes) if passes else None,
            "split": first.get("split"),
        }
        if len(members) > 1:
            tally.dropped["further rollouts of a task, which is written once"] += len(members) - 1
        prompt = prompt_of(chats[id(first)])
        yield Sample(first, prompt, (), len(prompt), figures=figures)


class _ExtraColumns:
    """Keys of the row that were asked for: objects as JSON text, and one type per column."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [names] if isinstance(names, str) else list(names)
        if "privileged" in self.names:
            raise ParameterError(
                "privileged is never a column", why="it is what the model must not see", fix="use references=True"
            )
        self.types: dict[str, type] = {}

    def of(self, row: Mapping[str, Any]) -> Record:
        """Return the columns of a row.

        Raises:
            RowError: A column holds text in one row and a number in another: loaders would turn "007" into 7.
        """
        import json

        from whileai_kernel.rows import strip_privileged

        out: Record = {}
        for name in self.names:
            value = strip_privileged(row.get(name))
            if isinstance(value, dict | list):
                value = json.dumps(value, ensure_ascii=False)
            if value is not None:
                kind = float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
                if self.types.setdefault(name, kind) is not kind:
                    raise RowError(
                        f"column {name!r} mixes {self.types[name].__name__} and {kind.__name__}",
                        why="a column has one type; a loader would silently change the values of the other",
                        fix=f"make {name} text in every row, or leave the column out",
                        field=name,
                    )
            out[name] = value
        return out


def _write_records(
    path: Path,
    kind_of_file: str,
    records: Iterator[Record],
    columns: Mapping[str, str],
    options: Options,
    tally: _Tally,
    folder: bool,
) -> list[Written]:
    if kind_of_file == "parquet":
        from whileai_export.parquet import write_parquet

        return write_parquet(path, records, columns, declared=tally.declared)
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
    target: Target, options: Options, tally: _Tally, settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    notes = [*settings.get("notes", ())]
    if tally.unrolled:
        notes.append(
            f"{tally.unrolled} conversations were written as one sample per trained turn: {target.name} has no weight per message"
        )
    if not options.train_arguments and options.tokenizer is None:
        notes.append("train_arguments=False is not enforced: a message is trained as a whole; pass tokenizer= to mask arguments")
    if tally.flags:
        shown = "; ".join(tally.flags[: SHOWN_FLAGS.value])
        more = len(tally.flags) - SHOWN_FLAGS.value
        notes.append(f"{len(tally.flags)} flagged: {shown}{f'; and {more} more' if more > 0 else ''}")
    if tally.declared:
        notes.append(f"integers beyond 64 bits became text at {', '.join(sorted(tally.declared))}")
    if options.kind == "sft" and "reward" not in target.columns("sft"):
        failing = sum(1 for r in rows if passed(r) is False)
        if failing:
            notes.append(f"{failing} of {len(rows)} rows did not pass; select rows first if only passing ones should teach")
    if options.kind == "rewarded":
        from whileai_export.targets import token_ids

        with_ids = sum(1 for r in rows if token_ids(r))
        if with_ids < len(rows):
            notes.append(f"tokens will be re-created by the trainer for {len(rows) - with_ids} of {len(rows)} rows: no sampled token ids")
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
