"""Deterministic draws: the same parts give the same values on every Python version and machine.

A `Draw` is a stream whose start is a hash of its parts, so that every task and rollout has its own stream and no draw
depends on the order in which work is done. Its steps are those of Knuth's 64-bit linear congruential generator, of
which the high half is used; it starts several times faster than `random.Random`, which matters at 10,000 rollouts a
second. It is not for cryptography or statistics.

Example:
    >>> Draw("seed", 0).below(100) == Draw("seed", 0).below(100)
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

__all__ = ["Draw", "hash64", "mixed"]

T = TypeVar("T")
_MASK = (1 << 64) - 1
_STEP, _ADD = 6364136223846793005, 1442695040888963407  # MMIX: Knuth, TAOCP 2, 3.3.4, table 1, line 26
_UNIT = 1.0 / (1 << 32)
_from_bytes = int.from_bytes


def hash64(*parts: object) -> int:
    """Return a 64-bit hash of the text of the parts; the same in every process (`hash` is not)."""
    text = "\x1f".join([str(part) for part in parts])
    return _from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def mixed(start: int, number: int) -> int:
    """Return the hash of a number, one of the family that `start` names: a fraction of the cost of `hash64`.

    It is the output of SplitMix64 (Steele, Lea, Flood 2014, figure 16) that stands `number` places after `start`.
    """
    z = (start + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class Draw:
    """A stream of draws that starts from the hash of its parts."""

    __slots__ = ("_state",)

    def __init__(self, *parts: object) -> None:
        self._state = hash64(*parts)

    @classmethod
    def at(cls, state: int) -> Draw:
        """Return the stream at a 64-bit state that is a hash already."""
        draw = cls.__new__(cls)
        draw._state = state
        return draw

    def bits(self) -> int:
        """Return the next 32 random bits."""
        self._state = z = (self._state * _STEP + _ADD) & _MASK
        return z >> 32

    # The step stands in each of the three: a situation takes 40 draws, and the calls would cost a tenth of it.

    def random(self) -> float:
        """Return a float in [0, 1)."""
        self._state = z = (self._state * _STEP + _ADD) & _MASK
        return (z >> 32) * _UNIT

    def below(self, n: int) -> int:
        """Return an integer in [0, n), n at most 2**32; the bias of the modulo is below n / 2**32."""
        self._state = z = (self._state * _STEP + _ADD) & _MASK
        return (z >> 32) % n

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high], both included; wide ranges take two words of 32 bits."""
        n = high - low + 1
        return low + (self.below(n) if n <= 1 << 32 else ((self.bits() << 32) | self.bits()) % n)

    def choice(self, items: Sequence[T]) -> T:
        """Return one item."""
        self._state = z = (self._state * _STEP + _ADD) & _MASK
        return items[(z >> 32) % len(items)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return a shuffled copy (Fisher-Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out

    def text(self, alphabet: str, length: int) -> str:
        """Return `length` characters of `alphabet`."""
        return "".join([alphabet[self.bits() % len(alphabet)] for _ in range(length)])
