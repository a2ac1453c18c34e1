# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""Exports under the real `datasets`, `transformers` and `trl`: what is loaded, what is trained, one step of each."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")
transformers = pytest.importorskip("transformers")

from whileai_export import export, preflight_export  # noqa: E402
from whileai_export.manifest import load_code  # noqa: E402
from whileai_kernel.errors import FindingsError, ParameterError  # noqa: E402
from whileai_kernel.rows import make_rows  # noqa: E402

pytestmark = pytest.mark.integration

BODY = (
    "{%- for m in messages %}"
    "{%- if m.role == 'assistant' %}{{ '<|im_start|>assistant\n' }}@OPEN@"
    "{%- if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}{{ m.content }}"
    "{%- for c in m.tool_calls or [] %}{{ '\n<tool_call>\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments | tojson }}{{ '}\n</tool_call>' }}{% endfor %}"
    "{{ '<|im_end|>' }}@CLOSE@{{ '\n' }}"
    "{%- elif m.role == 'tool' %}{{ '<|im_start|>user\n<tool_response>\n' + m.content + '\n</tool_response><|im_end|>\n' }}"
    "{%- else %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}"
    "{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TOOLS = "{%- if tools %}{{ '<|im_start|>system\n# Tools\n' + (tools | tojson) + '<|im_end|>\n' }}{% endif %}"
MARKED = TOOLS + BODY.replace("@OPEN@", "{% generation %}").replace("@CLOSE@", "{% endgeneration %}")
PLAIN = TOOLS + BODY.replace("@OPEN@", "").replace("@CLOSE@", "")
ALTERNATING = (
    "{%- set ns = namespace(last='') %}{%- for m in messages %}{%- if m.role == 'system' %}{{ '[SYS]' + m.content + '[/SYS]' }}"
    "{%- else %}{%- if m.role not in ['user', 'assistant'] or m.role == ns.last %}{{ raise_exception('roles must alternate user and assistant') }}{% endif %}"
    "{%- set ns.last = m.role %}{{ '[INST]' + m.content + '[/INST]' if m.role == 'user' else m.content + '<|im_end|>' }}{% endif %}{%- endfor %}"
)
DROPS_DEVELOPER = PLAIN.replace("{%- for m in messages %}", "{%- for m in messages if m.role != 'developer' %}")
FORGETS_REASONING = PLAIN.replace("{%- if m.reasoning_content %}", "{%- if m.reasoning_content and loop.last %}")

TOOL = {
    "type": "function",
    "function": {
        "name": "get",
        "description": "d",
        "parameters": {"type": "object", "properties": {"k": {"type": "integer"}}},
    },
}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "get", "arguments": json.dumps(arguments)}}


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "ask"},
    {"role": "assistant", "content": "", "reasoning_content": "plan", "tool_calls": [call("a", k=1), call("b", k=2)]},
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "tool", "tool_call_id": "a", "content": "one"},
    {"role": "assistant", "content": "More.", "tool_calls": [call("c", k=3)]},
    {"role": "tool", "tool_call_id": "c", "content": "three"},
    {"role": "assistant", "content": "Done."},
]
ROW = {
    "task_id": "t",
    "rollout_id": "r",
    "prompt": "ask",
    "final_text": "Done.",
    "reward": 1.0,
    "status": "ok",
    "tools": [TOOL],
    "messages": CHAT,
}


def _call_text(k: int) -> str:
    return f'\n<tool_call>\n{{"name": "get", "arguments": {{"k": {k}}}}}\n</tool_call>'


TURNS = {
    2: "<think>\nplan\n</think>\n\n" + _call_text(1) + _call_text(2) + "<|im_end|>",
    5: "More." + _call_text(3) + "<|im_end|>",
    7: "Done.<|im_end|>",
}
"""What the model would sample in each assistant turn: content, calls and the stop token."""


@pytest.fixture(scope="module")
def base() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    raw.train_from_iterator(["some text to learn from"], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def with_template(base: Any, template: str) -> Any:
    import copy

    tokenizer = copy.deepcopy(base)
    tokenizer.chat_template = template
    return tokenizer


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def load(path: Path, **options: Any) -> Any:
    return datasets.load_dataset("json", data_files=[str(path)], split="train", **options)


def tiny_model(tokenizer: Any) -> Any:
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=2048, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, tie_word_embeddings=True,
    )  # fmt: skip
    return transformers.Qwen2ForCausalLM(config)


def trained_spans(tokenizer: Any, ids: list[int], labels: list[int]) -> list[str]:
    """Return the decoded runs of trained tokens."""
    runs: list[list[int]] = []
    for n, label in enumerate(labels):
        if label != -100:
            assert label == ids[n]
            if n == 0 or labels[n - 1] == -100:
                runs.append([])
            runs[-1].append(label)
    return [tokenizer.decode(run) for run in runs]


def sft_labels(tokenizer: Any, path: Path, tmp_path: Path, **switches: Any) -> tuple[list[list[str]], Any]:
    trl = pytest.importorskip("trl")
    args = trl.SFTConfig(
        output_dir=str(tmp_path / "run"), max_length=2048, max_steps=1, per_device_train_batch_size=1, bf16=False, use_cpu=True,
        report_to="none", save_strategy="no", logging_steps=1, **switches,
    )  # fmt: skip
    trainer = trl.SFTTrainer(
        model=tiny_model(tokenizer), args=args, train_dataset=load(path), processing_class=tokenizer
    )
    batches = [trainer.data_collator([row]) for row in trainer.train_dataset]
    spans = [trained_spans(tokenizer, b["input_ids"][0].tolist(), b["labels"][0].tolist()) for b in batches]
    return spans, trainer


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[2, 5, 7]]),
        ({"train": "last"}, [[7]]),
        ({"train": "final"}, [[7]]),
        ({"train": [5, 7]}, [[5, 7]]),
        ({"train": [2, 7]}, [[2], [7]]),
        ({"train": [2]}, [[2]]),
        ({"unroll": True}, [[2], [5], [7]]),
    ],
)
def test_trl_trains_exactly_the_intended_turns(
    base: Any, tmp_path: Path, options: dict[str, Any], expected: list[list[int]]
) -> None:
    tokenizer = with_template(base, MARKED)
    path = tmp_path / "train.jsonl"
    report = export([ROW], path, to="trl", **options)
    spans, _ = sft_labels(tokenizer, path, tmp_path, **report.details["trainer"]["switches"])
    assert spans == [[TURNS[t] for t in turns] for turns in expected]


@pytest.mark.parametrize("template", [MARKED, PLAIN, DROPS_DEVELOPER], ids=["marked", "plain", "drops-developer"])
def test_token_ids_train_exactly_the_intended_turns_whatever_the_template(
    base: Any, tmp_path: Path, template: str
) -> None:
    tokenizer = with_template(base, template)
    for n, (options, expected) in enumerate(
        [({}, [[2, 5, 7]]), ({"train": [2, 7]}, [[2], [7]]), ({"unroll": True}, [[2], [5], [7]])]
    ):
        path = tmp_path / f"{n}.jsonl"
        report = export([ROW], path, to="trl", tokenizer=tokenizer, **options)
        spans, _ = sft_labels(tokenizer, path, tmp_path, **report.details["trainer"]["switches"])
        assert spans == [[TURNS[t] for t in turns] for turns in expected]


@pytest.mark.parametrize("reasoning", ["strip", "inline"])
def test_reasoning_is_trained_as_it_was_asked_for(base: Any, tmp_path: Path, reasoning: str) -> None:
    tokenizer = with_template(base, MARKED)
    report = export([ROW], tmp_path / "a.jsonl", to="trl", reasoning=reasoning)
    spans, _ = sft_labels(tokenizer, tmp_path / "a.jsonl", tmp_path, **report.details["trainer"]["switches"])
    thought = "<think>\nplan\n</think>\n\n"
    first = TURNS[2] if reasoning == "inline" else TURNS[2].removeprefix(thought)
    assert spans == [[first, TURNS[5], TURNS[7]]]


def test_a_template_of_alternating_roles_trains_exactly_the_intended_turns(base: Any, tmp_path: Path) -> None:
    tokenizer = with_template(base, ALTERNATING)
    chat = [
        {"role": r, "content": c}
        for r, c in [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]
    ]
    row = {"task_id": "t", "messages": chat}
    for n, (options, expected) in enumerate(
        [
            ({}, [["b", "d"]]),
            ({"train": "last"}, [["d"]]),
            ({"train": "final"}, [["d"]]),
            ({"train": [2]}, [["b"]]),
            ({"unroll": True}, [["b"], ["d"]]),
        ]
    ):
        path = tmp_path / f"{n}.jsonl"
        export([row], path, to="trl", tokenizer=tokenizer, **options)
        spans, _ = sft_labels(tokenizer, path, tmp_path)
        assert spans == [[f"{text}<|im_end|>" for text in texts] for texts in expected]
    report = export([ROW], tmp_path / "tools.jsonl", to="trl", tokenizer=tokenizer)
    assert report.written == 0
    assert "alternate" in next(iter(report.dropped))


def test_call_arguments_can_be_left_out_of_the_loss(base: Any, tmp_path: Path) -> None:
    tokenizer = with_template(base, PLAIN)
    export([ROW], tmp_path / "a.jsonl", to="trl", tokenizer=tokenizer, train_arguments=False, train=[5])
    spans, _ = sft_labels(tokenizer, tmp_path / "a.jsonl", tmp_path)
    (runs,) = spans
    assert len(runs) == 2
    assert runs[0].startswith('More.\n<tool_call>\n{"name": "get", "arguments":')
    assert "3" not in "".join(runs)
    assert '"k"' not in "".join(runs)
    assert runs[1].endswith("</tool_call><|im_end|>")


def test_a_template_that_forgets_earlier_reasoning_is_refused_for_token_ids_and_right_when_unrolled(
    base: Any, tmp_path: Path
) -> None:
    tokenizer = with_template(base, FORGETS_REASONING)
    report = export([ROW], tmp_path / "a.jsonl", to="trl", tokenizer=tokenizer)
    assert report.written == 0
    assert "another way" in next(iter(report.dropped))
    export([ROW], tmp_path / "b.jsonl", to="trl", tokenizer=tokenizer, unroll=True)
    spans, _ = sft_labels(tokenizer, tmp_path / "b.jsonl", tmp_path)
    assert spans == [[TURNS[2]], [TURNS[5]], [TURNS[7]]]


def test_one_sft_step_ends_with_a_finite_loss(base: Any, tmp_path: Path) -> None:
    tokenizer = with_template(base, MARKED)
    report = export([ROW], tmp_path / "a.jsonl", to="trl")
    _, trainer = sft_labels(tokenizer, tmp_path / "a.jsonl", tmp_path, **report.details["trainer"]["switches"])
    loss = trainer.train().training_loss
    assert 0 < loss < 100


def test_dpo_trains_exactly_one_assistant_turn_per_side_and_steps(base: Any, tmp_path: Path) -> None:
    trl = pytest.importorskip("trl")
    bad = {
        **ROW,
        "rollout_id": "bad",
        "reward": 0.0,
        "messages": [*CHAT[:5], {"role": "assistant", "content": "I give up."}],
    }
    path = tmp_path / "pairs.jsonl"
    assert export([ROW, bad], path, to="trl", kind="preference").written == 1
    for template in (MARKED, PLAIN):
        tokenizer = with_template(base, template)
        args = trl.DPOConfig(
            output_dir=str(tmp_path / "run"), max_length=2048, max_steps=1, per_device_train_batch_size=1, bf16=False, use_cpu=True,
            report_to="none", save_strategy="no", logging_steps=1,
        )  # fmt: skip
        tiny_model(tokenizer).save_pretrained(
            tmp_path / "model"
        )  # the reference model is loaded from where the policy was
        trainer = trl.DPOTrainer(
            model=str(tmp_path / "model"), args=args, train_dataset=load(path), processing_class=tokenizer
        )
        batch = next(iter(trainer.get_train_dataloader()))
        texts = [
            tokenizer.decode([i for i, m in zip(ids, mask, strict=True) if m])
            for ids, mask in zip(batch["input_ids"].tolist(), batch["completion_mask"].tolist(), strict=True)
        ]
        assert [t.removesuffix("\n") for t in texts] == [TURNS[5], "I give up.<|im_end|>"]
        assert 0 < trainer.train().training_loss < 100
    whole = export([ROW, bad], tmp_path / "whole.jsonl", to="trl", kind="preference", pairs="whole")
    assert any("every token" in note for note in whole.notes)
    trainer = trl.DPOTrainer(
        model=str(tmp_path / "model"),
        args=args,
        train_dataset=load(tmp_path / "whole.jsonl"),
        processing_class=tokenizer,
    )
    batch = next(iter(trainer.get_train_dataloader()))
    chosen = tokenizer.decode(
        [i for i, m in zip(batch["input_ids"].tolist()[0], batch["completion_mask"].tolist()[0], strict=True) if m]
    )
    assert chosen.startswith(TURNS[5])
    assert "three" in chosen  # a tool result, which the note names
    assert chosen.removesuffix("\n").endswith(TURNS[7])


def test_one_grpo_step_on_the_prompts_ends_with_a_finite_loss_and_the_reference_reaches_the_reward_alone(
    base: Any, tmp_path: Path
) -> None:
    trl = pytest.importorskip("trl")
    rows = [
        {**ROW, "task_id": str(n), "messages": [*CHAT[:1], {"role": "user", "content": f"ask {n}"}, *CHAT[2:]],
         "privileged": {"reference": f"secret {n}"}}
        for n in range(2)
    ]  # fmt: skip
    report = export(rows, tmp_path / "out", to="trl", kind="prompts", references=True)
    assert report.written == 2
    lines = (tmp_path / "out" / "references.jsonl").read_text(encoding="utf-8").splitlines()
    known = {r["task_id"]: r["reference"] for r in map(json.loads, lines)}
    assert known == {"0": "secret 0", "1": "secret 1"}
    tokenizer = with_template(base, PLAIN)
    seen: list[tuple[str, str, str]] = []

    def reward(prompts: list[Any], completions: list[Any], task_id: list[str], **_: Any) -> list[float]:
        for prompt, completion, task in zip(prompts, completions, task_id, strict=True):
            seen.append((prompt[-1]["content"], known[task], completion[-1]["content"]))
        return [float(n % 2) for n in range(len(prompts))]

    args = trl.GRPOConfig(
        output_dir=str(tmp_path / "run"), max_steps=1, per_device_train_batch_size=4, num_generations=2, max_completion_length=8,
        bf16=False, use_cpu=True, report_to="none", save_strategy="no", logging_steps=1,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=tiny_model(tokenizer),
        reward_funcs=reward,
        args=args,
        train_dataset=datasets.load_dataset(str(tmp_path / "out"), split="train"),
        processing_class=tokenizer,
    )
    loss = trainer.train().training_loss
    assert math.isfinite(loss)
    norm = next(entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry)
    assert math.isfinite(norm)
    assert norm > 0
    assert {(ask, reference) for ask, reference, _ in seen} == {("ask 0", "secret 0"), ("ask 1", "secret 1")}
    assert len(seen) == 4


# --- loading ---------------------------------------------------------------------------------------------------------


def rows_with_arguments(*arguments: dict[str, Any]) -> list[dict[str, Any]]:
    out = []
    for n, args in enumerate(arguments):
        chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [call("c", **args)]},
                {"role": "tool", "tool_call_id": "c", "content": "x"}, {"role": "assistant", "content": "y"}]  # fmt: skip
        out.append({"task_id": str(n), "messages": chat})
    return out


ARGUMENTS = [
    ({"zip": "01234"}, {"zip": 94110}),
    ({"a": {"v": "true"}}, {"a": {"v": 1}}),
    ({"city": "Oslo"}, {"id": 7}),
    ({}, {}),
    ({"x": None}, {"x": [1, "2"]}),
    ({"id": 9007199254740993}, {"id": None}),
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("suffix", ["jsonl", "folder", "parquet"])
def test_arguments_are_loaded_as_they_were_written(
    tmp_path: Path, arguments: tuple[dict[str, Any], ...], suffix: str
) -> None:
    path = tmp_path / ("out" if suffix == "folder" else f"train.{suffix}")
    export(rows_with_arguments(*arguments), path, to="trl")
    if suffix == "folder":
        loaded = datasets.load_dataset(str(path), split="train")
    elif suffix == "parquet":
        loaded = datasets.load_dataset("parquet", data_files=[str(path)], split="train")
    else:
        loaded = load(path)
    found = [row["messages"][1]["tool_calls"][0]["function"]["arguments"] for row in loaded]
    assert [json.dumps(f) for f in found] == [json.dumps(a) for a in arguments]


def test_tools_with_differing_properties_are_not_merged(tmp_path: Path) -> None:
    def tool(name: str, key: str) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {key: {"type": "string", "default": "5" if key == "id" else 5}},
                },
            },
        }

    rows = [
        {**r, "tools": [tool(n, k)]}
        for r, (n, k) in zip(rows_with_arguments({}, {}), [("f", "city"), ("g", "id")], strict=True)
    ]
    export(rows, tmp_path / "a.jsonl", to="trl")
    assert [json.loads(r["tools"])[0]["function"] for r in load(tmp_path / "a.jsonl")] == [
        t["tools"][0]["function"] for t in rows
    ]
    for target, suffix in (("chat", "jsonl"), ("openai", "parquet")):
        folder = tmp_path / target
        export(rows, folder, to=target, file=suffix)
        tools = [r["tools"] for r in datasets.load_dataset(str(folder), split="train")]
        decoded = [json.loads(t) if target == "chat" else t for t in tools]
        assert [t[0]["function"] for t in decoded] == [t["tools"][0]["function"] for t in rows]


def test_the_load_code_of_the_manifest_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{**ROW, "answer": "007"}, {**ROW, "rollout_id": "s", "reward": None, "status": "missing", "answer": None}]
    for n, (target, kind, suffix) in enumerate(
        [
            ("chat", "sft", "jsonl"),
            ("trl", "rewarded", "jsonl"),
            ("anthropic", "sft", "parquet"),
            ("sharegpt", "sft", "jsonl"),
        ]
    ):
        folder = tmp_path / str(n)
        report = export(rows, folder, to=target, kind=kind, file=suffix, columns=["answer"])
        monkeypatch.chdir(folder)
        scope: dict[str, Any] = {}
        exec(report.details["load"], scope)
        assert scope["rows"][0]["answer"] == "007"
        assert len(scope["rows"]) == report.written
        assert len(datasets.load_dataset(str(folder), split="train")) == report.written
    assert "Features" in load_code(["a.jsonl"], {"messages": "messages"})


def test_parquet_shards_are_loaded_together(tmp_path: Path) -> None:
    from whileai_export.parquet import write_parquet

    records = [{"a": str(n)} for n in range(5)]
    files = write_parquet(
        tmp_path / "train.parquet", records, {"a": "text"}, declared=set(), row_group=2, shard_bytes=1
    )
    assert [(f.name, f.rows) for f in files] == [
        (f"train-0000{n}-of-00003.parquet", r) for n, r in enumerate((2, 2, 1))
    ]
    assert [f.rows for f in write_parquet(tmp_path / "one.parquet", [], {"a": "text"}, declared=set())] == [0]
    export([ROW, {**ROW, "rollout_id": "s"}], tmp_path / "out", file="parquet", shard_bytes=1)
    assert len(datasets.load_dataset(str(tmp_path / "out"), split="train")) == 2


def test_parquet_has_one_schema_whatever_the_first_row_holds(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from whileai_export.exporters import Chat

    bare = make_rows(["q"], ["a"])
    schemas = []
    for n, rows in enumerate(([ROW, *bare], [*bare, ROW])):
        export(rows, tmp_path / f"{n}.parquet", kind="sft")
        schemas.append(parquet.read_schema(tmp_path / f"{n}.parquet"))
    assert schemas[0].equals(schemas[1], check_metadata=True)
    back = list(Chat().read(tmp_path / "0.parquet"))
    export([ROW, *bare], tmp_path / "same.jsonl", kind="sft")
    direct = list(Chat().read(tmp_path / "same.jsonl"))
    assert [{k: v for k, v in r.items() if v is not None} for r in back] == [
        {k: v for k, v in r.items() if v is not None} for r in direct
    ]


# --- preflight -------------------------------------------------------------------------------------------------------


def test_a_template_without_markers_gives_an_error_that_names_it(base: Any) -> None:
    report = preflight_export([ROW], with_template(base, PLAIN))
    assert (report.trained_tokens, report.ok, report.untrained) == (0, False, 1)
    assert "generation" in str(report)
    with pytest.raises(FindingsError, match="zeros only"):
        preflight_export([ROW], with_template(base, PLAIN), strict=True)


@pytest.mark.parametrize("train", ["all", "last", [5, 7]])
def test_preflight_counts_what_trl_trains(base: Any, tmp_path: Path, train: Any) -> None:
    tokenizer = with_template(base, MARKED)
    report = preflight_export([ROW], tokenizer, train=train, max_length=4096)
    export([ROW], tmp_path / "a.jsonl", to="trl", train=train)
    _, trainer = sft_labels(tokenizer, tmp_path / "a.jsonl", tmp_path, assistant_only_loss=True)
    labels = trainer.train_dataset[0]["labels"]
    assert report.trained_tokens == sum(label != -100 for label in labels)
    assert report.tokens == len(labels)
    assert report.ok


def test_preflight_reports_lengths_template_errors_and_prompts_that_are_no_prefix(base: Any) -> None:
    tokenizer = with_template(base, MARKED)
    full = preflight_export([ROW], tokenizer, max_length=4096)
    cut = preflight_export([ROW], tokenizer, max_length=full.longest - 3)
    assert (cut.over_length, cut.cut_labels, cut.lost) == (1, 1, 0)
    lost = preflight_export([ROW], tokenizer, max_length=8)
    assert (lost.lost, lost.ok) == (1, False)
    assert str(lost.longest) in lost.findings[0].fix
    broken = preflight_export([ROW], with_template(base, ALTERNATING))
    assert not broken.ok
    assert "alternate" in next(iter(broken.template_errors))
    last = make_rows(["q"], ["a"])[0]
    assert preflight_export([last], with_template(base, ALTERNATING), train="last").ok
    odd = MARKED.replace("{{ '<|im_start|>assistant\n' }}{% endif %}", "{{ '<|im_start|>assistant\nX' }}{% endif %}")
    assert preflight_export([ROW], with_template(base, odd), train="last").not_prefix == 1
    bad = {**ROW, "reward": 0.0, "messages": [*CHAT[:5], {"role": "assistant", "content": "No."}]}
    pair = preflight_export([ROW, bad], with_template(base, PLAIN), kind="preference")
    assert (pair.records, pair.ok) == (2, True)


def test_preflight_of_token_ids_counts_the_labels_of_the_file(base: Any, tmp_path: Path) -> None:
    tokenizer = with_template(base, PLAIN)
    for options in ({}, {"train": [2, 7]}, {"unroll": True}, {"train_arguments": False}):
        path = tmp_path / "ids.jsonl"
        export([ROW], path, to="trl", tokenizer=tokenizer, overwrite=True, **options)
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        report = preflight_export([ROW], tokenizer, token_ids=True, max_length=4096, **options)
        assert report.trained_tokens == sum(label != -100 for r in records for label in r["labels"])
        assert report.tokens == sum(len(r["input_ids"]) for r in records)
        assert report.ok
        assert "not_enforced" not in str(report)


@pytest.mark.parametrize("target", ["chat", "openai", "sharegpt", "anthropic"])
def test_preflight_of_other_targets_counts_with_the_given_template_and_says_what_is_not_checked(
    base: Any, target: str
) -> None:
    tokenizer = with_template(base, PLAIN)

    def tokens(*turns: int) -> int:
        kept = {t: TURNS[t] for t in turns}
        if target == "openai":  # it strips reasoning by default
            kept = {t: text.replace("<think>\nplan\n</think>\n\n", "") for t, text in kept.items()}
        return sum(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in kept.values())

    whole = preflight_export([ROW], tokenizer, to=target, max_length=4096)
    assert (whole.records, whole.ok, whole.trained_tokens) == (1, True, tokens(2, 5, 7))
    assert whole.not_checked
    assert "not checked: " in str(whole)
    assert whole.to_dict()["not_checked"] == list(whole.not_checked)
    last = preflight_export([ROW], tokenizer, to=target, max_length=4096, train="last")
    assert last.trained_tokens == (tokens(2, 5, 7) if target == "anthropic" else tokens(7))
    assert ("export/not_enforced" in str(last)) == (target in ("anthropic", "sharegpt"))
    lost = preflight_export([ROW], tokenizer, to=target, max_length=8)
    assert (lost.lost, lost.ok) == (1, False)
    bad = {**ROW, "reward": 0.0, "messages": [*CHAT[:5], {"role": "assistant", "content": "No."}]}
    good = {**ROW, "messages": [*CHAT[:5], CHAT[7]]}
    pair = preflight_export([good, bad], tokenizer, to=target, kind="preference", max_length=4096)
    assert (pair.records, pair.ok) == (2, True)
    assert pair.trained_tokens == tokens(7) + len(tokenizer("No.<|im_end|>", add_special_tokens=False)["input_ids"])
    broken = preflight_export([ROW], with_template(base, ALTERNATING), to=target)
    assert "alternate" in next(iter(broken.template_errors))


@pytest.mark.parametrize("target", ["trl", "chat"])
def test_preflight_of_prompts_finds_those_that_are_too_long_and_trains_nothing(base: Any, target: str) -> None:
    tokenizer = with_template(base, PLAIN)
    text = tokenizer.apply_chat_template(CHAT[:2], tools=[TOOL], tokenize=False, add_generation_prompt=True)
    length = len(tokenizer(text, add_special_tokens=False)["input_ids"])
    report = preflight_export([ROW], tokenizer, to=target, kind="prompts", max_length=length)
    assert (report.ok, report.tokens, report.trained_tokens, report.over_length) == (True, length, 0, 0)
    short = preflight_export([ROW], tokenizer, to=target, kind="prompts", max_length=length - 1)
    assert (short.over_length, short.ok) == (1, True)
    assert "prompts_over_length" in str(short)


def test_a_completion_of_one_turn_needs_no_markers_and_trains_what_the_template_prints_after_it(
    base: Any, tmp_path: Path
) -> None:
    tokenizer = with_template(base, PLAIN)
    report = export([ROW], tmp_path / "a.jsonl", to="trl", train="last")
    assert any("needs it off" in note for note in report.notes)
    spans, _ = sft_labels(tokenizer, tmp_path / "a.jsonl", tmp_path)
    assert spans == [[TURNS[7] + "\n"]]
    with pytest.raises((RuntimeError, ValueError), match="generation"):
        sft_labels(tokenizer, tmp_path / "a.jsonl", tmp_path, assistant_only_loss=True)


def test_preflight_needs_a_tokenizer_and_a_template(base: Any) -> None:
    with pytest.raises(ParameterError, match="needs a tokenizer"):
        preflight_export([ROW])
    with pytest.raises(ParameterError, match="no chat template"):
        preflight_export([ROW], base)


def test_a_developer_message_survives_a_template_that_drops_them(base: Any, tmp_path: Path) -> None:
    tokenizer = with_template(base, DROPS_DEVELOPER)
    row = {
        "task_id": "t",
        "messages": [
            {"role": "developer", "content": "Answer in Danish."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hej"},
        ],
    }
    export([row], tmp_path / "a.jsonl", to="trl")
    record = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8"))
    assert "Answer in Danish." in tokenizer.apply_chat_template(record["messages"], tokenize=False)
