"""Objects of a candidate, as the tests see them: remote calls with plain values.

A call sends its arguments as data and gets a value back as data, so comparisons happen in the tests' process, between
genuine built-in objects. What is not plain data stays with the candidate and is a `Remote` here.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from whileai_verify.frames import read_frame, write_frame
from whileai_verify.unsupported import UnsupportedError
from whileai_verify.wire import CannotCrossError, decode, encode

__all__ = ["CandidateGoneError", "Link", "Remote"]


class CandidateGoneError(BaseException):
    """The candidate's process ended; not an Exception, so that no test can swallow it."""


class Link:
    """The connection to the candidate."""

    def __init__(self, fd: int, limit: int) -> None:
        self.fd, self.limit = fd, limit
        self.callbacks: list[Any] = []
        self.mocks = False  # a mock stands for a function just now
        self.returning = False  # the value of a function of the tests is on its way to the candidate
        self.errors: dict[str, type[BaseException]] = {}

    def receive(self) -> dict[str, Any]:
        """Read one message; anything that is not a message ends the candidate."""
        try:
            frame = read_frame(self.fd, limit=self.limit)
        except Exception as error:  # noqa: BLE001 - a frame that is too large or broken ends the candidate
            raise CandidateGoneError(f"the candidate sent a value that is too large ({type(error).__name__})") from None
        if frame is None:
            raise CandidateGoneError("the candidate's process ended before its tests")
        try:
            message = json.loads(frame)
        except (ValueError, RecursionError):
            raise CandidateGoneError("the candidate sent something that is not a value") from None
        if not isinstance(message, dict):
            raise CandidateGoneError("the candidate sent something that is not a value")
        return message

    def ask(self, request: dict[str, Any], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Send one request and return its value, or raise what the candidate raised."""
        for arg in (*args, *(kwargs or {}).values()):
            if isinstance(arg, str) and _own_file(arg):
                raise UnsupportedError("files that the tests and the code share")
        request["args"] = [self.encode(a) for a in args]
        request["kwargs"] = {k: self.encode(v) for k, v in (kwargs or {}).items()}
        self.send(request)
        while True:
            message = self.receive()
            if "callback" in message:
                self.call_back(message)
                continue
            return self.result(message, args)

    @contextlib.contextmanager
    def patching(self) -> Iterator[None]:
        """Let mocks cross as functions: they replace an attribute that the candidate calls."""
        self.mocks = True
        try:
            yield
        finally:
            self.mocks = False

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        try:
            write_frame(self.fd, json.dumps(message).encode())
        except OSError:
            raise CandidateGoneError("the candidate's process ended before its tests") from None

    def result(self, message: dict[str, Any], args: tuple[Any, ...]) -> Any:
        """Return the value of an answer, bring mutable arguments up to date, or raise what was raised."""
        try:
            if isinstance(message.get("out"), str) and message["out"]:
                sys.stdout.write(message["out"])
            for n, data in (message.get("changed") or {}).items():
                _update(args[int(n)], self.decode(data))
            if "raised" in message:
                raise self.exception(message["raised"])
            return self.decode(message.get("value"))
        except CannotCrossError as error:
            raise CandidateGoneError(f"the candidate sent {error}") from None
        except (IndexError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, tuple(self.errors.values())) or "raised" in message:
                raise
            raise CandidateGoneError("the candidate sent something that is not a value") from None

    def exception(self, data: dict[str, Any]) -> BaseException:
        """Return an exception of the candidate: its own class where the source declares it, else the built-in one."""
        try:
            args = [decode(a) for a in data.get("args") or []]
        except CannotCrossError:
            args = []
        for name in data.get("mro") or []:
            found = self.errors.get(name) or getattr(builtins, str(name), None)
            if isinstance(found, type) and issubclass(found, Exception):
                try:
                    error: BaseException = found(*args)
                except Exception:  # noqa: BLE001 - some built-in exceptions want other arguments
                    error = found()
                with contextlib.suppress(AttributeError):
                    error._whileai_remote = True  # type: ignore[attr-defined]
                return error
        return RuntimeError(f"the candidate raised {str(data.get('type'))[:100]}")

    def call_back(self, message: dict[str, Any]) -> None:
        """Run a function of the tests for the candidate."""
        try:
            function = self.callbacks[message["callback"]]
            args = [self.decode(a) for a in message.get("args") or []]
            kwargs = {k: self.decode(v) for k, v in (message.get("kwargs") or {}).items()}
            value = function(*args, **kwargs)
            self.returning = True
            reply = {"returned": self.encode(value)}
        except Exception as error:  # noqa: BLE001 - goes back to the caller, as it would in one process
            reply = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
        finally:
            self.returning = False
        self.send(reply)

    def encode(self, value: Any) -> Any:
        """Return a value as data."""
        return encode(value, self.handle)

    def handle(self, value: Any) -> Any:
        """Return the data that stands for an object: a remote one, a type, or a function of the tests."""
        if isinstance(value, Remote):
            return {"o": value._number}
        if isinstance(value, type) and value.__module__ == "builtins":
            return {"T": value.__name__}
        if not self.mocks and any(c.__name__ == "NonCallableMock" for c in type(value).__mro__):
            raise UnsupportedError("a mock that the code would look into")
        if inspect.iscoroutinefunction(value):
            raise UnsupportedError("an asynchronous function that the code would call")
        if callable(value):
            self.callbacks.append(value)
            return {"cb": len(self.callbacks) - 1}
        if self.returning or inspect.iscoroutine(
            value
        ):  # what a function of the tests returns depends on what the candidate gave it
            raise CannotCrossError(f"a test value of type {type(value).__name__}")
        raise UnsupportedError(f"a test value of type {type(value).__name__}, which does not cross to the code")

    def decode(self, data: Any) -> Any:
        """Return the value of data."""
        return decode(data, self.object_of)

    def object_of(self, data: Any) -> Any:
        """Return the remote object that data stands for."""
        if "cb" in data:
            return self.callbacks[int(data["cb"])]
        if data.get("kind") == "coroutine":
            return _await(self, int(data["o"]))
        return Remote(self, int(data["o"]), str(data.get("type"))[:100], bool(data.get("callable")))


def _own_file(text: str) -> bool:
    """Return whether a text is the path of a file that the tests have made: the candidate has another directory."""
    if not 0 < len(text) < 1_000 or "\0" in text or text.strip("./") == "":
        return False
    path = os.path.abspath(text)  # noqa: PTH100 - no pathlib here
    return path.startswith(os.getcwd() + os.sep) and os.path.exists(path)  # noqa: PTH109, PTH110


async def _await(link: Link, number: int) -> Any:
    return link.ask({"op": "await", "on": number})


def _update(old: Any, new: Any) -> None:
    """Bring a mutable argument to the value that the candidate left in it."""
    if isinstance(old, list) and isinstance(new, list):
        for i in range(min(len(old), len(new))):
            if type(old[i]) is type(new[i]) and isinstance(old[i], list | dict | set | bytearray):
                _update(old[i], new[i])
            else:
                old[i] = new[i]
        del old[len(new) :]
        old.extend(new[len(old) :])
    elif isinstance(old, dict) and isinstance(new, dict):
        kept = {k: old[k] for k in new if k in old}
        old.clear()
        for key, value in new.items():
            before = kept.get(key)
            if type(before) is type(value) and isinstance(before, list | dict | set):
                _update(before, value)
                value = before
            old[key] = value
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray) and isinstance(new, bytes | bytearray):
        old[:] = new


_ASKED = ("__name__", "__qualname__", "__doc__", "__dict__", "__wrapped__", "__annotations__", "__defaults__")


class Remote:
    """An object of the candidate.

    It equals no plain value, and its operators are not asked about one: `__eq__`, `__lt__`, `__sub__` or `__contains__`
    of an object that stands where a plain value is expected would otherwise see what is expected and answer for it.
    Instances of a class that the tests themselves make (`Stack()`, a capitalised name) are `own`: their operators are
    under test and are asked.
    """

    __slots__ = ("_callable", "_class", "_link", "_number", "_own", "_type")

    def __init__(self, link: Link, number: int, kind: str, is_callable: bool) -> None:
        for name, value in (("_link", link), ("_number", number), ("_type", kind), ("_callable", is_callable)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_own", False)
        object.__setattr__(self, "_class", False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object in the candidate's process."""
        value = self._link.ask({"op": "call", "on": self._number}, args, kwargs)
        return _own(value) if self._class else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _ASKED:
            raise AttributeError(name)
        return self._link.ask({"op": "get", "on": self._number, "name": name})

    def __setattr__(self, name: str, value: Any) -> None:
        with self._link.patching():
            self._link.ask({"op": "set", "on": self._number, "name": name}, (value,))

    def __delattr__(self, name: str) -> None:
        self._link.ask({"op": "del", "on": self._number, "name": name})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Remote) and self._number == other._number:
            return True
        if not (self._own or (isinstance(other, Remote) and other._own)):
            return False
        return _special(self, "__eq__", other) is True or (
            isinstance(other, Remote) and _special(other, "__eq__", self) is True
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("remote", self._number))

    def __bool__(self) -> bool:
        for name in ("__bool__", "__len__"):
            try:
                return bool(_special(self, name))
            except AttributeError:
                continue
        return True

    def __contains__(self, item: Any) -> bool:
        if self._own:
            try:
                return bool(_special(self, "__contains__", item))
            except AttributeError:
                pass  # it has no such operator: Python iterates then, and so does this
        return any(item is each or item == each for each in self)

    def __instancecheck__(self, instance: Any) -> bool:
        if not isinstance(instance, Remote):
            return False
        return self._link.ask({"op": "isinstance", "on": self._number}, (instance,)) is True

    def __subclasscheck__(self, cls: Any) -> bool:
        if not isinstance(cls, Remote):
            return False
        return self._link.ask({"op": "issubclass", "on": cls._number}, (self,)) is True

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        raise UnsupportedError("tests that subclass a class of the code")

    def __repr__(self) -> str:
        return str(_special(self, "__repr__"))

    def __str__(self) -> str:
        return str(_special(self, "__str__"))

    def __iter__(self) -> Any:
        inner = _special(self, "__iter__")
        return inner if isinstance(inner, Remote) else iter(inner)

    def __next__(self) -> Any:
        return _special(self, "__next__")

    async def _whole(self) -> Any:
        return self._link.ask({"op": "await", "on": self._number})

    def __await__(self) -> Any:
        return self._whole().__await__()


def _own(value: Any) -> Any:
    if isinstance(value, Remote):
        object.__setattr__(value, "_own", True)
    return value


def _special(remote: Remote, name: str, *args: Any) -> Any:
    return remote._link.ask({"op": "special", "on": remote._number, "name": name}, args)


def _plain_special(name: str) -> Callable[..., Any]:
    """Return a method that asks the candidate's object about itself, or for an item."""

    def method(self: Remote, *args: Any) -> Any:
        try:
            return _special(self, name, *args)
        except AttributeError:
            raise TypeError(f"the object has no {name}") from None

    return method


def _operator(name: str) -> Callable[..., Any]:
    """Return a method that asks the candidate's object about another value, only where it is under test itself."""

    def method(self: Remote, other: Any) -> Any:
        if not (self._own or (isinstance(other, Remote) and other._own)):
            return NotImplemented
        try:
            return _own(_special(self, name, other))
        except AttributeError:
            return NotImplemented

    return method


_PLAIN = (
    "len",
    "getitem",
    "setitem",
    "delitem",
    "neg",
    "pos",
    "abs",
    "invert",
    "int",
    "float",
    "index",
    "enter",
    "exit",
)
_OPERATORS = (
    *("lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod"),
    *("pow", "and", "or", "xor", "matmul", "iadd", "isub", "imul", "lshift", "rshift", "rfloordiv", "rmod"),
)
for _name in (*_PLAIN, "reversed", "round", "complex"):
    setattr(Remote, f"__{_name}__", _plain_special(f"__{_name}__"))
for _name in _OPERATORS:
    setattr(Remote, f"__{_name}__", _operator(f"__{_name}__"))
