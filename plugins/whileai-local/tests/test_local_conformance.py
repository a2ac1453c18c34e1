"""The plugin passes the conformance kit."""

from whileai_kernel.testing import conformance_test

test_conformance = conformance_test("local")
