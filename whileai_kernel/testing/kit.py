"""The runner of the conformance kit: what a check is, how checks are run, what the report says.

A check is a plain function `check(subject)` that raises `AssertionError` when the component breaks the contract.
Its docstring is the consequence, in one sentence, and is the message of the failure. A component may declare
`expected_failures = {"check_name": "reason"}`; the report keeps them apart. A check that does not apply says so by
returning a sentence; one that cannot run raises `Skip`, and a report with skipped checks is not green: fewer
checks ran than the kind has.

Example:
    >>> def never_raises(subject):
    ...     '''A component that raises ends the run of somebody else.'''
    ...     subject.component({})
    >>> result = run_check(never_raises, Subject("verifiers", "here/x", lambda row: 1.0))
    >>> result.outcome
    'passed'
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from whileai_kernel.errors import describe

__all__ = ["Check", "Report", "Result", "Skip", "Subject", "run_check", "run_checks"]

Outcome = Literal["passed", "failed", "expected failure", "skipped"]
Check = Callable[["Subject"], str | None]


class Skip(Exception):
    """A check cannot run on this component; says what is missing."""


@dataclass(frozen=True)
class Subject:
    """A component under test.

    Attributes:
        kind: Its kind, for example `"verifiers"`.
        id: Full id.
        component: The component, made with its example parameters.
        remake: Makes a fresh component; by default returns the same one.
        target: The registered target, on which attributes such as `examples` may stand.
    """

    kind: str
    id: str
    component: Any
    remake: Callable[[], Any] | None = None
    target: Any = None

    def fresh(self) -> Any:
        """Return a newly made component."""
        return self.remake() if self.remake is not None else self.component

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the component, else of its target, else the default."""
        inner = getattr(self.component, "func", None)  # a functools.partial keeps its function there
        for holder in (self.component, inner, self.target):
            if holder is not None and hasattr(holder, name):
                return getattr(holder, name)
        return default

    def examples(self) -> list[Any]:
        """Return copies of the component's examples, so that a check sees what an earlier call did to a row.

        Raises:
            Skip: There are none.
        """
        found = copy.deepcopy(list(self.attribute("examples", ()) or ()))
        if not found:
            raise Skip(f"{self.id} ships no examples; set `examples` on the class or function")
        return found


@dataclass(frozen=True, slots=True)
class Result:
    """What one check said about one component."""

    subject: str
    check: str
    outcome: Outcome
    message: str = ""

    def __str__(self) -> str:
        return f"{self.outcome:>16}  {self.subject}  {self.check}{f': {self.message}' if self.message else ''}"


@dataclass(frozen=True, slots=True)
class Report:
    """Results of a conformance run.

    Attributes:
        results: One per check and component.
        planned: How many checks the kinds of the components have together.
        problems: What went wrong outside any check, for example a component that could not be made.
    """

    results: tuple[Result, ...]
    planned: int
    problems: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """Return how many results have an outcome."""
        return sum(r.outcome == outcome for r in self.results)

    @property
    def ran(self) -> int:
        """Checks that ran: all but the skipped ones."""
        return len(self.results) - self.count("skipped")

    @property
    def ok(self) -> bool:
        """Whether nothing failed, something ran, and no check of a kind was left out."""
        return not self.count("failed") and not self.problems and self.ran > 0 and self.ran >= self.planned

    def __str__(self) -> str:
        lines = [str(r) for r in self.results if r.outcome != "passed"]
        lines += [f"         problem  {p}" for p in self.problems]
        counts = ", ".join(
            f"{self.count(o)} {o}" for o in ("passed", "failed", "expected failure", "skipped") if self.count(o)
        )
        verdict = "conforms" if self.ok else "does not conform"
        if self.ran < self.planned:
            lines.append(f"only {self.ran} of {self.planned} checks ran")
        return "\n".join([*lines, f"{verdict}: {counts or 'no check ran'}"])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "ok": self.ok,
            "planned": self.planned,
            "ran": self.ran,
            "problems": list(self.problems),
            "results": [
                {"subject": r.subject, "check": r.check, "outcome": r.outcome, "message": r.message}
                for r in self.results
            ],
        }


@dataclass(slots=True)
class _Collected:
    results: list[Result] = field(default_factory=list)
    planned: int = 0
    problems: list[str] = field(default_factory=list)


def consequence(check: Check) -> str:
    """Return the first sentence of a check's docstring."""
    return (inspect.getdoc(check) or "the contract is broken").split("\n\n")[0].replace("\n", " ")


def run_check(check: Check, subject: Subject) -> Result:
    """Run one check on one component; never raises for what the component does."""
    name = getattr(check, "__name__", repr(check))
    expected: Mapping[str, str] = subject.attribute("expected_failures", {}) or {}
    try:
        note = check(subject)
    except Skip as err:
        return Result(subject.id, name, "skipped", str(err))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as err:  # noqa: BLE001 - a component may raise anything, SystemExit too
        detail = str(err) if type(err) is AssertionError else describe(err)
        message = f"{consequence(check)} {detail}".strip()
        if name in expected:
            return Result(subject.id, name, "expected failure", f"{expected[name]} ({detail[:200]})")
        return Result(subject.id, name, "failed", message[:2000])
    if name in expected:
        return Result(subject.id, name, "failed", "was expected to fail and passed; remove it from expected_failures")
    return Result(subject.id, name, "passed", note or "")


def run_checks(checks: Iterable[Check], subject: Subject) -> Report:
    """Run checks on one component."""
    planned = list(checks)
    return Report(tuple(run_check(check, subject) for check in planned), len(planned))
