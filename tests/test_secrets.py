"""A whole run with keys, against a server that repeats them in replies and errors: no file, log or text holds one."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import whileai as wai
from whileai_kernel.testing import ModelServer, Reply, Request, completion_body

pytestmark = pytest.mark.integration

KEYS = {"agent": "sk-agent-0123456789abcdef", "judge": "sk-judge-fedcba9876543210"}


class Echo:
    """Every third reply is an error; each reply and error holds the key that came with the request."""

    status: int | None = None  # of all replies

    def __call__(self, request: Request) -> Reply:
        key = request.headers["authorization"]
        status = self.status or (500 if request.number % 3 == 2 else 200)
        text = f"You sent {key}. VERDICT: PASS"
        if "response_format" in request.body:
            text = json.dumps({"reason": f"you sent {key}", "verdict": "PASS"})
        body = completion_body(text) if status == 200 else {"error": {"message": f"no: {key}"}}
        return Reply(status, body, {"retry-after": "0"})


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def server(echo: Echo) -> Iterator[ModelServer]:
    with ModelServer(echo) as running:
        yield running


@pytest.fixture(params=["openai", "litellm"])
def model_of(request: pytest.FixtureRequest, server: ModelServer) -> Callable[[str], Any]:
    """Makes the model of a side, with that side's key, through one plugin or the other."""
    if request.param == "openai":
        return lambda side: wai.Endpoint(side, base_url=server.url, api_key=KEYS[side], structured="json_schema")
    pytest.importorskip("litellm", reason="litellm is not installed: see make test-integrations")
    return lambda side: wai.LiteLLM(f"openai/{side}", base_url=server.url, api_key=KEYS[side], structured=True)


def assert_clean(texts: dict[str, Any]) -> None:
    for name, text in texts.items():
        for key in KEYS.values():
            shown = text if isinstance(text, bytes) else str(text).encode()
            assert key.encode() not in shown, f"{name} holds a key"


def test_a_run_leaves_no_key_anywhere(
    model_of: Callable[[str], Any],
    server: ModelServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    agent = wai.Cached(model_of("agent"), tmp_path / "agent.sqlite")
    judge = wai.Judge("Is polite.", wai.Cached(model_of("judge"), tmp_path / "judge.sqlite"))
    data = wai.simulate(
        wai.make("agents", "openai/model", model=agent, sampling={"max_tokens": 16}),
        system_prompt="Be polite.",
        situations=4,
        repeats=2,
        output=tmp_path / "rows.jsonl",
        checkpoint=tmp_path / "rows.journal",
    )
    scored = data.grade(judge=judge)
    scored.write(tmp_path / "scored.jsonl")
    assert {row["outcome"] for row in data} == {"completed"}
    assert all("[key]" in row["final_text"] for row in data)
    assert {row["status"] for row in scored} == {"ok"}
    assert {f"Bearer {key}" for key in KEYS.values()} == {
        r.headers["authorization"] for r in server.requests
    }  # both keys were really used
    agent.close()
    judge.model.close()
    out, err = capfd.readouterr()
    texts: dict[str, Any] = {"log": caplog.text, "stdout": out, "stderr": err}
    texts |= {"rows": json.dumps(scored.rows), "provenance": json.dumps(scored.provenance, default=repr)}
    texts |= {"report": data.report, "warnings": scored.warnings, "agent": repr(agent), "judge": repr(judge)}
    texts |= {"attributes": [vars(agent.inner), vars(judge.model.inner)]}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"rows.jsonl", "scored.jsonl", "agent.sqlite", "judge.sqlite"} <= {path.name for path in files}
    assert_clean(texts | {path.name: path.read_bytes() for path in files})


def test_a_run_that_fails_shows_no_key_either(
    model_of: Callable[[str], Any], echo: Echo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo.status = 401
    agent = wai.make("agents", "openai/model", model=model_of("agent"))
    with pytest.raises(wai.WhileaiError, match="401") as caught:
        wai.simulate(agent, system_prompt="Be polite.", situations=8, checkpoint=tmp_path / "rows.journal")
    rows = wai.rows(["Hi"] * 2, ["Hello."] * 2)
    with pytest.raises(wai.WhileaiError) as refused:
        rows.grade(judge=wai.Judge("Is polite.", model_of("judge")), stop_after=1)
    texts: dict[str, Any] = {"log": caplog.text}
    for name, info in (("agent", caught), ("judge", refused)):
        frames = traceback.TracebackException.from_exception(info.value, capture_locals=True)
        texts[f"{name} error"] = "".join(traceback.format_exception(info.value))
        texts[f"{name} repr"] = repr(info.value)
        # Local variables too: crash reporters send them. The test's own frame, which names the keys, is left out.
        texts[f"{name} locals"] = [str(f.locals) for f in frames.stack if Path(f.filename).name != "test_secrets.py"]
    assert_clean(texts | {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
