r"""Find the code in a reply: one block, several named files, or the bare reply.

A block is a file when it says so: in its info string after the language (```` ```python util.py ````, `python:util.py`,
`title="util.py"`), or in a first line `# file: util.py` / `# util.py`. Otherwise the solution is the last
Python block that defines the entry point, or the last Python block that parses, or the last block. A reply without a
block is code as a whole.

Example:
    >>> find_code("Here:\n```python\ndef f(x):\n    return x\n```", "f").files["solution.py"]
    'def f(x):\n    return x\n'
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

from whileai_verify.extract import CodeBlock, code_blocks

__all__ = ["Code", "defined_names", "find_code"]

_PYTHON = {"python", "py", "python3", "py3", "python2", "ipython", "pycon", ""}
_NAME = re.compile(r"[\w./-]+\.(?:py|txt|json|csv|toml|cfg|ini|md|ya?ml)")
_INFO = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$", re.M)
_FIRST_LINE = re.compile(rf"^\s*#\s*(?:file(?:name)?\s*:\s*)?(?P<name>{_NAME.pattern})\s*$", re.I)


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a reply.

    Attributes:
        files: Relative path to source text.
        main: The file that is run or imported.
    """

    files: dict[str, str]
    main: str


def defined_names(source: str) -> list[str] | None:
    """Return the functions and classes that a source defines at its top level, or `None` when it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names += [t.id for t in node.targets if isinstance(t, ast.Name)]
    return names


def _file_name(info: str, code: str) -> str | None:
    rest = re.split(r"[\s:]+", info.strip(), maxsplit=1)
    for part in rest[1:] if len(rest) > 1 else []:
        found = _NAME.search(part)
        if found:
            return found.group()
    first = _FIRST_LINE.match(code.split("\n", 1)[0])
    return first["name"] if first else None


def _safe(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/") and not name.startswith(".")


def _blocks(reply: str) -> list[tuple[str, CodeBlock]]:
    """Return the fenced blocks with their info strings."""
    blocks = code_blocks(reply)
    infos = [m["info"] for m in _INFO.finditer(reply)]
    out, at = [], 0
    for block in blocks:
        while at < len(infos) and (infos[at].strip().split() or [""])[0].strip("{}.").lower() != block.language:
            at += 1
        out.append((infos[at] if at < len(infos) else block.language, block))
        at += 1
    return out


def find_code(reply: str, entry_point: str | None = None, main: str = "solution.py") -> Code | None:
    """Return the code of a reply, or `None` when there is none.

    Args:
        reply: What the model said.
        entry_point: Name that the tests use, where it is known.
        main: Path under which a block without a name is kept.
    """
    blocks = _blocks(reply)
    if not blocks:
        return (
            Code({main: textwrap.dedent(reply) if reply[:1] in " \t" and defined_names(reply) is None else reply}, main)
            if reply.strip()
            else None
        )
    files = {}
    unnamed: list[CodeBlock] = []
    for info, block in blocks:
        name = _file_name(info, block.code)
        if name is not None and _safe(name):
            files[name] = block.code
        elif block.language.split(":")[0] in _PYTHON:
            unnamed.append(block)
    chosen = _solution(unnamed or ([] if files else [b for _, b in blocks]), entry_point)
    if chosen is not None:
        files.setdefault(main, chosen)
        return Code(files, main)
    if not files:
        return None
    if main not in files:
        owners = [n for n, text in files.items() if entry_point and entry_point in (defined_names(text) or [])]
        python = [n for n in files if n.endswith(".py")]
        main = (owners or [n for n in python if n in ("main.py", "app.py")] or python or list(files))[-1]
    return Code(files, main)


def _solution(blocks: list[CodeBlock], entry_point: str | None) -> str | None:
    if not blocks:
        return None
    texts = [_prompt_free(b.code) for b in blocks if b.code.strip()]
    names = [defined_names(t) for t in texts]
    if entry_point:
        for text, found in zip(reversed(texts), reversed(names), strict=True):
            if found is not None and entry_point in found:
                return text
    for text, found in zip(reversed(texts), reversed(names), strict=True):
        if found:
            return text
    parsed = [t for t, found in zip(texts, names, strict=True) if found is not None]
    return parsed[-1] if parsed else (texts[-1] if texts else None)


def _prompt_free(code: str) -> str:
    """Remove the prompts of an interactive session, when every line of code has one."""
    lines = code.split("\n")
    if not any(line.startswith(">>> ") for line in lines):
        return code
    return "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... "))) + "\n"
