"""The kernel's conformance kit on everything that the plugin registers."""

from __future__ import annotations

from whileai_kernel.testing import conformance_test

test_conformance = conformance_test("whileai-export")
