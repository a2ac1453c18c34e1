"""Every component of the plugin passes the kernel's conformance kit with its own examples."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from whileai_kernel import entries
from whileai_kernel.testing import Subject, check_entry, example_params
from whileai_kernel.testing.kit import run_check
from whileai_verify.checks import SANDBOX_CHECKS
from whileai_verify.sandbox import SandboxJob, SandboxResult

ENTRIES = [e for kind in ("verifiers", "sandboxes", "commands") for e in entries(kind) if e.plugin.name == "verify"]
NEEDS = {"math_equal": "math_verify", "json_schema": "jsonschema"}
LINUX = {"code_exec", "local"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_conforms(entry: Any) -> None:
    if entry.name in NEEDS:
        pytest.importorskip(NEEDS[entry.name])
    if entry.name in LINUX and not sys.platform.startswith("linux"):
        pytest.skip("the local sandbox needs Linux")
    report = check_entry(entry)
    assert report.ok, str(report)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.kind == "verifiers"], ids=lambda e: e.name)
def test_examples_give_their_rewards(entry: Any) -> None:
    if entry.name in NEEDS:
        pytest.importorskip(NEEDS[entry.name])
    target = entry.load()
    verifier = target(**example_params(target))
    for example in verifier.examples:
        got = verifier(example.row)
        assert got["reward"] == example.reward, (entry.name, example, got)
        assert got["reward"] is not None or got["status"] in ("missing", "error", "timeout")


class Careless:
    """A sandbox that believes the candidate: every check has to notice."""

    def run(self, job: SandboxJob) -> SandboxResult:
        class Lie:
            def __eq__(self, other: object) -> bool:
                return True

            __hash__ = object.__hash__

        values = tuple(("value", Lie()) for _ in job.calls)
        return SandboxResult("", (), "", 0, b"True", values, {"t": ""})  # type: ignore[arg-type]


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda c: c.__name__)
def test_each_check_notices_a_wrong_sandbox(check: Any) -> None:
    result = run_check(check, Subject("sandboxes", "here/careless", Careless()))
    assert result.outcome == "failed", str(result)
