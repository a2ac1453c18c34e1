"""Files that are there whole or not at all: JSON Lines in shards, staged beside the target, then moved.

What is here: writing, comparing with what is already there, and moving into place. Writing the same content again
is no conflict and changes nothing; other content needs `overwrite=True`. In a folder only the files that an export
wrote before are replaced or removed.

Example:
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "train.jsonl"
    >>> for _ in range(2):
    ...     with staging(target) as stage:
    ...         _ = write_jsonl(stage / target.name, [{"a": 1}])
    ...         _ = commit(stage, target)
    >>> target.read_text(encoding="utf-8")
    '{"a":1}\\n'
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.rowio import dumps

__all__ = ["Written", "big_integers_as_text", "commit", "measured", "named", "staging", "write_jsonl", "write_text"]

MANIFEST = "manifest.json"
INT64 = (-(2**63), 2**63 - 1)
DIGITS = re.compile(r"[0-9]{19}")


@dataclass(frozen=True, slots=True)
class Written:
    """One file of an export: its name, records, size and SHA-256."""

    name: str
    rows: int
    bytes: int
    sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Return the file as plain values."""
        return {"name": self.name, "rows": self.rows, "bytes": self.bytes, "sha256": self.sha256}


def big_integers_as_text(value: Any, declared: set[str], path: str = "") -> Any:
    """Return a copy in which integers beyond 64 bits are text, and add their paths to `declared`.

    Loaders turn such an integer into a float, which has other digits.
    """
    if isinstance(value, Mapping):
        return {k: big_integers_as_text(v, declared, f"{path}.{k}" if path else str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [big_integers_as_text(v, declared, f"{path}[]") for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and not INT64[0] <= value <= INT64[1]:
        declared.add(path)
        return str(value)
    return value


def encode_record(record: Mapping[str, Any], declared: set[str]) -> bytes:
    """Return a record as one line of JSON; see `big_integers_as_text` for integers beyond 64 bits."""
    line = dumps(record)
    if DIGITS.search(line):
        line = dumps(big_integers_as_text(record, declared))
    return line.encode("utf-8") + b"\n"


def measured(path: Path, rows: int) -> Written:
    """Return a written file with its size and hash."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return Written(path.name, rows, path.stat().st_size, digest.hexdigest())


def write_jsonl(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    *,
    shard_bytes: int | None = None,
    declared: set[str] | None = None,
) -> list[Written]:
    """Write records as JSON Lines: one file, or shards of about `shard_bytes` named `<stem>-00000-of-00002`.

    Args:
        path: File to write; with shards its name is the pattern.
        records: Records, written as they come.
        shard_bytes: Size after which a new shard begins; `None` writes one file.
        declared: Receives the paths of integers that became text.

    Returns:
        The files, in order.
    """
    known = set() if declared is None else declared
    parts: list[tuple[Path, int]] = []
    out: Any = None
    size = rows = 0
    try:
        for record in records:
            if out is None or (shard_bytes is not None and size >= shard_bytes):
                if out is not None:
                    _close(out)
                    parts.append((Path(out.name), rows))
                out = _open_part(path, len(parts))
                size = rows = 0
            line = encode_record(record, known)
            out.write(line)
            size += len(line)
            rows += 1
        if out is None:
            out = _open_part(path, 0)
    finally:
        if out is not None:
            _close(out)
    parts.append((Path(out.name), rows))
    return [measured(named(part, path, n, len(parts)), count) for n, (part, count) in enumerate(parts)]


class _Packed(gzip.GzipFile):
    """Gzip with a fixed header, so that equal records give equal bytes."""

    def __init__(self, raw: Any) -> None:
        self.raw_file = raw
        super().__init__(filename="", mode="wb", fileobj=raw, mtime=0)
        self.name = raw.name


def _open_part(path: Path, number: int) -> Any:
    raw = (path.parent / f".part-{number:05d}").open("wb", buffering=1 << 20)
    return _Packed(raw) if path.suffix == ".gz" else raw


def _close(out: Any) -> None:
    if out.closed:
        return
    raw = getattr(out, "raw_file", out)
    if raw is not out:
        out.close()
    raw.flush()
    os.fsync(raw.fileno())
    raw.close()


def named(part: Path, path: Path, number: int, total: int) -> Path:
    """Give a finished part its name: the path's own, or `<stem>-00000-of-00002` where there are several."""
    final = path if total == 1 else path.with_name(f"{path.stem}-{number:05d}-of-{total:05d}{path.suffix}")
    return part.rename(final)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 with `\\n` line ends."""
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Give a folder beside the target in which files are made; it is gone afterwards, whatever happens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _same_file(a: Path, b: Path) -> bool:
    if not b.is_file() or a.stat().st_size != b.stat().st_size:
        return False
    return measured(a, 0).sha256 == measured(b, 0).sha256


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _earlier(folder: Path) -> set[str]:
    """Return the names of the files that an earlier export into this folder wrote."""
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {str(f["name"]) for f in listed["files"]} | {MANIFEST}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def commit(stage: Path, target: Path, *, overwrite: bool = False, folder: bool = False) -> bool:
    """Move what was staged into place.

    Args:
        stage: Folder with the finished files.
        target: File or folder to write.
        overwrite: Replace other content that is already there.
        folder: The target is a folder.

    Returns:
        False when the target already held exactly this content and nothing was touched.

    Raises:
        ParameterError: The target holds other content and `overwrite` is false.
    """
    names = sorted(p.name for p in stage.iterdir())
    home = target if folder else target.parent
    pairs = [(stage / name, home / name) for name in names]
    stale = (_earlier(target) - set(names)) if folder else set()
    changed = [(a, b) for a, b in pairs if not _same_file(a, b)]
    clash = [b for _, b in changed if b.exists()] + [home / name for name in sorted(stale) if (home / name).exists()]
    if clash and not overwrite:
        raise ParameterError(
            f"{clash[0]} exists and holds other content",
            why="an export replaces a file only when told to; the same content would have been no conflict",
            fix="pass overwrite=True (on the command line --overwrite), or another path",
        )
    if not changed and not stale:
        return False
    mode = 0o666 & ~_umask()
    home.mkdir(parents=True, exist_ok=True)
    for source, final in sorted(changed, key=lambda pair: pair[1].name == MANIFEST):  # the manifest says: complete
        source.chmod(final.stat().st_mode & 0o777 if final.exists() else mode)
        source.replace(final)
    for name in stale:
        (home / name).unlink(missing_ok=True)
    return True
