"""Migrations: numbered SQL files, forward only, with checksums, under one advisory lock."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.backends.postgres.errors import mapped
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.errors import SchemaError

LOCK = 0x686F6C6466617374
"""The advisory lock that one migrating process holds: the bytes of "holdfast"."""

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_NO_TRANSACTION = "-- transaction: none"
_SQL = load("migrate")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its name, and what it says."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """What is recorded when it is applied, so that a change of the file is noticed."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """Whether it runs as a whole or statement by statement."""
        return not self.sql.startswith(_NO_TRANSACTION)


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """Where a database is, where the code wants it, and what lies between."""

    have: int
    want: int
    pending: tuple[Migration, ...]
    tampered: tuple[str, ...]


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this version, in order and without a gap.

    >>> migrations()[0].name
    'create_schema'
    """
    found = []
    for file in sorted(files(__package__).joinpath("migrations").iterdir(), key=lambda f: f.name):
        matched = _FILE.fullmatch(file.name)
        if matched:
            text = file.read_text(encoding="utf-8")
            found.append(Migration(int(matched[1]), matched[2], text))
    if [one.version for one in found] != list(range(1, len(found) + 1)):
        raise ValueError("the migrations are not numbered 1, 2, 3 …")
    return tuple(found)


async def status(connection: Any) -> SchemaStatus:
    """Compare what a database records with the files."""
    with mapped(wrote=False):
        if not await connection.fetchval(_SQL["is_there"]):
            return SchemaStatus(0, len(migrations()), migrations(), ())
        applied = {row["version"]: row for row in await connection.fetch(_SQL["applied"])}
    tampered = tuple(
        f"{one.version:04}_{one.name}"
        for one in migrations()
        if one.version in applied and applied[one.version]["sha256"] != one.sha256
    )
    pending = tuple(one for one in migrations() if one.version not in applied)
    return SchemaStatus(max(applied, default=0), len(migrations()), pending, tampered)


def check(found: SchemaStatus) -> None:
    """Refuse a schema that this code cannot work on."""
    if found.tampered:
        raise SchemaError(
            have=found.have,
            want=found.want,
            message=f"applied migrations differ from their files: {', '.join(found.tampered)}; "
            "install the version of holdfast that applied them",
        )
    if found.have != found.want:
        raise SchemaError(have=found.have, want=found.want)


async def migrate(connection: Any) -> Sequence[Migration]:
    """Apply what is pending and return it; other processes wait, and find nothing to do."""
    with mapped(wrote=True):
        await connection.execute(_SQL["lock"], LOCK)
        try:
            found = await status(connection)
            if found.have > found.want or found.tampered:
                check(found)
            for one in found.pending:
                await _apply(connection, one)
        finally:
            if not connection.is_closed():
                await connection.execute(_SQL["unlock"], LOCK)
    return found.pending


async def _apply(connection: Any, one: Migration) -> None:
    if one.in_transaction:
        async with connection.transaction():
            await connection.execute(one.sql)
            await connection.execute(_SQL["record"], one.version, one.name, one.sha256)
        return
    # CREATE INDEX CONCURRENTLY and its like refuse to run in a transaction, and several statements
    # sent together are one; such a file is written so that it can run again.
    for statement in one.sql.split(";\n"):
        if statement.strip():
            await connection.execute(statement)
    await connection.execute(_SQL["record"], one.version, one.name, one.sha256)


def grants(role: str) -> list[str]:
    """What the migrating role runs once to let ``role`` use the schema, and nothing more.

    >>> grants("app")[0]
    'GRANT USAGE ON SCHEMA holdfast TO "app"'
    """
    quoted = '"' + role.replace('"', '""') + '"'
    return [
        statement.format(role=quoted)
        for statement in (
            "GRANT USAGE ON SCHEMA holdfast TO {role}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO {role}",
            "REVOKE INSERT, UPDATE, DELETE ON holdfast.migrations FROM {role}",
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO {role}",
            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO {role}",
        )
    ]
