"""What an agent is called with: the engine and the conformance kit follow the one rule of `protocols.Agent`."""

from __future__ import annotations

import inspect

import pytest

from whileai_kernel.testing.acting import StubContext, run_agent
from whileai_simulate import simulate


def text(message): ...
def anything(x): ...
def question(prompt: str): ...
def whole(messages): ...
def history(history): ...
def annotated(talk: list[dict]): ...
def both(first, second): ...
def with_context(query, context): ...


CASES = [(text, str), (anything, str), (question, str), (with_context, str)]
CASES += [(whole, list), (history, list), (annotated, list), (both, list)]


@pytest.mark.parametrize(("shape", "kind"), CASES, ids=lambda v: v.__name__)
def test_the_engine_and_the_kit_call_an_agent_with_the_same_kind_of_argument(shape, kind):
    got = []

    def called(*args, **kwargs):
        got.append(args)
        return "It has shipped."

    called.__signature__ = inspect.signature(shape)
    run_agent(called, StubContext())
    data = simulate(called, situations=1, repeats=1)
    assert [type(args[0]) for args in got] == [kind, kind]
    assert data[0]["outcome"] == "completed"
    texts = [args[0] if kind is str else args[0][-1]["content"] for args in got]
    assert texts == [StubContext().task["prompt"], data[0]["prompt"]]
