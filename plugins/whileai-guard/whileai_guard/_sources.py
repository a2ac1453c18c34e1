"""Items to compare: rows, texts or files, with the texts of the fields that were asked for.

A list is walked in place. A file is read line by line each time, so that its size does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whileai_guard._text import leaves
from whileai_guard.defaults import SHORT_WORDS
from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.messages import text_of


@dataclass(frozen=True, slots=True)
class Text:
    """One text of an item."""

    field: str
    text: str

    @property
    def digest(self) -> bytes:
        """Hash of the characters, for telling distinct texts apart."""
        return hashlib.blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


@dataclass(frozen=True, slots=True)
class Item:
    """One row or text, with what is compared of it."""

    position: int
    name: str
    task_id: str | None
    texts: tuple[Text, ...]


def texts_of(value: Any, fields: Sequence[str], position: int | None = None) -> tuple[Text, ...]:
    """Return the texts of the named fields of a row; a plain text is its own only field.

    Raises:
        RowError: The item is neither text nor a mapping.
    """
    if isinstance(value, str):
        return (Text("text", value),) if value.strip() else ()
    if not isinstance(value, Mapping):
        raise RowError(
            f"expected a row or a text, not {type(value).__name__}", fix="pass rows or strings", row=position
        )
    found: list[Text] = []
    for name in fields:
        if name == "messages":
            for index, message in enumerate(value.get("messages") or ()):
                if message.get("role") in ("user", "assistant"):
                    text = text_of(message.get("content"))
                    # A greeting is not an exam: messages below the length of a short text are not compared.
                    if len(text.split()) >= SHORT_WORDS.value or (not text.isascii() and len(text) > 10):
                        found.append(Text(f"messages[{index}].content", text))
        else:
            found += _field_texts(value, name)
    return tuple(found)


def _field_texts(row: Mapping[str, Any], name: str) -> Iterator[Text]:
    inner: Any = (row.get("privileged") or {}).get("reference") if name == "reference" else row
    if name != "reference":
        for part in name.split("."):
            inner = inner.get(part) if isinstance(inner, Mapping) else None
    if isinstance(inner, list) and all(isinstance(m, Mapping) and "role" in m for m in inner):
        inner = "\n".join(text_of(m.get("content")) for m in inner)  # a prompt given as chat messages
    for path, leaf in leaves(inner):
        if isinstance(leaf, str) and leaf.strip():
            yield Text(f"{name}.{path}" if path else name, leaf)


def _name(value: Any) -> str:
    return str(value.get("rollout_id") or "") if isinstance(value, Mapping) else ""


class Items:
    """Rows or texts, walked as often as needed.

    Args:
        source: A list, or the path of a JSONL file.
        fields: Fields to compare.
    """

    def __init__(self, source: list[Any] | Path, fields: Sequence[str]) -> None:
        self.source, self.fields = source, tuple(fields)

    @property
    def path(self) -> Path | None:
        """The file, when the items come from one."""
        return self.source if isinstance(self.source, Path) else None

    def raw(self) -> Iterator[Any]:
        """Yield the rows or texts as they are."""
        if isinstance(self.source, Path):
            from whileai_kernel.rowio import read_rows

            yield from read_rows(self.source)
        else:
            yield from self.source

    def __iter__(self) -> Iterator[Item]:
        for position, value in enumerate(self.raw()):
            row = value if isinstance(value, Mapping) else {}
            task_id = row.get("task_id")
            yield Item(
                position,
                _name(value),
                str(task_id) if task_id not in (None, "") else None,
                texts_of(value, self.fields, position),
            )

    def fetch(self, wanted: Mapping[int, tuple[int, str]]) -> dict[int, str]:
        """Return the texts of `{number: (position, field)}`."""
        if isinstance(self.source, list):
            return {number: self._one(self.source[at], name) for number, (at, name) in wanted.items()}
        places: dict[int, list[tuple[int, str]]] = {}
        for number, (at, name) in wanted.items():
            places.setdefault(at, []).append((number, name))
        found: dict[int, str] = {}
        for position, value in enumerate(self.raw()) if places else ():
            for number, name in places.get(position, ()):
                found[number] = self._one(value, name)
        return found

    def names(self, positions: Iterable[int]) -> dict[int, str]:
        """Return the rollout ids of some items, `""` for those without."""
        wanted = set(positions)
        if isinstance(self.source, list):
            return {at: _name(self.source[at]) for at in wanted}
        return {at: _name(value) for at, value in enumerate(self.raw() if wanted else ()) if at in wanted}

    def _one(self, value: Any, name: str) -> str:
        return next(t.text for t in texts_of(value, self.fields) if t.field == name)

    def kept(self, leaving: set[int]) -> list[Any]:
        """Return the items that stay; nothing for a file, which is never held as a whole."""
        if not isinstance(self.source, list):
            return []
        return [value for position, value in enumerate(self.source) if position not in leaving]


def open_items(source: Iterable[Any] | str | Path, fields: Sequence[str]) -> Items:
    """Return the items of a list, dataset, iterator or JSONL path.

    Raises:
        ParameterError: No field was named, or the source is one single row or a file that is not there.
    """
    if not fields or isinstance(fields, str):
        raise ParameterError("fields must be a list of field names", fix='pass fields=("prompt",)')
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise ParameterError(
                f"there is no file {str(source)!r:.200}", fix="pass a list of texts, or an existing path"
            )
        return Items(path, fields)
    if isinstance(source, Mapping):
        raise ParameterError("rows must be many rows, not one", fix="pass a list: [row]")
    return Items(list(getattr(source, "rows", source)), fields)


class Against:
    """Evaluation texts with the items that own them.

    Args:
        items: The evaluation items.
    """

    def __init__(self, items: Items) -> None:
        self.asked = items.fields
        self.texts: list[str] = []
        self.fields: list[str] = []
        self.owner: list[int] = []
        self.names: list[str] = []
        self.by_task: dict[str, int] = {}
        self.items = self.empty = 0
        for item in items:
            self.items += 1
            self.names.append(item.name or item.task_id or "")
            self.empty += not item.texts
            if item.task_id is not None:
                self.by_task.setdefault(item.task_id, item.position)
            for text in item.texts:
                self.texts.append(text.text)
                self.fields.append(text.field)
                self.owner.append(item.position)
