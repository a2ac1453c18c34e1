"""Train and holdout, split by what belongs together: the task, its template, or a cluster of your own.

The side of a group is a hash of its key and the seed, compared with the holdout share. So all rollouts of a task
stand on one side, the order of the rows does not matter, the same rows split the same on every machine, and adding
tasks moves no old task. The price is that the share is met in expectation only; `exact=True` takes exactly the
rounded share of groups instead, and then new tasks may move old ones.

Example:
    >>> rows = [{"task_id": f"t{i}", "prompt": "q"} for i in range(100)]
    >>> parts = split_rows(rows, holdout=0.25)
    >>> len(parts.train) + len(parts.holdout), set(parts.train_groups) & set(parts.holdout_groups)
    (100, set())
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whileai_guard.defaults import HOLDOUT, SPLIT_SEED
from whileai_kernel.errors import ParameterError, RowError, unknown_name
from whileai_kernel.rows import content_id, task_key

__all__ = ["Split", "split_rows", "template_key"]

Row = Mapping[str, Any]
BY = ("task", "template")


@dataclass(frozen=True)
class Split:
    """Two sides without a common group.

    Attributes:
        train: Rows of the training side, in input order, as they came.
        holdout: Rows of the holdout side.
        train_groups: Keys of the training groups.
        holdout_groups: Keys of the holdout groups.
        by: What a group is.
    """

    train: Sequence[Row]
    holdout: Sequence[Row]
    train_groups: tuple[str, ...]
    holdout_groups: tuple[str, ...]
    by: str

    def __str__(self) -> str:
        return (
            f"split by {self.by}: train {len(self.train)} rows in {len(self.train_groups)} groups, "
            f"holdout {len(self.holdout)} rows in {len(self.holdout_groups)} groups"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return sizes and group keys as plain values."""
        return {
            "by": self.by,
            "train_rows": len(self.train),
            "holdout_rows": len(self.holdout),
            "train_groups": list(self.train_groups),
            "holdout_groups": list(self.holdout_groups),
        }

    def labelled(self) -> list[dict[str, Any]]:
        """Return copies of all rows with `split` set to `"train"` or `"holdout"`, training rows first."""
        return [{**r, "split": "train"} for r in self.train] + [{**r, "split": "holdout"} for r in self.holdout]


def split_rows(
    rows: Iterable[Row] | str | Path,
    *,
    holdout: float = HOLDOUT.value,
    by: str | Callable[[Row], str] = "task",
    seed: int = SPLIT_SEED.value,
    exact: bool = False,
) -> Split:
    """Split rows into train and holdout by groups.

    Args:
        rows: Rows, a dataset, or the path of a JSONL file.
        holdout: Share of the groups that is held out, in [0, 1].
        by: `"task"` (the task id, else the prompt), `"template"` (prompts that differ in numbers and names only are
            one group, and so are all rollouts of their tasks), or a function from a row to the key of its group.
        seed: Another seed, another split.
        exact: Hold out exactly `round(holdout * groups)` groups. Then a new task may move an old one.

    Raises:
        ParameterError: `holdout` or `by` cannot be used.
        RowError: A row has no task, or a key function did not return text.
    """
    if not 0.0 <= holdout <= 1.0:
        raise ParameterError(f"holdout must lie in [0, 1], not {holdout!r}", fix="pass holdout=0.1")
    if not callable(by) and by not in BY:
        unknown_name("by", by, BY)
    if isinstance(rows, str | Path):
        from whileai_kernel.rowio import read_rows

        rows = read_rows(rows)
    found = list(getattr(rows, "rows", rows))
    keys = _keys(found, by)
    groups = list(dict.fromkeys(keys))
    places = {key: _place(seed, key) for key in groups}
    if exact:
        held = set(sorted(groups, key=lambda key: (places[key], key))[: round(holdout * len(groups))])
    else:
        held = {key for key in groups if places[key] < holdout}
    return Split(
        train=[row for row, key in zip(found, keys, strict=True) if key not in held],
        holdout=[row for row, key in zip(found, keys, strict=True) if key in held],
        train_groups=tuple(key for key in groups if key not in held),
        holdout_groups=tuple(key for key in groups if key in held),
        by=by if isinstance(by, str) else getattr(by, "__name__", "function"),
    )


def _place(seed: int, key: str) -> float:
    digest = hashlib.sha256(f"{seed}\x1f{key}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _keys(rows: Sequence[Row], by: str | Callable[[Row], str]) -> list[str]:
    if callable(by):
        keys = []
        for position, row in enumerate(rows):
            key = by(row)
            if not isinstance(key, str) or not key:
                raise RowError(f"the key function returned {key!r:.60}", fix="return text", row=position)
            keys.append(key)
        return keys
    tasks = []
    for position, row in enumerate(rows):
        try:
            tasks.append(task_key(row))
        except RowError as err:
            raise RowError(err.what, err.why, err.fix, row=position) from None
    if by == "task":
        return tasks
    return _template_groups(rows, tasks)


def _template_groups(rows: Sequence[Row], tasks: Sequence[str]) -> list[str]:
    """Return group keys such that equal templates, and all rows of one task, share a group.

    The key of a group is the least template in it, so that a group that does not grow keeps its key.
    """
    templates = template_key([_prompt(row) for row in rows])
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for task, template in zip(tasks, templates, strict=True):
        a, b = find(f"task:{task}"), find(f"template:{template}" if template else f"task:{task}")
        low, high = sorted((a, b), key=lambda name: (not name.startswith("template:"), name))
        parent[high] = low
    return [find(f"task:{task}") for task in tasks]


def _prompt(row: Row) -> str:
    prompt = row.get("prompt")
    if isinstance(prompt, str):
        return prompt
    return content_id("prompt", prompt) if prompt else ""


def template_key(texts: Sequence[str]) -> list[str]:
    """Return a key per text that texts share when they differ in numbers and names only ('' for a text without words).

    Args:
        texts: Texts, for example prompts.
    """
    from whileai_guard._overlap import blocks, skeletons
    from whileai_guard._tokens import sequence_hash, tokenize

    keys: list[str] = []
    for part in blocks(texts):
        block = tokenize(part)
        keys += [f"{h:016x}" if h else "" for h in sequence_hash(skeletons(block), block.offsets).tolist()]
    return keys
