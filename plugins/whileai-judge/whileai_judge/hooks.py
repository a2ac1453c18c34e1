"""Hooks that whileai-judge adds: probes of judges from other plugins."""

from __future__ import annotations

from collections.abc import Mapping

from whileai_kernel.hookspecs import hookspec


@hookspec
def wai_judge_probes() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Offer probes of judges: name -> ``"package.module:function"``.

    A probe is a function of a row that returns the text of a reply that must not pass, or None where it does not
    apply. With an attribute ``keeps_reply = True`` its text is the row's own failing reply with something added.
    """
