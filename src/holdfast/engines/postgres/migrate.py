"""Migrations: SQL files that are applied in order, with checksums, under one advisory lock.

Numbered files change tables, once. The files of ``functions/`` hold the current functions: a file
is applied again when its version is higher than that in the database.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.queries import load
from holdfast.values.errors import SchemaError

LOCK = 0x686F6C6466617374
"""The advisory lock that one migrating process holds: the bytes of "holdfast"."""

LOCK_SECONDS = 0.05
"""How long to wait between two attempts to get the lock."""

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_VERSION = re.compile(r"-- version: (\d+)\n")
_NO_TRANSACTION = "-- transaction: none"
_SQL = load("migrate")


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file: its number, its name, and its SQL."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The checksum that is recorded on apply, so that a change of the file is detected."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def label(self) -> str:
        """The name that operators see."""
        return f"{self.version:04}_{self.name}"

    @property
    def in_transaction(self) -> bool:
        """Whether it runs in one transaction, or statement by statement."""
        return not self.sql.startswith(_NO_TRANSACTION)


@dataclass(frozen=True, slots=True)
class FunctionFile:
    """A file of current SQL functions on one subject. Changing the file raises its version."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The checksum that is recorded on apply."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def label(self) -> str:
        """The name that operators see."""
        return f"functions/{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema version of a database, the version this code needs, and what is pending."""

    have: int
    want: int
    pending: tuple[Migration | FunctionFile, ...]
    tampered: tuple[str, ...]


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all migrations of this version, in order and without a gap.

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


@cache
def function_files() -> tuple[FunctionFile, ...]:
    """Return the function files of this version, by subject.

    >>> function_files()[0].name
    'all_sessions'
    """
    found = []
    for file in sorted(files(__package__).joinpath("functions").iterdir(), key=lambda f: f.name):
        text = file.read_text(encoding="utf-8")
        matched = _VERSION.match(text)
        if matched is None:
            raise ValueError(f"functions/{file.name} does not begin with its version")
        found.append(FunctionFile(int(matched[1]), file.name.removesuffix(".sql"), text))
    return tuple(found)


async def status(connection: Any) -> SchemaStatus:
    """Compare the migrations that a database has recorded with the files."""
    with mapped(wrote=False):
        if not await connection.fetchval(_SQL["is_there"]):
            return SchemaStatus(0, len(migrations()), (*migrations(), *function_files()), ())
        applied = {row["version"]: row for row in await connection.fetch(_SQL["applied"])}
        records = await connection.fetchval(_SQL["records_functions"])
        rows = await connection.fetch(_SQL["applied_functions"]) if records else []
    functions = {row["name"]: row for row in rows}
    tampered = [
        one.label
        for one in migrations()
        if one.version in applied and applied[one.version]["sha256"] != one.sha256
    ]
    pending: list[Migration | FunctionFile] = [
        one for one in migrations() if one.version not in applied
    ]
    for file in function_files():
        there = functions.get(file.name)
        # A higher version comes from newer code. It still works with this code: a function whose
        # signature changes gets a new name.
        if there is None or there["version"] < file.version:
            pending.append(file)
        elif there["version"] == file.version and there["sha256"] != file.sha256:
            tampered.append(file.label)
    have = max(applied, default=0)
    return SchemaStatus(have, len(migrations()), tuple(pending), tuple(tampered))


def check(found: SchemaStatus) -> None:
    """Raise ``SchemaError`` if this code cannot use the schema."""
    if found.tampered:
        raise SchemaError(
            have=found.have,
            want=found.want,
            message=f"applied migrations differ from their files: {', '.join(found.tampered)}; "
            "install the version of holdfast that applied them",
        )
    if found.have != found.want:
        raise SchemaError(have=found.have, want=found.want)
    if found.pending:
        older = ", ".join(one.label for one in found.pending)
        raise SchemaError(
            have=found.have,
            want=found.want,
            message=f"functions of the schema are older than this code: {older}; "
            "run `holdfast db migrate`, or set HOLDFAST_AUTO_MIGRATE=1",
        )


async def migrate(connection: Any) -> Sequence[Migration | FunctionFile]:
    """Apply the pending migrations and return them. Other processes wait until it is done.

    Neither a migration nor the wait for another process has a time limit: the session's
    ``statement_timeout`` does not apply to them.
    """
    with mapped(wrote=True):
        limit = await connection.fetchval(_SQL["statement_timeout"])
        await connection.execute(_SQL["set_statement_timeout"], "0")
        try:
            return await _migrate(connection)
        finally:
            if not connection.is_closed():
                await connection.execute(_SQL["set_statement_timeout"], limit)


async def _migrate(connection: Any) -> Sequence[Migration | FunctionFile]:
    # CREATE INDEX CONCURRENTLY, in the process that holds the lock, would wait for ever for a
    # statement that waits for the lock.
    while not await connection.fetchval(_SQL["lock"], LOCK):  # noqa: ASYNC110 - of the database
        await asyncio.sleep(LOCK_SECONDS)
    try:
        found = await status(connection)
        if found.have > found.want or found.tampered:
            check(found)
        await connection.execute(_SQL["prepare_citus"])
        for one in found.pending:
            await _apply(connection, one)
    finally:
        if not connection.is_closed():
            await connection.execute(_SQL["unlock"], LOCK)
    return found.pending


async def _apply(connection: Any, one: Migration | FunctionFile) -> None:
    if isinstance(one, FunctionFile):
        async with connection.transaction():
            # A function may call one that is created after it.
            await connection.execute(_SQL["check_no_bodies"])
            await connection.execute(one.sql)
            await connection.execute(_SQL["confine"])
            await connection.execute(_SQL["record_functions"], one.name, one.version, one.sha256)
        return
    if one.in_transaction:
        async with connection.transaction():
            await connection.execute(one.sql)
            await connection.execute(_SQL["confine"])
            await connection.execute(_SQL["record"], one.version, one.name, one.sha256)
        return
    # CREATE INDEX CONCURRENTLY and the like cannot run in a transaction, and several statements
    # sent together are one. Such a file must be safe to run again.
    for [drop_index] in await connection.fetch(_SQL["drop_broken"], one.sql):
        await connection.execute(drop_index)
    for statement in one.sql.split(";\n"):
        if statement.strip():
            await connection.execute(statement)
    await connection.execute(_SQL["confine"])
    await connection.execute(_SQL["record"], one.version, one.name, one.sha256)


def grants(role: str) -> list[str]:
    """Return the statements by which the migrating role grants ``role`` the use of the schema.

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
            # An older schema, which is migrated later, does not have these tables.
            *(
                f"DO $$ BEGIN IF to_regclass('holdfast.{table}') IS NOT NULL THEN"
                f" REVOKE INSERT, UPDATE, DELETE ON holdfast.{table} FROM {{role}};"
                " END IF; END $$"
                for table in ("function_files", "notice_key")
            ),
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO {role}",
            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO {role}",
        )
    ]
