"""From what a caller names to a component, and from a component to who it is on a verdict.

Names are looked up among judges first and verifiers second; a bare name that both offer raises, as
everywhere.

Example:
    >>> def my_judge(row): return True
    >>> scorer_of(resolve_judge(my_judge))["kind"]
    'rule'
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from whileai_kernel.errors import AmbiguousNameError, ParameterError, UnknownNameError
from whileai_kernel.registry import entries, make, resolve, spec_of
from whileai_kernel.verdicts import jsonable

Component = Callable[[Mapping[str, Any]], Any]

_KINDS = ("judges", "verifiers")
_SCORER_KINDS = {"judges": "judge", "verifiers": "rule"}


def resolve_judge(judge: Component | str) -> Component:
    """The component behind a callable, a registered name, ``"file.py:function"`` or
    ``"package.module:attribute"``.

    Raises:
        AmbiguousNameError: More than one judge or verifier has the bare name.
        ParameterError: It is neither callable nor a name, or it is a class.
        UnknownNameError: No judge and no verifier has that name.
    """
    component = _by_reference(judge) if isinstance(judge, str) else judge
    if isinstance(component, type):
        raise ParameterError(
            f"{component.__name__} is a class, not a judge",
            fix=f"pass an instance: {component.__name__}(...)",
        )
    if not callable(component) and not callable(getattr(component, "grade_batch", None)):
        raise ParameterError(
            f"a judge must be a function of one row, not {type(component).__name__}",
            why="it is called with a row and returns a bool, a number or a dict with a reward",
            fix="pass judge=lambda row: row['final_text'] == '4', or the name of a verifier",
        )
    return component


def _by_reference(ref: str) -> Any:
    found = {kind: sorted(entry.id for entry in entries(kind) if ref in (entry.id, entry.name)) for kind in _KINDS}
    kinds = [kind for kind in _KINDS if found[kind]]
    if len(kinds) == 2 and "/" not in ref:
        ids = found["judges"] + found["verifiers"]
        raise AmbiguousNameError(
            f"{ref!r} names more than one judge or verifier",
            why=f"found {', '.join(ids)}",
            fix=f"use the full id, for example {ids[0]!r}",
        )
    if kinds:
        return make(kinds[0], ref)
    try:
        return resolve("judges", ref)
    except UnknownNameError as no_judge:
        if ":" in ref:
            raise
        try:
            return resolve("verifiers", ref)
        except UnknownNameError as no_verifier:
            raise UnknownNameError(
                f"no judge and no verifier is named {ref!r}",
                why=f"judges {no_judge.why}; verifiers {no_verifier.why}",
                fix=no_verifier.fix if "mean" in no_verifier.fix else no_judge.fix,
            ) from None


def scorer_of(component: Any, ref: str | None = None) -> dict[str, Any]:
    """Who judged, as it is written on a verdict: ``id``, ``kind``, and ``version`` and ``params`` when
    known.

    A component may name itself with an attribute ``scorer`` (a mapping), or only its kind with
    ``scorer_kind`` (``rule``, ``judge``, ``reward_model`` or ``human``; ``rule`` unless it is a registered
    judge).

    Args:
        component: The judge.
        ref: What the caller named it, when that was a file or a module.
    """
    own = getattr(component, "scorer", None)
    if isinstance(own, Mapping):
        return dict(own)
    spec = spec_of(component)
    kind = getattr(component, "scorer_kind", None)
    if spec is not None:
        scorer = {
            "id": spec.id,
            "version": spec.version,
            "kind": kind or _SCORER_KINDS.get(spec.kind, "rule"),
        }
        if spec.params:
            scorer["params"] = jsonable(dict(spec.params))
        return scorer
    scorer = {"id": ref or _name(component), "kind": kind or "rule"}
    version = getattr(component, "version", None)
    if version is not None:
        scorer["version"] = str(version)
    return scorer


def _name(component: Any) -> str:
    while isinstance(component, functools.partial):
        component = component.func
    name = getattr(component, "__qualname__", None)
    if name is None:
        return f"{type(component).__module__}:{type(component).__qualname__}"
    return f"{component.__module__}:{name}"
