"""Checks for the kinds that look at one row: verifiers, judges, markers."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from whileai_kernel.models import Judgment
from whileai_kernel.protocols import Example
from whileai_kernel.testing.kit import Check, Skip, Subject
from whileai_kernel.testing.parts import call, hostile_texts, in_thread, odd_rows, text_in, unchanged
from whileai_kernel.verdicts import error_judgment, to_judgment

__all__ = ["JUDGE_CHECKS", "MARKER_CHECKS", "VERIFIER_CHECKS"]

SECONDS = 20.0  # bound on one call with a text of 1 MB: generous, it catches what does not end
THREADS = 8


def verdict(component: Any, row: Mapping[str, Any]) -> Judgment:
    """Return the judgment on a row; an exception becomes its status, as in the grading pipeline."""
    try:
        return to_judgment(call(component, row))[0]
    except Exception as err:  # noqa: BLE001 - what a judge raises is a status
        return error_judgment(err)


def _pick(subject: Subject, accepted: bool) -> list[Example]:
    examples = [e for e in subject.examples() if e.reward is not None and (e.reward >= 1.0) == accepted]
    if not examples:
        raise Skip(f"{subject.id} ships no {'accepted' if accepted else 'rejected'} example")
    return examples


def accepts_its_gold(subject: Subject) -> None:
    """A verifier that fails a right answer teaches the model to avoid it."""
    for example in _pick(subject, accepted=True):
        got = verdict(subject.component, example.row)
        assert got.reward is not None and got.reward >= got.threshold, f"expected a pass, got {got!r}"


def rejects_a_wrong_answer(subject: Subject) -> None:
    """A verifier that passes a wrong answer pays for it."""
    for example in _pick(subject, accepted=False):
        got = verdict(subject.component, example.row)
        assert got.reward is not None and abs(got.reward - (example.reward or 0.0)) < 1e-9, (
            f"expected reward {example.reward}, got {got!r}"
        )


def is_deterministic(subject: Subject) -> None:
    """Two verdicts on one row make the reward a lottery."""
    for example in subject.examples():
        first, second = verdict(subject.component, example.row), verdict(subject.fresh(), example.row)
        assert first == second, f"{first!r} and then {second!r}"


def stays_in_range(subject: Subject) -> None:
    """A reward outside [0, 1], or of another type, is thrown away and its rollout with it."""
    for row in [*(e.row for e in subject.examples()), *odd_rows()]:
        try:
            value = call(subject.component, row)
        except Exception as err:  # noqa: BLE001 - an exception is a status of its own, and in range
            del err
            continue
        said_so = isinstance(value, Mapping) and value.get("status") == "invalid"
        got = to_judgment(value)[0]
        assert said_so or got.status != "invalid", f"row {str(row)[:200]}: {got.reason}"


def never_passes_an_empty_answer(subject: Subject) -> str | None:
    """An agent that says and does nothing must not be paid."""
    for example in _pick(subject, accepted=True):
        for text in ("", "   \n", None):
            row = {**example.row, "final_text": text, "messages": [], "steps": []}
            got = verdict(subject.component, row)
            assert got.reward is None or got.reward < got.threshold, f"final_text {text!r} passed: {got!r}"
    return None


def leaves_the_row_alone(subject: Subject) -> None:
    """A component that changes the row changes what every later one sees."""
    for example in subject.examples():
        row = copy.deepcopy(dict(example.row))
        assert unchanged(row, lambda r: verdict(subject.component, r)), "the row was changed"


def ends_on_a_megabyte(subject: Subject) -> None:
    """One reply that is never finished with stops a whole run."""
    base = next(iter(subject.examples())).row
    for text in hostile_texts():
        row = {**base, "final_text": text}
        if base.get("messages"):
            row["messages"] = [*base["messages"][:-1], {"role": "assistant", "content": text}]
        in_thread(lambda row=row: verdict(subject.component, row), SECONDS)  # type: ignore[misc]


def works_from_any_thread(subject: Subject) -> None:
    """A verdict that depends on the calling thread is 0 in the trainer and 1 in the notebook."""
    rows = [e.row for e in subject.examples()]
    expected = [verdict(subject.component, row) for row in rows]
    with ThreadPoolExecutor(THREADS) as pool:
        for got in pool.map(lambda _: [verdict(subject.component, row) for row in rows], range(THREADS)):
            assert got == expected, f"from a worker thread {got!r}, from the main thread {expected!r}"

    async def inside() -> list[Judgment]:
        return [verdict(subject.component, row) for row in rows]

    got = in_thread(lambda: asyncio.run(inside()), SECONDS)
    assert got == expected, f"inside a running loop {got!r}, outside {expected!r}"


def needs_its_gold(subject: Subject) -> str | None:
    """A reward without a reference to compare with is made up."""
    with_gold = [e for e in subject.examples() if _reference(e.row) is not None and e.reward is not None]
    if not with_gold:
        return "does not apply: no example has a reference"
    for example in with_gold:
        row = {**example.row, "privileged": {}}
        got = verdict(subject.component, row)
        assert got.reward is None, f"without privileged.reference the reward was {got.reward}"
    return None


def keeps_the_gold_to_itself(subject: Subject) -> str | None:
    """A reason that quotes the reference carries the answer key into the training file."""
    checked = 0
    for example in subject.examples():
        gold = _reference(example.row)
        if not isinstance(gold, str) or len(gold) < 2 or text_in({**example.row, "privileged": None}, gold):
            continue
        got = verdict(subject.component, example.row)
        checked += 1
        assert not text_in([got.reason, got.evidence], gold), f"the reference is in {got.reason!r} {got.evidence!r}"
    return None if checked else "does not apply: no example has a text reference that its reply does not hold"


def _reference(row: Mapping[str, Any]) -> Any:
    private = row.get("privileged")
    return private.get("reference") if isinstance(private, Mapping) else None


VERIFIER_CHECKS: tuple[Check, ...] = (
    accepts_its_gold,
    rejects_a_wrong_answer,
    is_deterministic,
    stays_in_range,
    never_passes_an_empty_answer,
    leaves_the_row_alone,
    ends_on_a_megabyte,
    works_from_any_thread,
    needs_its_gold,
    keeps_the_gold_to_itself,
)


def gives_the_expected_verdict(subject: Subject) -> None:
    """A judge that misreads its own examples cannot be believed on others."""
    for example in subject.examples():
        got = verdict(subject.component, example.row)
        want = example.reward
        same = got.reward is None if want is None else got.reward is not None and abs(got.reward - want) < 1e-9
        assert same, f"expected {want}, got {got!r}"


def does_not_score_what_it_cannot_read(subject: Subject) -> None:
    """A judge that cannot be read is not scored; booked as 0 it understates the agent."""
    for row in ({}, {"task_id": "t", "final_text": None, "messages": None}):
        got = verdict(subject.component, row)
        assert got.reward is None, f"a row without anything to read got reward {got.reward}"


def is_versioned(subject: Subject) -> None:
    """Verdicts of two versions of a judge in one file must be told apart."""
    from whileai_kernel.registry import spec_of

    spec = spec_of(subject.component)
    version = subject.attribute("version") or (spec.version if spec else None)
    assert isinstance(version, str) and version, "the judge has no version"


JUDGE_CHECKS: tuple[Check, ...] = (
    gives_the_expected_verdict,
    does_not_score_what_it_cannot_read,
    stays_in_range,
    leaves_the_row_alone,
    works_from_any_thread,
    is_versioned,
    keeps_the_gold_to_itself,
)


def mark(component: Any, row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return `(value, evidence)` of a marker."""
    got = call(component, row)
    return (got.get("value"), got.get("evidence")) if isinstance(got, Mapping) else (got, None)


def marks_its_examples(subject: Subject) -> None:
    """A marker that is wrong on its own examples reports a risk that is not there, or misses one that is."""
    examples = subject.examples()
    assert any(e.reward == 1.0 for e in examples), "no example of the good outcome (1.0)"
    assert any(e.reward is not None and e.reward < 1.0 for e in examples), "no example of the bad outcome"
    for example in examples:
        value = mark(subject.component, example.row)[0]
        assert value == example.reward, f"expected {example.reward}, got {value!r} on {str(example.row)[:200]}"


def marks_stay_in_range(subject: Subject) -> None:
    """1.0 is the good outcome for every marker; other scales cannot be averaged."""
    for row in [*(e.row for e in subject.examples()), *odd_rows()]:
        value = mark(subject.component, row)[0]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        assert value is None or (number and 0.0 <= value <= 1.0), f"{value!r} on {str(row)[:200]}"


def marks_are_deterministic(subject: Subject) -> None:
    """A marker that changes its mind cannot be compared between runs."""
    for example in subject.examples():
        first, second = mark(subject.component, example.row), mark(subject.fresh(), example.row)
        assert first == second, f"{first!r} and then {second!r}"


def shows_its_evidence(subject: Subject) -> None:
    """A bad mark without evidence cannot be checked by a person."""
    for example in subject.examples():
        value, evidence = mark(subject.component, example.row)
        assert value is None or value >= 1.0 or evidence, f"value {value} without evidence on {str(example.row)[:200]}"


def marks_leave_the_row_alone(subject: Subject) -> None:
    """A component that changes the row changes what every later one sees."""
    for example in subject.examples():
        row = copy.deepcopy(dict(example.row))
        assert unchanged(row, lambda r: mark(subject.component, r)), "the row was changed"


def marks_a_megabyte(subject: Subject) -> None:
    """One reply that is never finished with stops a whole run."""
    base = next(iter(subject.examples())).row
    for text in hostile_texts():
        row = {**base, "final_text": text, "messages": [{"role": "assistant", "content": text}]}
        in_thread(lambda row=row: mark(subject.component, row), SECONDS)  # type: ignore[misc]


MARKER_CHECKS: tuple[Check, ...] = (
    marks_its_examples,
    marks_stay_in_range,
    marks_are_deterministic,
    shows_its_evidence,
    marks_leave_the_row_alone,
    marks_a_megabyte,
)
