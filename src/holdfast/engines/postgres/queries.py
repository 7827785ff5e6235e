"""SQL lives in ``sql/<contract>.sql``: blocks headed by ``-- name:``, loaded by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_HEAD = re.compile(r"^-- name: (\w+)[ \t]*\n", re.MULTILINE)


@cache
def load(contract: str, *, package: str = __package__) -> Mapping[str, LiteralString]:
    """Return the statements of ``sql/<contract>.sql`` by name; their text never depends on input.

    ``package`` is the Python package that has the folder ``sql``.

    >>> "ping" in load("engine")
    True
    """
    text = (files(package) / "sql" / f"{contract}.sql").read_text(encoding="utf-8")
    parts = _HEAD.split(text)
    found: dict[str, LiteralString] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in found:
            raise ValueError(f"{contract}.sql has two statements called {name}")
        # The files of the package are as trusted as literals in the code.
        found[name] = cast("LiteralString", body.strip().rstrip(";"))
    return found


def filled(sql: LiteralString, parts: Mapping[str, str]) -> LiteralString:
    """Return a statement with parts replaced by other SQL, which must not come from users.

    >>> filled("SELECT /* what */ 1", {"/* what */ 1": "2"})
    'SELECT 2'
    """
    for mark, part in parts.items():
        sql = sql.replace(mark, part)
    return sql
