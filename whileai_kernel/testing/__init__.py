"""What tests need: the conformance kit, a scripted model, a scripted model server.

The kit holds the checks that every component of a kind must pass, as plain functions. From Python, from the shell
(`wai plugins check NAME`) and as a test of a plugin's own suite::

    from whileai_kernel.testing import conformance_test

    test_conformance = conformance_test("acme-graders")

Each check's docstring is the consequence of breaking it. A component ships `examples` (see `protocols.Example` and
`protocols.FileExample`), may name the parameters it is checked with in `example_params`, and may declare
`expected_failures = {"check_name": "reason"}`. `CHECKS` holds the checks by kind; a plugin that adds a kind
gives its checks in the hook `wai_conformance_checks`.

`ScriptedModel` answers in the process; `ModelServer` is a chat-completions server on loopback, for what has to be
tested over HTTP. The names below are imported when they are first used: a script that wants a scripted model does not
load the kit.

Example:
    >>> from whileai_kernel.protocols import Example
    >>> from whileai_kernel.testing import check_component
    >>> def shout(row): return (row.get("final_text") or "").isupper()
    >>> shout.examples = [Example({"final_text": "YES"}, 1.0), Example({"final_text": "no"}, 0.0)]
    >>> check_component("verifiers", shout).ok
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_kernel.testing.checking import (
        CHECKS,
        check_component,
        check_entry,
        check_plugin,
        conformance_test,
        example_params,
        find_plugin,
    )
    from whileai_kernel.testing.distribution import PLUGIN_CHECKS
    from whileai_kernel.testing.kit import Check, Report, Result, Skip, Subject
    from whileai_kernel.testing.models import ScriptedModel
    from whileai_kernel.testing.server import ModelServer, Reply, Request, completion_body

__all__ = [
    "CHECKS",
    "PLUGIN_CHECKS",
    "Check",
    "ModelServer",
    "Reply",
    "Report",
    "Request",
    "Result",
    "ScriptedModel",
    "Skip",
    "Subject",
    "check_component",
    "check_entry",
    "check_plugin",
    "completion_body",
    "conformance_test",
    "example_params",
    "find_plugin",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".checking": (
            "CHECKS",
            "check_component",
            "check_entry",
            "check_plugin",
            "conformance_test",
            "example_params",
            "find_plugin",
        ),
        ".distribution": ("PLUGIN_CHECKS",),
        ".kit": ("Check", "Report", "Result", "Skip", "Subject"),
        ".models": ("ScriptedModel",),
        ".server": ("ModelServer", "Reply", "Request", "completion_body"),
    },
)
