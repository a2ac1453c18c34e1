"""Inside the sandbox: load the candidate and serve calls to it, or run it as a program.

Everything here runs in the candidate's own process and is therefore worth nothing as evidence: it is a servant that
answers calls with data. The tests, the expected values and the verdict are in other processes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import io
import json
import os
import random
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from whileai_verify.frames import read_frame, write_frame
from whileai_verify.wire import CannotCrossError, decode, encode

__all__ = ["run_program", "serve"]

MODULE = "solution"


def write_files(files: dict[str, str]) -> None:
    """Write the files of a candidate below the current directory."""
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="\n")


def run_program(files: dict[str, str], main: str) -> None:
    """Run a file as `__main__`, with the interpreter's own exit codes."""
    write_files(files)
    sys.path.insert(0, str(Path.cwd()))
    sys.argv = [main]
    module = types.ModuleType("__main__")
    module.__file__ = main
    sys.modules["__main__"] = module
    sys.stdout = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), encoding="utf-8", errors="surrogateescape", newline="\n"
    )
    sys.stdin = io.TextIOWrapper(
        io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8", errors="surrogateescape"
    )
    code = 0
    try:
        exec(compile(files[main], main, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else (0 if stop.code is None else 1)
    except BaseException:  # noqa: BLE001 - whatever a program raises ends it with code 1, as the interpreter does
        traceback.print_exc()
        code = 1
    finally:
        try:
            sys.stdout.flush()
        except Exception:  # noqa: BLE001 - a program may have closed its output
            code = code or 1
        os._exit(code & 0xFF)


class _Servant:
    """Answers the requests of one peer."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.objects: list[Any] = []
        self.patched: dict[tuple[str, str], Any] = {}
        self.module: types.ModuleType | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.out = io.StringIO()

    def handle(self, value: Any) -> Any:
        """Keep an object here and return the data that stands for it."""
        if isinstance(value, _Callback):
            return {"cb": value.number}
        if isinstance(value, type) and value.__module__ == "builtins":
            return {"T": value.__name__}
        n = next((i for i, known in enumerate(self.objects) if known is value), len(self.objects))
        if n == len(self.objects):
            self.objects.append(value)
        kind = "class" if isinstance(value, type) else "coroutine" if inspect.iscoroutine(value) else "object"
        return {"o": n, "kind": kind, "type": str(type(value).__name__)[:100], "callable": bool(callable(value))}

    def object_of(self, data: Any) -> Any:
        """Return the object that data stands for."""
        if "cb" in data:
            return _Callback(self, data["cb"])
        return self.objects[data["o"]]

    def encode(self, value: Any) -> Any:
        return encode(value, self.handle)

    def decode(self, data: Any) -> Any:
        return decode(data, self.object_of)

    def send(self, message: dict[str, Any]) -> None:
        write_frame(self.fd, json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        frame = read_frame(self.fd)
        if frame is None:
            os._exit(0)
        message: dict[str, Any] = json.loads(frame)
        return message

    def loop_forever(self) -> None:
        while True:
            self.answer(self.receive())

    def answer(self, request: dict[str, Any]) -> None:
        args = [self.decode(a) for a in request.get("args", [])]
        kwargs = {k: self.decode(v) for k, v in request.get("kwargs", {}).items()}
        before = [_snapshot(a) for a in args]
        self.out.seek(0)
        self.out.truncate()
        try:
            value = self.perform(request, args, kwargs)
            reply = {"value": self.encode(value)}
        except CannotCrossError as error:
            reply = {"raised": {"type": "ValueError", "args": [str(error)], "mro": ["ValueError"]}}
        except RecursionError:
            reply = {"raised": {"type": "RecursionError", "args": [], "mro": ["RecursionError", "RuntimeError"]}}
        except BaseException as error:  # noqa: BLE001 - a candidate may raise anything; the tests decide what it means
            reply = {"raised": self.raised(error)}
        changed = {}
        for n, (arg, old) in enumerate(zip(args, before, strict=True)):
            if old is not None and _snapshot(arg) != old:
                try:
                    changed[str(n)] = self.encode(arg)
                except CannotCrossError:
                    continue
        self.send({**reply, **({"changed": changed} if changed else {}), "out": self.out.getvalue()[:100_000]})

    def raised(self, error: BaseException) -> dict[str, Any]:
        try:
            args = [encode(a) for a in error.args]
        except Exception:  # noqa: BLE001 - the arguments of a foreign exception may be anything
            args = []
        names = [c.__name__ for c in type(error).__mro__]
        return {"type": type(error).__name__, "args": args, "mro": names, "object": self.handle(error)}

    def perform(self, request: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        op = request["op"]
        if op == "name":
            return getattr(self.module, request["name"])
        if op in ("patch", "restore"):
            return self.patch(request, args)
        if op == "seed":
            return random.seed(*args, **kwargs)
        target = self.objects[request["on"]]
        if op == "call":
            return target(*args, **kwargs)
        if op == "get":
            return getattr(target, request["name"])
        if op == "set":
            return setattr(target, request["name"], args[0])
        if op == "del":
            return delattr(target, request["name"])
        if op == "special":
            return getattr(type(target), request["name"])(target, *args)
        if op == "isinstance":
            return isinstance(args[0], target)
        if op == "issubclass":
            return issubclass(target, args[0])
        if op == "await":
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
            return self.loop.run_until_complete(target)
        if op == "dir":
            return dir(target)
        raise ValueError(op)

    def patch(self, request: dict[str, Any], args: list[Any]) -> None:
        """Replace an attribute of a module for the tests, or put it back."""
        module = importlib.import_module(request["module"]) if request["module"] else self.module
        key = (request["module"], request["name"])
        if request["op"] == "restore":
            setattr(module, request["name"], self.patched.pop(key))
            return
        if request["module"]:
            self.patched.setdefault(key, getattr(module, request["name"]))
        setattr(module, request["name"], args[0])


def _snapshot(value: Any) -> Any:
    """Return a comparable picture of a mutable argument, `None` for what cannot change."""
    if type(value) in (list, dict, set, bytearray):
        try:
            return json.dumps(encode(value))
        except (CannotCrossError, TypeError):
            return None
    return None


class _Callback:
    """A function of the tests, as the candidate sees it."""

    def __init__(self, servant: _Servant, number: int) -> None:
        self.servant, self.number = servant, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        servant = self.servant
        servant.send(
            {
                "callback": self.number,
                "args": [servant.encode(a) for a in args],
                "kwargs": {k: servant.encode(v) for k, v in kwargs.items()},
            }
        )
        while True:
            message = servant.receive()
            if "returned" in message:
                return servant.decode(message["returned"])
            if "failed" in message:
                raise RuntimeError(message["failed"])
            servant.answer(message)


def serve(fd: int, files: dict[str, str], main: str) -> None:
    """Load a candidate as the module `solution` and answer calls to it until the peer goes away."""
    write_files(files)
    sys.path.insert(0, str(Path.cwd()))
    servant = _Servant(fd)
    # What the candidate prints goes to the tests with each answer; the file descriptor 1 is read elsewhere.
    sys.stdout = servant.out
    spec = importlib.util.spec_from_loader(MODULE, loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(Path.cwd() / main)
    sys.modules[MODULE] = module
    sys.modules.setdefault(main.removesuffix(".py").replace("/", "."), module)
    try:
        exec(compile(files[main], main, "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:  # noqa: BLE001 - code that does not load fails, whatever it raises
        servant.send({"loaded": False, "error": f"{type(error).__name__}: {str(error)[:300]}"})
        os._exit(1)
    servant.module = module
    servant.send({"loaded": True})
    servant.loop_forever()
