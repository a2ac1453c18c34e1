"""Every verifier of the plugin passes the kernel's conformance kit with its own examples."""

from __future__ import annotations

import pytest

from whileai_kernel import entries, make
from whileai_kernel.testing.grading import VERIFIER_CHECKS
from whileai_kernel.testing.kit import Subject, run_check

NAMES = sorted(e.name for e in entries("verifiers") if e.plugin.name == "verify")
NEEDS = {"math_equal": "math_verify", "json_schema": "jsonschema"}


@pytest.mark.parametrize("name", NAMES)
def test_conforms(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    subject = Subject(
        "verifiers", f"verify/{name}", make("verifiers", f"verify/{name}"), lambda: make("verifiers", f"verify/{name}")
    )
    results = [run_check(check, subject) for check in VERIFIER_CHECKS]
    assert all(r.outcome == "passed" for r in results), "\n".join(map(str, results))


def test_examples_give_their_rewards() -> None:
    for name in NAMES:
        if name in ("math_equal", "json_schema"):
            continue
        verifier = make("verifiers", f"verify/{name}")
        for example in verifier.examples:
            got = verifier(example.row)
            assert got["reward"] == example.reward, (name, example, got)
            assert got.get("status") or got["reward"] is not None
