"""Results of evaluation harnesses: inspect-ai logs, lm-evaluation-harness samples, promptfoo results.

Scores become judgments with their scorer named; the target or reference is private. A sample with several scores
has the first as its verdict (or the one that `score=` names) and keeps the others beside it.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score, leftovers
from whileai_traces.defaults import CERTAIN, LIKELY
from whileai_traces.files import OnProblem, loads, zstd_stream
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping

__all__ = ["InspectLog", "LmEvalSamples", "PromptfooResults"]

INSPECT_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Letters of inspect-ai scores as its own metrics count them."""

STOPS = {"max_tokens": "length", "model_length": "length"}


def first_named(scores: list[Score], wanted: str | None) -> list[Score]:
    """Return scores with the wanted one (by full id or last part) in front."""
    if wanted is None:
        return scores
    chosen = [s for s in scores if wanted in (s.scorer, s.scorer.rpartition("/")[2])]
    return [*chosen, *(s for s in scores if s not in chosen)]


class InspectLog(JsonSource):
    """Logs of inspect-ai: `.eval` archives (zstd members) and `.json` files.

    Args:
        score: Name of the scorer whose value is the verdict; by default the first.
    """

    name = "inspect"

    def __init__(self, score: str | None = None) -> None:
        self.score = score

    def sniff(self, path: Path, head: bytes) -> float:
        """Certain for an archive with a header and samples, and for a JSON log."""
        if head.startswith(b"PK"):
            try:
                with zipfile.ZipFile(path) as archive:
                    names = archive.namelist()
            except (zipfile.BadZipFile, OSError):
                return 0.0
            return CERTAIN.value if any(n in ("header.json", "_journal/start.json") for n in names) else 0.0
        return super().sniff(path, head)

    def sniff_records(self, records: list[Any]) -> float:
        """Certain for a log document."""
        for record in records:
            keys = as_mapping(record).keys()
            if {"version", "status", "eval"} <= keys and "task" in as_mapping(record["eval"]):
                return CERTAIN.value
        return 0.0

    def read(self, path: Path, *, on_problem: OnProblem) -> Iterator[Row]:
        """Yield one row per sample and epoch."""
        with path.open("rb") as stream:
            archive = stream.read(2) == b"PK"
        if not archive:
            yield from super().read(path, on_problem=on_problem)
            return
        build = RowBuilder(self.name, path, on_problem)
        members = dict(_members(path, on_problem))
        header = members.get("header.json") or members.get("_journal/start.json") or {}
        for name, sample in members.items():
            if name.startswith("samples/"):
                yield from self._sample(name, sample, as_mapping(header.get("eval")), build)

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per sample of each log document."""
        for where, record in records:
            log = as_mapping(record)
            if not isinstance(log.get("samples"), list):
                build.problem(where, "is a log without samples")
                continue
            for number, sample in enumerate(log["samples"], start=1):
                yield from self._sample(f"{where}, sample {number}", sample, as_mapping(log.get("eval")), build)

    def _sample(self, where: str, sample: Any, spec: Mapping[str, Any], build: RowBuilder) -> Iterator[Row]:
        sample = as_mapping(sample)
        if not isinstance(sample.get("messages"), list):
            build.problem(where, "has no messages")
            return
        attached = as_mapping(sample.get("attachments"))
        messages = [_inspect_message(m, attached) for m in sample["messages"]]
        scores = []
        for name, value in as_mapping(sample.get("scores")).items():
            value = as_mapping(value)
            recorded = value.get("value")
            shown = INSPECT_VALUES.get(recorded, recorded) if isinstance(recorded, str) else recorded
            evidence = {k: v for k in ("answer", "metadata") if (v := value.get(k)) not in (None, {})}
            scores.append(Score(f"inspect/{name}", shown, reason=value.get("explanation"), evidence=evidence))
        output = as_mapping(sample.get("output"))
        choice = as_mapping(next(iter(as_list(output.get("choices"))), None))
        stop = choice.get("stop_reason")
        error, limit = as_mapping(sample.get("error")), sample.get("limit")
        epoch = sample.get("epoch")
        used = ("id", "epoch", "input", "target", "messages", "output", "scores", "metadata", "events", "error",
                "attachments", "events_data", "model_usage", "choices")  # fmt: skip
        row = build.row(
            where,
            messages,
            task_id=str(sample.get("id")),
            index=epoch - 1 if isinstance(epoch, int) and epoch >= 1 else None,
            scores=first_named(scores, self.score),
            tools=_inspect_tools(sample),
            privileged={"reference": sample["target"]} if sample.get("target") not in (None, "", []) else None,
            rest={k: v for k, v in leftovers(sample, used).items() if v not in (None, {}, [])},
            finish_reason=STOPS.get(str(stop), stop) if isinstance(stop, str) else None,
            outcome="failed" if error else ("truncated" if limit else None),
            error={"type": "recorded", "message": str(error.get("message"))} if error else None,
            policy={"model": spec.get("model")} if spec.get("model") else None,
            usage=dict(as_mapping(sample.get("model_usage"))),
            axes=dict(as_mapping(sample.get("metadata"))),
        )
        if row is not None:
            row["lineage"]["task"] = spec.get("task")
            yield row


def _inspect_message(message: Any, attached: Mapping[str, Any]) -> Any:
    message = as_mapping(message)
    out: dict[str, Any] = {"role": message.get("role"), "content": _attach(message.get("content"), attached)}
    for key in ("tool_calls", "tool_call_id", "error"):
        if message.get(key):
            out[key] = _attach(message[key], attached)
    return out


def _attach(value: Any, attached: Mapping[str, Any]) -> Any:
    """Return a value with references to attachments replaced by what they refer to."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attached.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_attach(v, attached) for v in value]
    if isinstance(value, Mapping):
        return {k: _attach(v, attached) for k, v in value.items()}
    return value


def _inspect_tools(sample: Mapping[str, Any]) -> list[Any]:
    for event in as_list(sample.get("events")):
        if as_mapping(event).get("event") == "model" and as_list(event.get("tools")):
            return as_list(event["tools"])
    return []


def _members(path: Path, on_problem: OnProblem) -> Iterator[tuple[str, Any]]:
    """Yield the JSON members of an archive; zstd members (which zipfile reads from Python 3.14 on) included."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        for info in archive.infolist():
            if not (info.filename == "header.json" or info.filename.startswith(("samples/", "_journal/start"))):
                continue
            try:
                raw.seek(info.header_offset)
                head = raw.read(30)
                name_length, extra_length = struct.unpack("<HH", head[26:30])
                raw.seek(info.header_offset + 30 + name_length + extra_length)
                yield info.filename, loads(_unpack(raw.read(info.compress_size), info.compress_type).decode("utf-8"))
            except (ValueError, struct.error, zlib.error) as err:
                on_problem(ReadProblem(str(path), info.filename, f"cannot be read: {err}"))


def _unpack(data: bytes, method: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return data
    if method == zipfile.ZIP_DEFLATED:
        return zlib.decompress(data, -15)
    if method != 93:
        raise ValueError(f"compression method {method} is unknown")
    with zstd_stream(io.BytesIO(data), "a member of the .eval archive") as stream:
        return stream.read()


class LmEvalSamples(JsonSource):
    """Samples of lm-evaluation-harness (`samples_<task>_<time>.jsonl`), one row per document and repeat.

    Args:
        metric: Name of the metric that is the verdict; by default the first recorded one.
        filter: Name of the filter whose records are read, when a file holds several; by default the first met.
    """

    name = "lm_eval"

    def __init__(self, metric: str | None = None, filter: str | None = None) -> None:
        self.metric, self.filter = metric, filter

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when records have responses and their filtered ones."""
        hits = [
            r
            for r in records
            if {"doc_id", "resps"} <= as_mapping(r).keys() or {"doc_id", "filtered_resps"} <= as_mapping(r).keys()
        ]
        return CERTAIN.value if hits else 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per document and repeat."""
        chosen = self.filter
        task = (
            build.path.name.removesuffix(".gz").removesuffix(".jsonl").removeprefix("samples_").rpartition("_")[0]
            or build.path.stem
        )
        for where, record in records:
            record = as_mapping(record)
            if "doc_id" not in record:
                build.problem(where, "has no doc_id")
                continue
            name = record.get("filter")
            if name is not None:
                chosen = chosen or str(name)
                if str(name) != chosen:
                    continue
            yield from self._document(where, record, task, build)

    def _document(self, where: str, record: Mapping[str, Any], task: str, build: RowBuilder) -> Iterator[Row]:
        prompt = _lm_eval_prompt(record.get("arguments"))
        replies = as_list(record.get("resps"))
        replies = replies[0] if replies and isinstance(replies[0], list) else replies
        texts = [r for r in replies if isinstance(r, str)]
        if prompt is None or not texts:
            build.problem(where, "holds no generated text (log-likelihood requests have none)")
            return
        metrics = record.get("metrics")
        names = [str(m) for m in metrics] if isinstance(metrics, list) else [
            k for k, v in record.items() if isinstance(v, int | float | bool) and k not in ("doc_id",)
        ]  # fmt: skip
        scores = [Score(f"lm_eval/{n}", record.get(n)) for n in names if n in record]
        for n, reply in enumerate(texts):
            row = build.row(
                f"{where}, response {n + 1}" if len(texts) > 1 else where,
                [*prompt, {"role": "assistant", "content": reply}],
                task_id=f"{task}/{record['doc_id']}",
                scores=first_named(scores, self.metric) if n == 0 or len(texts) == 1 else (),
                privileged={
                    v: record[k]
                    for k, v in (("target", "reference"), ("doc", "doc"))
                    if record.get(k) not in (None, "")
                },
                rest={
                    k: v
                    for k, v in record.items()
                    if k in ("filtered_resps", "filter", "doc_hash", "prompt_hash", "target_hash")
                },
            )
            if row is not None:
                yield row


def _lm_eval_prompt(arguments: Any) -> list[dict[str, Any]] | None:
    """Return the prompt of a request: a list of lists before, `{"gen_args_0": {"arg_0"}}` now."""
    first: Any = arguments
    if isinstance(first, Mapping):
        first = as_mapping(first.get("gen_args_0")).get("arg_0")
    while isinstance(first, list) and first and not isinstance(first[0], Mapping):
        first = first[0]
    if isinstance(first, str) and first.startswith("[{"):
        try:
            first = json.loads(first)
        except ValueError:
            return [{"role": "user", "content": first}]
    if isinstance(first, list) and first and all(isinstance(m, Mapping) for m in first):
        return [dict(m) for m in first]
    return [{"role": "user", "content": first}] if isinstance(first, str) else None


class PromptfooResults(JsonSource):
    """Results of promptfoo: version 3 (`results.results`), version 2 (the same without prompts), and JSONL output."""

    name = "promptfoo"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain for a results document, likely for results one by one."""
        for record in records:
            record = as_mapping(record)
            inner = as_mapping(record.get("results"))
            if ("evalId" in record and inner) or ("stats" in inner and "results" in inner):
                return CERTAIN.value
            if {"promptIdx", "testIdx"} <= record.keys() or {"gradingResult", "vars", "success"} <= record.keys():
                return LIKELY.value + 0.2
        return 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per test and prompt."""
        for where, record in records:
            record = as_mapping(record)
            inner = record.get("results")
            results = as_list(as_mapping(inner).get("results")) if isinstance(inner, Mapping) else as_list(inner)
            if not results and "response" in record:
                yield from self._result(where, record, build)
                continue
            if not results:
                build.problem(where, "holds no results")
            for number, result in enumerate(results, start=1):
                yield from self._result(f"{where}, result {number}", as_mapping(result), build)

    def _result(self, where: str, result: Mapping[str, Any], build: RowBuilder) -> Iterator[Row]:
        prompt = as_mapping(result.get("prompt")).get("raw") or result.get("prompt")
        response = as_mapping(result.get("response"))
        messages: list[dict[str, Any]] = []
        if isinstance(prompt, str):
            decoded = _messages_in(prompt)
            messages = decoded or [{"role": "user", "content": prompt}]
        output = response.get("output")
        error = result.get("error") if output is None else None
        if not messages or (output is None and not error):
            build.problem(where, "has no prompt or no response")
            return
        if output is not None:
            messages.append(
                {
                    "role": "assistant",
                    "content": output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
                }
            )
        grading = as_mapping(result.get("gradingResult"))
        value = grading.get("score", result.get("score", result.get("success")))
        scores = (
            []
            if error
            else [
                Score("promptfoo/score", value, reason=grading.get("reason"), evidence={"pass": result.get("success")})
            ]
        )
        for part in [] if error else as_list(grading.get("componentResults")):
            part = as_mapping(part)
            check = as_mapping(part.get("assertion"))
            kind = (
                "judge"
                if str(check.get("type")).startswith(("llm-rubric", "model-graded", "g-eval", "factuality"))
                else "rule"
            )
            scores.append(
                Score(
                    f"promptfoo/{check.get('type') or 'assertion'}",
                    part.get("score", part.get("pass")),
                    kind=kind,
                    reason=part.get("reason"),
                )
            )
        provider = result.get("provider")
        model = provider.get("id") if isinstance(provider, Mapping) else provider
        test = result.get("testIdx", as_mapping(result.get("testCase")).get("description"))
        test_case = as_mapping(result.get("testCase"))
        row = build.row(
            where,
            messages,
            task_id=f"test {test}" if test is not None else None,
            scores=scores,
            privileged={"assert": test_case["assert"]} if test_case.get("assert") else None,
            rest={
                k: v
                for k, v in result.items()
                if k in ("promptIdx", "testIdx", "promptId", "namedScores", "latencyMs", "failureReason", "metadata")
                and v not in (None, {})
            },
            error={"type": "recorded", "message": str(error)} if error else None,
            outcome="failed" if error else None,
            policy={"model": model} if isinstance(model, str) else None,
            usage=dict(as_mapping(response.get("tokenUsage"))),
            axes={k: v for k, v in as_mapping(result.get("vars")).items() if isinstance(v, str | int | float | bool)},
        )
        if row is not None:
            yield row


def _messages_in(text: str) -> list[dict[str, Any]]:
    if not text.lstrip().startswith("["):
        return []
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return [dict(m) for m in value] if value and all(isinstance(m, dict) and "role" in m for m in value) else []
