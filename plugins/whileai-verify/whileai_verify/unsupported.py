"""What tests may not do across the border to the candidate: such tests are not scored, never failed."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["UnsupportedError"]


class UnsupportedError(BaseException):
    """The tests need what does not cross; not an Exception, so that no test swallows it.

    Raised for what the tests do, never for what the candidate does: a candidate could otherwise avoid its 0.

    Attributes:
        raised: Reasons of this process so far, also of those that a test caught.
    """

    raised: ClassVar[list[str]] = []

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.raised.append(reason)
