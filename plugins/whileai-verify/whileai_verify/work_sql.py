"""Worker side of `sql.SQL`: run two queries on a read-only database and compare the results."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from whileai_verify.compare import first_difference

_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_FORBIDDEN_FUNCTIONS = frozenset(
    ("load_extension", "writefile", "readfile", "edit", "fts3_tokenizer", "random", "randomblob")
)


class _Bad(Exception):
    """The query fails, by its own fault."""


def _authorise(action: int, first: str | None, second: str | None, *_: Any) -> int:
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _open(source: Mapping[str, str]) -> sqlite3.Connection:
    """Open the database: a file, read-only and in place, or one built in memory from a script."""
    if "path" in source:
        from urllib.parse import quote

        db = sqlite3.connect(f"file:{quote(source['path'])}?mode=ro", uri=True)
    else:
        db = sqlite3.connect(":memory:")
        db.executescript(source["script"])
        db.commit()
    db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    db.execute("PRAGMA query_only = ON")
    db.set_authorizer(_authorise)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000_000)
    return db


def _run(db: sqlite3.Connection, query: str, max_rows: int, seconds: float) -> list[list[Any]]:
    until = time.monotonic() + seconds
    db.set_progress_handler(lambda: int(time.monotonic() > until), 10_000)
    try:
        cursor = db.execute(query)
        if cursor.description is None:
            raise _Bad("the statement returns no rows")
        rows = cursor.fetchmany(max_rows + 1)
    except sqlite3.Warning:
        raise _Bad("more than one statement") from None
    except sqlite3.OperationalError as error:
        late = "interrupted" in str(error)
        raise _Bad(f"did not end within {seconds:g} s" if late else _plain(error)) from None
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        raise _Bad(_plain(error)) from None
    if len(rows) > max_rows:
        raise _Bad(f"more than {max_rows} rows")
    return [list(row) for row in rows]


def _plain(error: Exception) -> str:
    return (
        "not authorised: only reading is allowed"
        if "not authorized" in str(error)
        else f"the query fails: {error}"[:200]
    )


def ordered(query: str) -> bool:
    """Return whether a query orders its result: an ORDER BY outside of brackets, texts and comments."""
    text = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", " x ", query, flags=re.S)
    depth, flat = 0, []
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth == 0:
            flat.append(char)
    return re.search(r"\border\s+by\b", "".join(flat), re.I) is not None


def _same(rows: list[list[Any]], gold: list[list[Any]], in_order: bool, tol: float) -> str | None:
    if len(rows) != len(gold):
        return f"{len(rows)} rows instead of another number"
    if rows and len(rows[0]) != len(gold[0]):
        return f"{len(rows[0])} columns instead of another number"
    if in_order:
        return None if first_difference(rows, gold, rel_tol=tol) is None else "the rows differ"

    # Equal rows pair off exactly first, so that only rows with inexact floats need matching.
    rest: dict[str, int] = {}
    for r in gold:
        rest[_key(r)] = rest.get(_key(r), 0) + 1
    left = []
    for r in rows:
        if rest.get(_key(r), 0):
            rest[_key(r)] -= 1
        else:
            left.append(r)
    open_gold = []
    for r in gold:
        if rest.get(_key(r), 0):
            rest[_key(r)] -= 1
            open_gold.append(r)
    if len(left) > 2_000 or not all(any(isinstance(v, float) for v in r) for r in [*left, *open_gold]):
        return "the rows differ" if left else None
    return None if first_difference(left, open_gold, unordered=("",), rel_tol=tol) is None else "the rows differ"


def _key(row: list[Any]) -> str:
    return repr([float(v) if isinstance(v, int) and abs(v) < 2**53 else v for v in row])


def work(request: Any) -> dict[str, Any]:
    """Return `{"status", "reward", "reason"}` of one request."""
    try:
        db = _open(request["source"])
    except (sqlite3.Error, KeyError) as error:
        return {"status": "error", "reason": f"the database cannot be opened: {error}"[:200]}
    try:
        gold = request["gold"]
        if isinstance(gold, str):
            try:
                want = _run(db, gold.strip().rstrip(";"), request["max_rows"], request["seconds"])
            except _Bad:
                return {"status": "error", "reason": "the reference query fails on this database"}
        elif isinstance(gold, list) and all(isinstance(r, list) for r in gold):
            want = gold
        else:
            return {"status": "error", "reason": "the reference is neither a query nor rows"}
        in_order = request["order"] == "always" or (
            request["order"] == "auto" and isinstance(gold, str) and ordered(gold)
        )
        try:
            got = _run(db, request["query"], request["max_rows"], request["seconds"])
        except _Bad as error:
            return {"status": "ok", "reward": 0.0, "reason": str(error)}
        difference = _same(got, want, in_order, request["float_tol"])
        return {"status": "ok", "reward": float(difference is None), "reason": difference or "the same result set"}
    finally:
        db.close()
