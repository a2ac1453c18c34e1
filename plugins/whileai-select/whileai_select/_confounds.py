"""What else differs between chosen and rejected: exact sign tests, with the family-wise error held (Holm 1979)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from whileai_kernel.messages import text_of

Pair = Mapping[str, Any]

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S|^\s*#{1,6}\s|\*\*[^*\n]+\*\*", re.MULTILINE)


@dataclass(frozen=True)
class Confound:
    """One property, compared over all pairs.

    Attributes:
        name: What is compared.
        share: Share of the differing pairs in which the chosen side has more.
        n: Pairs that differ.
        p: Exact two-sided p value of the sign test.
        found: Whether it stands after Holm's correction.
    """

    name: str
    share: float
    n: int
    p: float
    found: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the test as a plain dict."""
        return asdict(self)


def _text(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(text_of(m.get("content")) for m in messages if m.get("role") == "assistant")


PROPERTIES: dict[str, Callable[[Pair, str], float | None]] = {
    "length": lambda pair, side: float(pair[f"{side}_length"]),
    "position": lambda pair, side: None if pair.get(f"{side}_index") is None else float(pair[f"{side}_index"]),
    "style: formatting": lambda pair, side: float(len(_BULLET.findall(_text(pair[side])))),
    "style: exclamation": lambda pair, side: float(_text(pair[side]).count("!")),
    "style: tool calls": lambda pair, side: float(sum(len(m.get("tool_calls") or ()) for m in pair[side])),
    "style: turns": lambda pair, side: float(sum(m.get("role") == "assistant" for m in pair[side])),
}


def confounds(pairs: Sequence[Pair], alpha: float) -> tuple[Confound, ...]:
    """Return the tests over all pairs, smallest p value first.

    Args:
        pairs: Preference pairs.
        alpha: Family-wise error.
    """
    from scipy.stats import binomtest

    tests = []
    for name, read in PROPERTIES.items():
        sides = [(read(p, "chosen"), read(p, "rejected")) for p in pairs]
        more = sum(a is not None and b is not None and a > b for a, b in sides)
        less = sum(a is not None and b is not None and a < b for a, b in sides)
        n = more + less
        p = float(binomtest(more, n).pvalue) if n else 1.0
        tests.append(Confound(name, more / n if n else 0.5, n, p))
    tests.sort(key=lambda t: t.p)
    out, still = [], True
    for rank, test in enumerate(tests):
        still = still and test.p <= alpha / (len(tests) - rank)
        out.append(Confound(test.name, test.share, test.n, test.p, still))
    return tuple(out)
