"""The plugin passes the conformance kit; beside the frameworks (in their environment) their agents are checked too."""

import pytest

from whileai_kernel.testing import conformance_test

test_conformance = pytest.mark.integration(conformance_test("agents"))
