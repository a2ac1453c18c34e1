"""`@verifier`: a function becomes a verifier.

Example:
    >>> @verifier
    ... def short(reply, reference):
    ...     return len(reply) <= reference
    >>> short({"final_text": "abc", "privileged": {"reference": 3}})["reward"]
    1.0
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.rowview import MISSING, Verdict, no_reference, reference_of, reply_of

__all__ = ["FunctionVerifier", "verifier"]

_NAMES = ("row", "reply", "reference", "prompt", "messages")


class FunctionVerifier:
    """A function as a verifier; made by `verifier`.

    Attributes:
        function: The function as written.
        threshold: Reward from which a rollout passes.
        examples: Rows with their right rewards, for the conformance kit.
    """

    def __init__(
        self, function: Callable[..., Any], *, threshold: float, examples: Sequence[Example], reference: str
    ) -> None:
        parameters = inspect.signature(function).parameters
        self._names = [n for n in parameters if n in _NAMES]
        required = [
            n
            for n, p in parameters.items()
            if n not in _NAMES
            and p.default is p.empty
            and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        self._whole = not self._names and len(required) == 1
        if required and not self._whole:
            raise ParameterError(
                f"{function.__name__} takes {', '.join(required)}, which a row does not have",
                why=f"a verifier takes some of: {', '.join(_NAMES)}",
                fix="name the parameters so, or take one parameter `row`",
            )
        if not self._names and not self._whole:
            raise ParameterError(
                f"{function.__name__} takes nothing", why="a verifier looks at a row", fix="def check(row): ..."
            )
        self.function, self.threshold, self.examples, self.reference = function, threshold, tuple(examples), reference
        functools.update_wrapper(self, function)

    def __call__(self, row: Mapping[str, Any]) -> Any:
        """Return what the function returns, with `reward` in place (a coroutine when it is async)."""
        if self._whole:
            return _as_verdict(self.function(row))
        arguments: dict[str, Any] = {}
        for name in self._names:
            if name == "reference":
                value = reference_of(row, self.reference)
                if value is MISSING:
                    return no_reference(self.reference)
            else:
                value = {
                    "row": row,
                    "reply": reply_of(row),
                    "prompt": row.get("prompt"),
                    "messages": row.get("messages") or [],
                }[name]
            arguments[name] = value
        return _as_verdict(self.function(**arguments))

    def __repr__(self) -> str:
        return f"<verifier {self.function.__qualname__}>"


def _as_verdict(value: Any) -> Any:
    if isinstance(value, bool):
        verdict: Verdict = {"reward": float(value)}
        return verdict
    return value


@overload
def verifier(function: Callable[..., Any], /) -> FunctionVerifier: ...
@overload
def verifier(
    *, threshold: float = ..., examples: Sequence[Example] = ..., reference: str = ...
) -> Callable[[Callable[..., Any]], FunctionVerifier]: ...
def verifier(
    function: Callable[..., Any] | None = None,
    /,
    *,
    threshold: float = 1.0,
    examples: Sequence[Example] = (),
    reference: str = "privileged.reference",
) -> FunctionVerifier | Callable[[Callable[..., Any]], FunctionVerifier]:
    """Turn a function into a verifier.

    The function takes some of `row`, `reply` (what the model said), `reference`, `prompt` and `messages`, by name, or
    one parameter of any name, which is then the row. It returns a bool, a number in [0, 1], `None` (not scored) or a
    dict with `reward` and `reason`; it may be async. A row without the reference that it asks for is not scored.

    Args:
        function: The function, when used without parentheses.
        threshold: Reward from which a rollout passes.
        examples: Rows with their right rewards, for the conformance kit.
        reference: Dotted field that `reference` reads.

    Raises:
        ParameterError: The function takes something that a row does not have.
    """

    def wrap(fn: Callable[..., Any]) -> FunctionVerifier:
        return FunctionVerifier(fn, threshold=threshold, examples=examples, reference=reference)

    return wrap if function is None else wrap(function)
