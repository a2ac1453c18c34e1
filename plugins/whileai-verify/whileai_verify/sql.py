"""SQL: a query is right when it gives the same result set as the reference query.

The database is a file that the task names, or a script that builds one. Queries run in a worker process on a
read-only copy with a deadline: one statement, which reads; no ATTACH, no PRAGMA, no writes, no extensions. Rows are
compared as a multiset, and in order only when the reference query orders its result. Column names do not count, the
number and order of columns do. Floats have a relative tolerance; NULL equals NULL; a number never equals a text.

Example:
    >>> row = {"final_text": "SELECT 1 + 1", "privileged": {"reference": "SELECT 2", "database": {"script": ""}}}
    >>> SQL()(row)["reward"]
    1.0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from whileai_kernel.protocols import Example
from whileai_verify.defaults import SQL_DEADLINE_S, SQL_FLOAT_TOL, SQL_ROWS
from whileai_verify.extract import code_blocks
from whileai_verify.pool import WorkError, WorkTimeoutError, shared_pool
from whileai_verify.rowview import (
    MISSING,
    Verdict,
    check_options,
    lookup,
    no_reference,
    not_scored,
    reference_of,
    reply_of,
    verdict,
)

__all__ = ["SQL", "query_of"]

_SCRIPT = "CREATE TABLE t (id INTEGER, name TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (2, 'b');"


def _row(reply: str) -> dict[str, Any]:
    private = {"reference": "SELECT name FROM t WHERE id = 2", "database": {"script": _SCRIPT}}
    return {"final_text": reply, "privileged": private}


def query_of(reply: str) -> str:
    """Return the query of a reply: the last fenced block (labelled `sql` where one is), else the whole reply."""
    blocks = code_blocks(reply)
    labelled = [b for b in blocks if b.language in ("sql", "sqlite")] or blocks
    text = labelled[-1].code if labelled else reply
    if not labelled:
        inline = re.fullmatch(r"\s*`([^`]+)`\s*", text)
        text = inline[1] if inline else text
    return text.strip().rstrip(";").strip()


class SQL:
    """1 when the query of the reply gives the same result as the reference query on a SQLite database.

    A reply whose query fails, writes, or returns too much is 0; a reference query that fails, or a database that
    cannot be opened, is not scored.

    Args:
        database: Path of a SQLite file, or `{"script": "CREATE ..."}`; `None` reads `database_field`.
        order: `auto` (row order counts when the reference ends in a top-level ORDER BY), `always`, `never`.
        float_tol: Relative tolerance of floats.
        deadline: Seconds for one query; a query that takes longer is ended, and the reply is 0.
        max_rows: Rows above which a query fails.
        reference: Dotted field of the row with the reference query, or with the expected rows (a list of lists).
        database_field: Dotted field of the row with the database.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example(_row("```sql\nSELECT name FROM t WHERE id > 1;\n```"), 1.0),
        Example(_row("SELECT DISTINCT name FROM t WHERE id > 1"), 0.0),
        Example(_row("DROP TABLE t"), 0.0),
        Example(_row(""), 0.0),
    )

    def __init__(
        self,
        database: str | Mapping[str, str] | None = None,
        *,
        order: Literal["auto", "always", "never"] = "auto",
        float_tol: float = SQL_FLOAT_TOL.value,
        deadline: float = SQL_DEADLINE_S.value,
        max_rows: int = SQL_ROWS.value,
        reference: str = "privileged.reference",
        database_field: str = "privileged.database",
        threshold: float = 1.0,
    ) -> None:
        check_options(order=(order, ("auto", "always", "never")))
        self.database, self.order, self.float_tol, self.deadline = database, order, float_tol, deadline
        self.max_rows, self.reference, self.database_field, self.threshold = (
            max_rows,
            reference,
            database_field,
            threshold,
        )

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        gold = reference_of(row, self.reference)
        if gold is MISSING:
            return no_reference(self.reference)
        database = self.database if self.database is not None else lookup(row, self.database_field)
        if database is MISSING or database is None:
            return no_reference(self.database_field)
        source = {"path": str(Path(database).resolve())} if isinstance(database, str) else dict(database)
        query = query_of(reply_of(row))
        if not query:
            return verdict(0, "the reply holds no query")
        request = {
            "source": source,
            "gold": gold,
            "query": query,
            "order": self.order,
            "float_tol": self.float_tol,
            "max_rows": self.max_rows,
            "seconds": self.deadline,
        }
        try:
            answer = shared_pool("whileai_verify.work_sql").call(request, 2 * self.deadline + 1)
        except WorkTimeoutError:
            return verdict(0, f"the query did not end within {self.deadline:g} s")
        except WorkError as error:
            return not_scored("error", error.what)
        if answer["status"] != "ok":
            return not_scored(answer["status"], answer["reason"])
        return verdict(answer["reward"], answer["reason"])
