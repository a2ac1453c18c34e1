"""Embedders: texts to vectors, for the semantic rule of decontamination. A kind that this plugin adds.

An embedder is any callable from a list of texts to an `n x d` array. Register one with `wai_register_embedders`, or
pass it. `static` is the one that comes with the extra `semantic`: a static word-vector model that ships inside the
wordllama package, so nothing is downloaded. Static vectors know words, not order: treat their hits as leads.

Example:
    >>> unit_rows([[0.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from whileai_kernel.errors import MissingDependencyError, ParameterError

__all__ = ["StaticEmbedder", "resolve_embedder", "unit_rows"]

Embedder = Callable[[Sequence[str]], Any]


def resolve_embedder(embedder: Embedder | str) -> Embedder:
    """Return an embedder from itself or its registered name.

    Raises:
        ParameterError: It is neither callable nor a name.
    """
    if isinstance(embedder, str):
        from whileai_kernel import make

        return cast(Embedder, make("embedders", embedder))
    if not callable(embedder):
        raise ParameterError("an embedder must be callable: texts -> vectors", fix="pass embedder='guard/static'")
    return embedder


def unit_rows(vectors: Any) -> NDArray[np.float32]:
    """Return the vectors as float32 rows of length 1; a zero vector stays zero and is similar to nothing.

    Raises:
        ParameterError: The embedder did not return a finite `n x d` array.
    """
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ParameterError(f"an embedder must return a finite n x d array, not shape {array.shape}")
    norm = np.linalg.norm(array, axis=1, keepdims=True)
    return np.asarray(array / np.where(norm > 0, norm, 1.0), np.float32)


class StaticEmbedder:
    """Static word vectors of the wordllama package (MIT), read from the installed wheel.

    Raises:
        MissingDependencyError: wordllama is not installed.
    """

    def __init__(self) -> None:
        try:
            import wordllama  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as err:
            raise MissingDependencyError(
                "the static embedder needs wordllama",
                why=str(err),
                fix="pip install 'whileai-guard[semantic]'",
            ) from err
        # The loader looks for files on the network unless it is pointed at the ones inside the wheel.
        home = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=home, disable_download=True)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text.

        Args:
            texts: Texts; an empty one has the zero vector.
        """
        return np.asarray(self._model.embed([t or " " for t in texts]), np.float32)
