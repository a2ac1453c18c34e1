"""The ``wai`` command: find the sub-command, run it, and end in a way that a shell understands.

Sub-commands come from plugins (kind ``commands``). ``wai --help`` lists them with the summaries that they
registered and imports none of them. Errors of the toolkit are printed in their three parts without a
traceback.

Exit codes: 0 done, 1 the command's own "no" (a failed check), 2 a mistake in what was asked, 130 stopped with
Ctrl-C, 141 the reader of the output left. Anything else that is raised is a defect and keeps its traceback.

Example:
    >>> main(["plugins", "--json"])  # doctest: +SKIP
    0
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from whileai_cli.streams import drop_output, make_tolerant
from whileai_kernel.errors import ParameterError, WhileaiError, nearest

OK, FAILED, MISUSED, INTERRUPTED, READER_GONE = 0, 1, 2, 130, 141

_OPTIONS = ("--help", "-h", "--version", "--traceback")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Args:
        argv: Arguments after the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    make_tolerant(sys.stdout)
    make_tolerant(sys.stderr)
    options = _leading_options(words)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _run(words, options)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        return READER_GONE
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except SystemExit as stop:  # argparse ends this way, after it has said why
        return stop.code if isinstance(stop.code, int) else OK if stop.code is None else MISUSED
    except WhileaiError as error:
        if "--traceback" in options:
            raise
        _complain(str(error))
        return MISUSED
    except (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        if "--traceback" in options:
            raise
        if error.filename is None:
            _complain(str(error))
        else:
            _complain(f"cannot use {error.filename}\n  why: {error.strerror}\n  fix: check the path")
        return MISUSED
    return code


def _leading_options(words: list[str]) -> set[str]:
    """Take the options before the sub-command off ``words``."""
    options: set[str] = set()
    while words and words[0].startswith("-"):
        options.add(words.pop(0))
    return options


def _run(words: list[str], options: set[str]) -> int:
    unknown = sorted(options - set(_OPTIONS))
    if unknown:
        near = nearest(unknown[0], _OPTIONS)
        raise ParameterError(
            f"wai has no option {unknown[0]!r}",
            why="options of a command stand after its name",
            fix=f"did you mean {near[0]!r}?" if near else "see: wai --help",
        )
    if "--version" in options:
        sys.stdout.write(_versions() + "\n")
        return OK
    if not words or options & {"--help", "-h"}:
        sys.stdout.write(overview())
        return OK
    return run_command(words[0], words[1:])


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Load one sub-command, parse its arguments and run it.

    Raises:
        UnknownNameError: No plugin has it; the error names the nearest, the failures and what to install.
        AmbiguousNameError: More than one plugin has it; the full id (``cli/plugins``) works.
    """
    from whileai_kernel.registry import lookup, make

    entry = lookup("commands", name)
    command: Any = make("commands", entry.id)
    parser = argparse.ArgumentParser(prog=f"wai {name}", description=entry.summary)
    command.add_arguments(parser)
    code = command.run(parser.parse_args(list(arguments)))
    return OK if code is None else int(code)


def overview() -> str:
    """The text of ``wai --help``: every sub-command with its summary; no target is imported."""
    from whileai_kernel.registry import entries

    found = entries("commands")
    names = [entry.name for entry in found]
    shown = [(entry.name if names.count(entry.name) == 1 else entry.id, entry.summary) for entry in found]
    lines = ["usage: wai [--version] [--traceback] COMMAND ...", ""]
    lines += ["Post-training for language models that call tools.", ""]
    width = max((len(name) for name, _ in shown), default=0)
    room = max(20, min(100, shutil.get_terminal_size().columns) - width - 4)
    lines.append("commands:" if shown else "No command is installed: pip install whileai")
    for name, summary in sorted(shown):
        first, *rest = textwrap.wrap(summary, room) or [""]
        lines.append(f"  {name:<{width}}  {first}".rstrip())
        lines += [" " * (width + 4) + line for line in rest]
    lines += ["", "  wai COMMAND --help explains one of them.", ""]
    return "\n".join(lines)


def _versions() -> str:
    from importlib.metadata import version

    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"wai {version('whileai-cli')} (kernel {version('whileai-kernel')}, Python {python})"


def _complain(text: str) -> None:
    sys.stderr.write(f"wai: {text}\n")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Warnings as one line without the source line: their reader is at a shell, not in the code."""
    (file or sys.stderr).write(f"wai: warning: {message}\n")
