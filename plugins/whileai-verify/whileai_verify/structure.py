"""Structured replies: JSONValid, JSONSchema, JSONField.

What counts as the JSON of a reply is decided in `extract.find_json` and is the same for all three: the whole reply,
else the last fenced JSON block, else the last complete object or array in the prose. Duplicate keys, NaN, infinities,
numbers beyond a double and text after a bare JSON value in `where="whole"` make it invalid.

Example:
    >>> JSONField("city")({"final_text": 'Sure: {"city": "Oslo"}', "privileged": {"reference": "Oslo"}})["reward"]
    1.0
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.compare import first_difference, without_expected
from whileai_verify.defaults import DEADLINE_S
from whileai_verify.extract import FoundJSON, find_json
from whileai_verify.pool import WorkError, WorkTimeoutError, shared_pool
from whileai_verify.rowview import (
    MISSING,
    Verdict,
    check_options,
    lookup,
    no_reference,
    not_scored,
    reference_of,
    reply_of,
    verdict,
)

__all__ = ["JSONField", "JSONSchema", "JSONValid", "schema_problem"]

Where = Literal["anywhere", "whole", "fenced"]
_WHERE = ("anywhere", "whole", "fenced")


def _found(row: Mapping[str, Any], where: str) -> FoundJSON:
    return find_json(reply_of(row), where)


class JSONValid:
    """1 when the reply holds strict JSON.

    Args:
        where: `anywhere` (whole reply, fenced block, or inside prose), `whole` (nothing but JSON), `fenced`.
        kind: `any` value, an `object` or an `array`. A bare number or word is JSON too; ask for `object` to refuse it.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": 'Here it is:\n```json\n{"a": 1}\n```'}, 1.0),
        Example({"final_text": '{"a": NaN}'}, 0.0),
        Example({"final_text": '{"a": 1, "a": 2}'}, 0.0),
        Example({"final_text": ""}, 0.0),
    )

    def __init__(
        self, *, where: Where = "anywhere", kind: Literal["any", "object", "array"] = "any", threshold: float = 1.0
    ) -> None:
        check_options(where=(where, _WHERE), kind=(kind, ("any", "object", "array")))
        self.where, self.kind, self.threshold = where, kind, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        found = _found(row, self.where)
        if found.problem:
            return verdict(0, found.problem)
        kind = "object" if isinstance(found.value, dict) else "array" if isinstance(found.value, list) else "scalar"
        right = self.kind in ("any", kind)
        return verdict(right, f"the reply holds JSON ({kind})", where=found.where)


class JSONField:
    """1 when one field of the reply's JSON has the expected value.

    Types count: `"1"` is not `1`, `true` is not `1`, `1` is `1.0`.

    Args:
        path: Dotted path such as `order.items[0].id`; `""` compares the whole value.
        expected: The value; left out, it comes from the reference field.
        where: As in `JSONValid`.
        rel_tol: Relative tolerance of numbers.
        abs_tol: Absolute tolerance of numbers.
        unordered: Paths of lists whose order does not count.
        subset: Further keys in the reply's objects do not count.
        reference: Dotted field of the row with the expected value.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": '{"city": "Oslo"}', "privileged": {"reference": {"city": "Oslo"}}}, 1.0),
        Example({"final_text": '{"city": "Rome"}', "privileged": {"reference": {"city": "Oslo"}}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": {"city": "Oslo"}}}, 0.0),
        Example({"final_text": '{"city": "Oslo"}'}, None),
    )

    def __init__(
        self,
        path: str = "",
        *,
        expected: Any = MISSING,
        where: Where = "anywhere",
        rel_tol: float = 0.0,
        abs_tol: float = 0.0,
        unordered: tuple[str, ...] = (),
        subset: bool = False,
        reference: str = "privileged.reference",
        threshold: float = 1.0,
    ) -> None:
        check_options(where=(where, _WHERE))
        self.path, self.expected, self.where, self.reference = path, expected, where, reference
        self.rel_tol, self.abs_tol, self.unordered, self.subset = rel_tol, abs_tol, unordered, subset
        self.threshold = threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        expected = self.expected
        if expected is MISSING:
            expected = lookup(row, self.reference)
            if expected is MISSING:
                return no_reference(self.reference)
        found = _found(row, self.where)
        if found.problem:
            return verdict(0, found.problem)
        value = lookup(found.value, self.path) if self.path else found.value
        if value is MISSING:
            return verdict(0, f"the reply's JSON has no field {self.path}")
        difference = first_difference(
            value,
            expected,
            unordered=self.unordered,
            rel_tol=self.rel_tol,
            abs_tol=self.abs_tol,
            subset=self.subset,
        )
        reason = "the field has the expected value" if difference is None else without_expected(difference)
        return verdict(difference is None, reason)


def _refuse_remote(schema: Any) -> None:
    """Raise `ParameterError` when a schema refers to another document: nothing is fetched."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            ref = node.get("$ref")
            if isinstance(ref, str) and not ref.startswith("#"):
                raise ParameterError(
                    f"the schema refers to {ref!r}",
                    why="references to other documents are not fetched",
                    fix="put it under $defs",
                )
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _formats(schema: Any) -> set[str]:
    found: set[str] = set()
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("format"), str):
                found.add(node["format"])
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return found


@functools.lru_cache(maxsize=256)
def _validator(schema_text: str) -> Any:
    """Return a compiled validator with formats on, or raise `ParameterError` for a schema that cannot be checked."""
    import jsonschema
    from jsonschema.validators import validator_for

    schema = json.loads(schema_text)
    if not isinstance(schema, dict | bool):
        raise ParameterError("a JSON schema is an object")
    cls = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ParameterError("not a valid JSON schema", why=error.message[:200]) from None
    _refuse_remote(schema)
    unknown = _formats(schema) - set(cls.FORMAT_CHECKER.checkers)
    if unknown:
        raise ParameterError(
            f"the schema uses formats that cannot be checked: {', '.join(sorted(unknown))}",
            why="an unchecked format would always hold",
            fix="install whileai-verify[schema], or use a pattern",
        )
    return cls(schema, format_checker=cls.FORMAT_CHECKER)


class SchemaError(ValueError):
    """A schema that cannot be evaluated: this says nothing about the reply."""


_SHALLOW = 60  # a value with fewer levels does not exhaust the stack by itself


def _depth(value: Any) -> int:
    """Return how deep a JSON value is nested."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        stack.extend((item, depth + 1) for item in inner)
    return deepest


def schema_problem(value: Any, schema_text: str) -> str | None:
    """Return why a value does not satisfy a schema, or `None`. The value itself is not quoted.

    Raises:
        SchemaError: The schema cannot be evaluated.
    """
    from referencing.exceptions import Unresolvable

    validator = _validator(schema_text)
    try:
        error = min(
            validator.iter_errors(value), key=lambda e: (len(e.absolute_path), str(e.absolute_path)), default=None
        )
    except RecursionError:
        if _depth(value) < _SHALLOW:
            raise SchemaError("the schema refers to itself without end") from None
        return "(root): nested too deeply"
    except Unresolvable:
        raise SchemaError("the schema refers to a part that it does not have") from None
    if error is None:
        return None
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path).lstrip(".")
    return f"{path or '(root)'}: fails {error.validator}"


def schema_verdict(value: Any, schema_text: str, deadline: float) -> Verdict:
    """Return the verdict of a schema on a value; schemas with patterns run in a worker with a deadline."""
    if '"pattern' not in schema_text:
        try:
            problem = schema_problem(value, schema_text)
        except SchemaError as error:
            return not_scored("error", str(error))
    else:
        try:
            problem = shared_pool("whileai_verify.work_schema", 1).call([value, schema_text], deadline)
        except WorkTimeoutError:
            return not_scored("timeout", f"validation did not end within {deadline:g} s")
        except WorkError as error:
            return not_scored("error", error.what)
    return verdict(problem is None, problem or "the schema holds")


class JSONSchema:
    """1 when the reply's JSON satisfies a JSON Schema, formats included.

    References to other documents are refused, and so is a format that cannot be checked: nothing unchecked passes.

    Args:
        schema: The schema; `None` reads it from `schema_field`.
        schema_field: Dotted field of the row with the schema.
        where: As in `JSONValid`.
        deadline: Seconds for schemas with patterns, which run in a worker process.
        threshold: Reward from which a rollout passes.
    """

    _SCHEMA: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    examples = (
        Example({"final_text": '{"n": 1}', "privileged": {"schema": _SCHEMA}}, 1.0),
        Example({"final_text": '{"n": "1"}', "privileged": {"schema": _SCHEMA}}, 0.0),
        Example({"final_text": "", "privileged": {"schema": _SCHEMA}}, 0.0),
        Example({"final_text": '{"n": 1}'}, None),
    )

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        *,
        schema_field: str = "privileged.schema",
        where: Where = "anywhere",
        deadline: float = DEADLINE_S.value,
        threshold: float = 1.0,
    ) -> None:
        import jsonschema  # noqa: F401 - a missing extra is reported when the verifier is made

        check_options(where=(where, _WHERE))
        self.schema_text = None if schema is None else json.dumps(schema, sort_keys=True)
        if self.schema_text is not None:
            _validator(self.schema_text)
        self.schema_field, self.where, self.deadline, self.threshold = schema_field, where, deadline, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        text = self.schema_text
        if text is None:
            schema = reference_of(row, self.schema_field)
            if schema is MISSING:
                return no_reference(self.schema_field)
            try:
                text = json.dumps(schema, sort_keys=True)
                _validator(text)
            except (TypeError, ValueError) as error:
                what = error.what if isinstance(error, ParameterError) else type(error).__name__
                return not_scored("error", f"{self.schema_field}: {what}")
        found = _found(row, self.where)
        if found.problem:
            return verdict(0, found.problem)
        return schema_verdict(found.value, text, self.deadline)
