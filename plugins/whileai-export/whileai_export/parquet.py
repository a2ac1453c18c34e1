"""Parquet with one Arrow schema per kind of record, whatever the first row holds.

Free-form values (messages, tools) are JSON text under Arrow's JSON type, so that objects with differing keys are
never merged; `datasets` 4.7 and later decodes them by itself, other readers see text, and `read_parquet` decodes
them too. Needs the extra `parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from whileai_export.columns import FREE_FORM
from whileai_export.defaults import ROW_GROUP
from whileai_export.files import DIGITS, Written, big_integers_as_text, measured, named
from whileai_kernel.errors import MissingDependencyError
from whileai_kernel.rowio import dumps

__all__ = ["arrow_schema", "read_parquet", "write_parquet"]

_HF = {
    "messages": {"feature": {"_type": "Json"}, "_type": "List"},
    "json": {"_type": "Json"},
    "text": {"dtype": "string", "_type": "Value"},
    "float": {"dtype": "float64", "_type": "Value"},
    "int": {"dtype": "int64", "_type": "Value"},
    "bool": {"dtype": "bool", "_type": "Value"},
    "ints": {"feature": {"dtype": "int64", "_type": "Value"}, "_type": "List"},
}


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as err:
        raise MissingDependencyError(
            "Parquet needs pyarrow", why="it is not installed", fix='pip install "whileai-export[parquet]"'
        ) from err
    return pyarrow


def arrow_schema(columns: Mapping[str, str]) -> Any:
    """Return the Arrow schema of columns, with the metadata by which `datasets` decodes JSON.

    Columns without JSON need no such metadata, and loaders before `datasets` 4 would not know its words.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    pa = _arrow()
    types = {
        "messages": pa.list_(pa.json_(pa.string())),
        "json": pa.json_(pa.string()),
        "text": pa.string(),
        "float": pa.float64(),
        "int": pa.int64(),
        "bool": pa.bool_(),
        "ints": pa.list_(pa.int64()),
    }
    fields = [pa.field(name, types[kind]) for name, kind in columns.items()]
    if not any(kind in FREE_FORM for kind in columns.values()):
        return pa.schema(fields)
    features = {name: _HF[kind] for name, kind in columns.items()}
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _text(value: Any, declared: set[str], name: str) -> str:
    text = dumps(value)
    return dumps(big_integers_as_text(value, declared, name)) if DIGITS.search(text) else text


def _array(pa: Any, name: str, kind: str, values: list[Any], declared: set[str]) -> Any:
    if kind == "json":
        texts = [None if v is None else _text(v, declared, name) for v in values]
        return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))
    if kind == "messages":
        flat = [_text(item, declared, f"{name}[]") for v in values for item in v or ()]
        offsets, total = [], 0
        for value in values:
            offsets.append(None if value is None else total)
            total += len(value or ())
        inner = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(flat, pa.string()))
        return pa.ListArray.from_arrays(pa.array([*offsets, total], pa.int32()), inner)
    plain = {
        "text": pa.string(),
        "float": pa.float64(),
        "int": pa.int64(),
        "bool": pa.bool_(),
        "ints": pa.list_(pa.int64()),
    }
    return pa.array(values, plain[kind])


def write_parquet(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    declared: set[str],
    row_group: int = ROW_GROUP.value,
    shard_bytes: int | None = None,
) -> list[Written]:
    """Write records to Parquet, a row group at a time: one file, or shards named like those of `write_jsonl`.

    Args:
        path: File to write; with shards its name is the pattern.
        records: Records; a column that a record lacks is null.
        columns: Columns with their types.
        declared: Receives the paths of integers that became text.
        row_group: Rows per group, and rows held in memory.
        shard_bytes: Size after which a new shard begins; `None` writes one file.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        RowError: A value is no JSON.
    """
    pa = _arrow()
    schema = arrow_schema(columns)
    source = iter(records)
    parts: list[tuple[Path, int]] = []
    batch = list(islice(source, row_group))
    while batch or not parts:
        part = path.parent / f".part-{len(parts):05d}"
        count = 0
        with pa.parquet.ParquetWriter(part, schema, compression="zstd") as writer:
            while batch and (shard_bytes is None or count == 0 or part.stat().st_size < shard_bytes):
                arrays = [
                    _array(pa, name, kind, [r.get(name) for r in batch], declared) for name, kind in columns.items()
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                count += len(batch)
                batch = list(islice(source, row_group))
        parts.append((part, count))
    return [measured(named(part, path, n, len(parts)), count) for n, (part, count) in enumerate(parts)]


def read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a Parquet file that `write_parquet` wrote, JSON decoded.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    pa = _arrow()
    with pa.parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        listed = [f.name for f in schema if pa.types.is_list(f.type) and "json" in str(f.type.value_type)]
        single = [f.name for f in schema if "json" in str(f.type) and f.name not in listed]
        for batch in file.iter_batches():
            for record in batch.to_pylist():
                for name in listed:
                    record[name] = [json.loads(v) for v in record[name]] if record[name] is not None else None
                for name in single:
                    record[name] = json.loads(record[name]) if record[name] is not None else None
                yield record
