"""Jobs made before they are needed: while the agents of a run wait, its next tasks are prepared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(Generic[T]):
    """An iterator, some of whose items can be made before they are asked for.

    Args:
        items: Where they come from, in order.
        room: Most items that wait.

    Example:
        >>> ahead = Ahead(range(3), room=2)
        >>> ahead.make(), ahead.make(), ahead.make(), list(ahead)
        (True, True, False, [0, 1, 2])
    """

    def __init__(self, items: Iterable[T], room: int) -> None:
        self._items = iter(items)
        self._room = room
        self._ready: deque[T] = deque()
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._ready:
            return self._ready.popleft()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return next(self._items)

    def make(self) -> bool:
        """Make one more item ahead; return whether there was room and one left.

        What goes wrong is raised when the item is asked for, after those before it.
        """
        if self._error is not None or len(self._ready) >= self._room:
            return False
        try:
            self._ready.append(next(self._items))
        except StopIteration:
            return False
        except Exception as err:  # noqa: BLE001 - raised in its turn
            self._error = err
            return False
        return True
