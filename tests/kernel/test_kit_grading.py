"""The conformance kit on verifiers, judges and markers: each check catches the component that it was written for."""

from __future__ import annotations

import itertools
import threading

import pytest

from whileai_kernel.protocols import Example
from whileai_kernel.testing import CHECKS
from whileai_kernel.testing.kit import consequence

GOLD = {"reference": "heron"}
EXAMPLES = (
    Example({"task_id": "t", "prompt": "bird?", "final_text": "heron", "privileged": GOLD}, 1.0),
    Example({"task_id": "t", "prompt": "bird?", "final_text": "goose", "privileged": GOLD}, 0.0),
)
never = threading.Event()


@pytest.fixture(autouse=True)
def short_bound(monkeypatch):
    monkeypatch.setattr("whileai_kernel.testing.grading.SECONDS", 3.0)
    yield
    never.set()
    never.clear()


class Exact:
    """Right in every respect."""

    version = "1"
    examples = EXAMPLES

    def __call__(self, row):
        reference = (row.get("privileged") or {}).get("reference")
        if not isinstance(reference, str) or row.get("final_text") is None:
            return {"reward": None, "status": "missing", "reason": "nothing to compare"}
        return self.grade(row, row["final_text"].strip(), reference)

    def grade(self, row, text, reference):
        return {"reward": float(text == reference), "reason": f"{len(text)} characters"}


class PassesNothing(Exact):
    def grade(self, row, text, reference):
        return 0.0


class PassesEverything(Exact):
    def grade(self, row, text, reference):
        return bool(text)


class Counts(Exact):
    numbers = itertools.count()

    def __init__(self):
        self.number = next(self.numbers)

    def grade(self, row, text, reference):
        return {**super().grade(row, text, reference), "number": self.number}


class OutOfRange(Exact):
    def __call__(self, row):
        return 7 if "\x00" in (row.get("final_text") or "") else super().__call__(row)


class PaysForNothing(Exact):
    def grade(self, row, text, reference):
        return text in ("", reference)


class WritesOnTheRow(Exact):
    def __call__(self, row):
        if isinstance(row, dict):
            row["graded"] = row.get("graded", 0) + 1
        return super().__call__(row)


class WritesTheSameAgain(Exact):
    def __call__(self, row):
        if isinstance(row, dict):
            row["graded"] = True
        return super().__call__(row)


class NeverEnds(Exact):
    def __call__(self, row):
        if len(row.get("final_text") or "") > 10_000:
            never.wait()
        return super().__call__(row)


class MainThreadOnly(Exact):
    def grade(self, row, text, reference):
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("signal only works in main thread of the main interpreter")
        return super().grade(row, text, reference)


class NeedsNoGold(Exact):
    def __call__(self, row):
        answer = super().__call__(row)
        return answer if isinstance(row.get("privileged"), dict) and row["privileged"].get("reference") else 0.0


class Tells(Exact):
    def grade(self, row, text, reference):
        return {"reward": float(text == reference), "reason": f"want {reference}"}


class TellsInEvidence(Exact):
    def grade(self, row, text, reference):
        return {"reward": float(text == reference), "details": [{"expected": f"it was {reference}!"}]}


async def exact_async(row):
    return Exact()(row)


exact_async.examples = EXAMPLES
exact_async.version = "1"

VERIFIERS = {
    "accepts_its_gold": PassesNothing,
    "rejects_a_wrong_answer": PassesEverything,
    "is_deterministic": Counts,
    "stays_in_range": OutOfRange,
    "never_passes_an_empty_answer": PaysForNothing,
    "leaves_the_row_alone": WritesOnTheRow,
    "ends_on_a_megabyte": NeverEnds,
    "works_from_any_thread": MainThreadOnly,
    "needs_its_gold": NeedsNoGold,
    "keeps_the_gold_to_itself": Tells,
}


@pytest.mark.parametrize("verifier", [Exact, Exact(), exact_async], ids=["class", "object", "coroutine"])
def test_a_right_verifier_passes(failed_checks, verifier):
    assert failed_checks("verifiers", verifier) == {}


@pytest.mark.parametrize("name", [c.__name__ for c in CHECKS["verifiers"]])
def test_each_check_of_verifiers_catches_its_own(failed_checks, name):
    failed = failed_checks("verifiers", VERIFIERS[name])
    assert set(failed) == {name}
    check = next(c for c in CHECKS["verifiers"] if c.__name__ == name)
    assert failed[name].startswith(consequence(check))


@pytest.mark.parametrize("kind", ["verifiers", "judges"])
def test_writing_the_same_again_is_caught(failed_checks, kind):
    assert set(failed_checks(kind, WritesTheSameAgain)) == {"leaves_the_row_alone"}


def test_gold_in_evidence_is_told_too(failed_checks):
    assert set(failed_checks("verifiers", TellsInEvidence)) == {"keeps_the_gold_to_itself"}


def test_a_verifier_without_examples_is_not_green(failed_checks):
    def bare(row):
        return 1.0

    assert "accepts_its_gold" in failed_checks("verifiers", bare)


# --- judges ---


class Misreads(Exact):
    def grade(self, row, text, reference):
        return {"reward": float(text != reference)}


class ScoresNothingAsZero(Exact):
    def __call__(self, row):
        return 0.0 if row.get("final_text") is None else super().__call__(row)


class Unversioned(Exact):
    version = None


JUDGES = {
    "gives_the_expected_verdict": Misreads,
    "does_not_score_what_it_cannot_read": ScoresNothingAsZero,
    "stays_in_range": OutOfRange,
    "leaves_the_row_alone": WritesOnTheRow,
    "works_from_any_thread": MainThreadOnly,
    "is_versioned": Unversioned,
    "keeps_the_gold_to_itself": Tells,
}


@pytest.mark.parametrize("judge", [Exact, exact_async], ids=["class", "coroutine"])
def test_a_right_judge_passes(failed_checks, judge):
    assert failed_checks("judges", judge) == {}


@pytest.mark.parametrize("name", [c.__name__ for c in CHECKS["judges"]])
def test_each_check_of_judges_catches_its_own(failed_checks, name):
    assert set(failed_checks("judges", JUDGES[name])) == {name}


# --- markers ---


class Polite:
    """Right in every respect."""

    examples = (
        Example({"final_text": "thank you"}, 1.0),
        Example({"final_text": "no"}, 0.0),
        Example({"final_text": None}, None),
    )

    def __call__(self, row):
        text = row.get("final_text")
        return None if text is None else self.mark(row, text, 1.0 if "thank" in text else 0.0)

    def mark(self, row, text, value):
        return {"value": value, "evidence": None if value else {"said": text[:20]}}


class Rude(Polite):
    def mark(self, row, text, value):
        return {"value": 1 - value, "evidence": "x"}


class Percent(Polite):
    def mark(self, row, text, value):
        return 50 if "\x00" in text else super().mark(row, text, value)


class Truth(Polite):
    def mark(self, row, text, value):
        return True if "\x00" in text else super().mark(row, text, value)


class ChangesItsMind(Polite):
    numbers = itertools.count()

    def __init__(self):
        self.number = next(self.numbers)

    def mark(self, row, text, value):
        return {"value": value, "evidence": self.number + 1}


class Silent(Polite):
    def mark(self, row, text, value):
        return value


class MarksTheRow(Polite):
    def __call__(self, row):
        if isinstance(row, dict):
            row.setdefault("seen", []).append(1)
        return super().__call__(row)


class MarksForEver(Polite):
    def mark(self, row, text, value):
        if len(text) > 10_000:
            never.wait()
        return super().mark(row, text, value)


MARKERS = {
    "marks_its_examples": [Rude],
    "marks_stay_in_range": [Percent, Truth],
    "marks_are_deterministic": [ChangesItsMind],
    "shows_its_evidence": [Silent],
    "marks_leave_the_row_alone": [MarksTheRow],
    "marks_a_megabyte": [MarksForEver],
}


def test_a_right_marker_passes(failed_checks):
    assert failed_checks("markers", Polite) == {}


@pytest.mark.parametrize(("name", "marker"), [(name, m) for name, ms in MARKERS.items() for m in ms])
def test_each_check_of_markers_catches_its_own(failed_checks, name, marker):
    assert set(failed_checks("markers", marker)) == {name}


def test_every_check_has_its_wrong_component():
    for kind, wrong in (("verifiers", VERIFIERS), ("judges", JUDGES), ("markers", MARKERS)):
        assert list(wrong) == [c.__name__ for c in CHECKS[kind]]
