"""The hook that this plugin adds: sandboxes, where model-written code can run.

Example:
    @hookimpl
    def wai_register_sandboxes(register):
        register("remote", "acme_sandbox:Remote", summary="Runs code on a machine elsewhere.")
"""

from __future__ import annotations

from whileai_kernel.hookspecs import hookspec
from whileai_kernel.protocols import Register


@hookspec
def wai_register_sandboxes(register: Register) -> None:
    """Register sandboxes: classes with `run(job) -> SandboxResult`, see `whileai_verify.code.Sandbox`."""
