"""Model objects of the front door, and who answers and judges when a call does not say."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import whileai as wai
from whileai import backends, settings

KEY = "sk-very-secret-4217"


@pytest.fixture(autouse=True)
def nobody_is_set(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in settings.NAMES:
        monkeypatch.delenv(f"WHILEAI_{name.upper()}", raising=False)
    wai.configure(**dict.fromkeys(settings.NAMES))
    yield
    wai.configure(**dict.fromkeys(settings.NAMES))


def rows() -> wai.ScoredData:
    return wai.rows(["2+2?"] * 2, ["4", "5"])


def is_four(row: Any) -> float:
    return float(row["final_text"] == "4")


@pytest.mark.parametrize(
    ("name", "options", "plugin", "shown"),
    [
        ("OpenAI", {"model": "m"}, "whileai_openai", "ChatModel('openai:m', key from the api_key argument)"),
        ("Anthropic", {"model": "m"}, "whileai_litellm", "LiteLLM('anthropic:m', key from the api_key argument)"),
        ("Bedrock", {"model": "m"}, "whileai_litellm", "LiteLLM('bedrock:m', key from the api_key argument)"),
        ("Gemini", {"model": "m"}, "whileai_litellm", "LiteLLM('gemini:m', key from the api_key argument)"),
        ("Fireworks", {"model": "m"}, "whileai_litellm", "LiteLLM('fireworks:m', key from the api_key argument)"),
        ("LiteLLM", {"model": "groq/m"}, "whileai_litellm", "LiteLLM('litellm:groq/m', key from the api_key argument)"),
    ],
)
def test_a_repr_says_where_the_key_came_from_and_never_the_key(
    name: str, options: dict[str, Any], plugin: str, shown: str
) -> None:
    pytest.importorskip(plugin)
    model = getattr(wai, name)(api_key=KEY, **options)
    assert repr(model) == shown
    assert KEY not in repr(vars(model))


def test_a_key_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert repr(wai.OpenAI("gpt-5-mini")) == "ChatModel('openai:gpt-5-mini', key from OPENAI_API_KEY)"


def test_the_local_model_needs_no_key_and_is_not_started() -> None:
    pytest.importorskip("whileai_local")
    assert repr(wai.Local()) == "Local('local:smollm2', no key needed)"


@pytest.mark.parametrize(("name", "needs"), [("Anthropic", "whileai-litellm"), ("Local", "whileai-local")])
def test_a_plugin_that_is_missing_is_named_with_what_to_type(
    name: str, needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from whileai_kernel.errors import MissingDependencyError, UnknownNameError

    def make(*args: Any, **options: Any) -> Any:
        raise UnknownNameError("unknown model")

    monkeypatch.setattr(backends, "make", make)
    with pytest.raises(
        MissingDependencyError, match=rf'wai\.{name} needs the plugin {needs}[\s\S]*pip install "{needs}'
    ):
        getattr(wai, name)("m")


def test_making_objects_imports_no_library() -> None:
    pytest.importorskip("whileai_litellm")
    pytest.importorskip("whileai_local")
    code = (
        "import sys, whileai as wai\n"
        "wai.Anthropic('m', api_key='k'), wai.Local(), wai.Endpoint('m', base_url='http://127.0.0.1:9/v1')\n"
        "print({'litellm', 'xllamacpp', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_call_over_context_over_configure_over_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.setting("agent") is None
    monkeypatch.setenv("WHILEAI_AGENT", "environment")
    assert settings.setting("agent") == "environment"
    wai.configure(agent="configure")
    assert settings.setting("agent") == "configure"
    with wai.context(agent="outer"), wai.context(agent="inner", judge="j"):
        assert settings.setting("agent") == "inner"
        assert settings.setting("agent", "call") == "call"
    with wai.context(agent="outer"):
        with pytest.raises(RuntimeError), wai.context(agent="inner"):
            raise RuntimeError
        assert (settings.setting("agent"), settings.setting("judge")) == ("outer", None)
    wai.configure(judge="j")
    assert (settings.setting("agent"), settings.setting("judge")) == ("configure", "j")
    wai.configure(agent=None)
    assert settings.setting("agent") == "environment"
    monkeypatch.setenv("WHILEAI_AGENT", "")
    assert settings.setting("agent") is None


@pytest.mark.parametrize("call", [wai.configure, wai.context])
def test_a_setting_that_does_not_exist_is_refused(call: Any) -> None:
    with pytest.raises(wai.WhileaiError, match="did you mean 'agent'"), call(agnet="x") or wai.context():
        pass


def test_contexts_of_tasks_and_threads_do_not_mix() -> None:
    async def task(name: str) -> list[Any]:
        with wai.context(agent=name):
            await asyncio.sleep(0)
            return [settings.setting("agent"), await asyncio.to_thread(settings.setting, "agent")]

    async def both() -> list[list[Any]]:
        return await asyncio.gather(task("a"), task("b"))

    assert asyncio.run(both()) == [["a", "a"], ["b", "b"]]
    seen: list[Any] = []
    wai.configure(agent="all")
    with wai.context(agent="here"):
        thread = threading.Thread(target=lambda: seen.append(settings.setting("agent")))
        thread.start()
        thread.join()
    assert seen == ["all"]


def test_an_agent_may_be_left_out() -> None:
    def polite(message: str) -> str:
        return "You are welcome."

    with wai.context(agent=polite):
        data = wai.simulate(system_prompt="Be polite.", situations=2, progress=False)
        again = asyncio.run(wai.asimulate(system_prompt="Be polite.", situations=2, progress=False))
    assert {row["final_text"] for row in data} == {"You are welcome."}
    assert [r["rollout_id"] for r in data] == [r["rollout_id"] for r in again]
    with pytest.raises(wai.WhileaiError, match="WHILEAI_AGENT"):
        wai.simulate(situations=2)


def test_a_judge_may_be_left_out() -> None:
    wai.configure(judge=is_four)
    assert [row["reward"] for row in wai.grade(rows())] == [1.0, 0.0]
    assert [row["reward"] for row in wai.grade(rows(), lambda row: 0.5)] == [0.5, 0.5]
    assert [row["reward"] for row in rows().grade()] == [1.0, 0.0]
    assert [row["reward"] for row in rows().grade(judge=lambda row: 0.5)] == [0.5, 0.5]
    wai.configure(judge=None)
    with pytest.raises(wai.WhileaiError, match="WHILEAI_JUDGE"):
        wai.grade(rows())


def test_a_judge_that_is_named_grades_while_simulating_where_the_policy_needs_it() -> None:
    def four(message: str) -> str:
        return "4"

    wai.configure(agent=four, judge=is_four)
    options: dict[str, Any] = {"system_prompt": "Add.", "situations": 2, "progress": False}
    assert {row["reward"] for row in wai.simulate(repeats=2, **options)} == {None}
    assert {row["reward"] for row in wai.simulate(repeats=2, repeat_policy="adaptive", **options)} == {1.0}


@pytest.mark.parametrize("judge", ["endpoint:m@http://127.0.0.1:9/v1", "object"])
def test_a_model_is_a_judge_only_with_a_rubric(judge: Any, tmp_path: Path) -> None:
    if judge == "object":
        judge = wai.Endpoint("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(wai.WhileaiError, match=r"has no rubric[\s\S]*wai\.Judge"):
        wai.grade(rows(), judge)
    wai.configure(rubric="Is polite.")
    made = settings.judge_of(judge)
    assert isinstance(made, wai.Judge)
    assert made.rubric == "Is polite."
    file = tmp_path / "rubric.md"
    file.write_text("- [hard] asks: Asks.\n", encoding="utf-8")
    with wai.context(rubric=str(file)):
        assert isinstance(settings.judge_of(judge).rubric, wai.Rubric)
