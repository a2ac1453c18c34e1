"""The plugin passes the kernel's conformance kit, and its light module is light."""

from __future__ import annotations

import subprocess
import sys

from whileai_kernel.testing import conformance_test

test_conformance = conformance_test("simulate")


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, whileai_simulate, whileai_simulate.plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    loaded = set(done.stdout.split())
    assert not loaded & {"faker", "tqdm", "numpy", "pydantic", "asyncio", "whileai_simulate.run"}
