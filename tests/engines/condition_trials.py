"""Runs a statement without one of its conditions on a tenant, and compares what it does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, LiteralString, NamedTuple, TypeAlias

import asyncpg

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tenancy import for_tenant
from tests.engines.forgetful import CONDITION
from tests.engines.test_postgres_policies import ACROSS

TABLES = """
SELECT c.oid, c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r' AND a.attname = 'tenant'
"""
CHANGED = """
SELECT o FROM unnest($1::oid[]) o
WHERE pg_stat_get_xact_tuples_inserted(o) + pg_stat_get_xact_tuples_updated(o)
    + pg_stat_get_xact_tuples_deleted(o) > 0
ORDER BY o
"""
TRIES = 4
"""In how many calls a condition is left out, until the superuser sees a difference."""
LOOKS = 4096
"""A statement is looked at in its 1st, 2nd, 4th, 8th call, and so on up to this one."""

DEFINITIONS = """
SELECT p.proname AS name, pg_get_functiondef(p.oid) AS sql
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'holdfast'::regnamespace AND p.prokind = 'f'
    AND l.lanname IN ('sql', 'plpgsql')
UNION ALL
SELECT c.relname, format('CREATE OR REPLACE VIEW holdfast.%I WITH (security_invoker = true) AS %s',
                         c.relname, pg_get_viewdef(c.oid))
FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'v'
"""
TRIGGERS = """
SELECT DISTINCT p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE p.pronamespace = 'holdfast'::regnamespace AND NOT t.tgisinternal
"""


class Mutant(NamedTuple):
    """One condition: of a statement (by file and name), or of a function or view of the schema."""

    kind: str
    name: str
    condition: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: condition {self.condition + 1}"


Trial: TypeAlias = tuple[Mutant, str, LiteralString]
"""A mutant, the definition to replace (or none), and the statement to run."""


class Outcome(NamedTuple):
    """What a statement returned, and what it left of both tenants."""

    rows: list[str]
    twin: str
    own: str
    error: str


def without(sql: str, condition: int) -> str:
    """A statement without its nth condition on a tenant.

    >>> without("SELECT FROM a JOIN b ON b.tenant = a.tenant WHERE a.tenant = $1", 1)
    'SELECT FROM a JOIN b ON b.tenant = a.tenant WHERE ($1 IS NOT NULL)'
    """
    count = iter(range(sql.count("tenant") + 1))

    def forget(found: re.Match[str]) -> str:
        if next(count) != condition:
            return found[0]
        return "($1 IS NOT NULL)" if found["parameter"] else "true"

    return CONDITION.sub(forget, sql)


def conditions(sql: str) -> int:
    """How many conditions on a tenant a statement has.

    >>> conditions("SELECT FROM holdfast.boards WHERE tenant = $1")
    1
    """
    return len(CONDITION.findall(sql))


class Trials:
    """Leaves conditions out, one at a time, and keeps what came of it."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._definitions: dict[str, list[str]] = {}
        self._triggers: set[str] = set()
        self._uses: dict[str, set[str]] = {}
        self._contained: set[str] = set()
        """Statements that were tried as a part of another one."""
        self._tables: dict[int, str] = {}
        self.tries: Counter[Mutant] = Counter()
        self.seen: set[Mutant] = set()
        """Those that showed or changed something of the other tenant for the superuser."""
        self.leaks: dict[Mutant, str] = {}
        """Those that did so below the policies."""

    async def read(self, connection: Any) -> None:
        """Read the functions and views of a schema, once, and prepare a connection."""
        await connection.execute("SET lock_timeout = '2s'; SET statement_timeout = '30s'")
        if self._tables:
            return
        for name, sql in await connection.fetch(DEFINITIONS):
            self._definitions.setdefault(name, []).append(sql)
        self._triggers = {row[0] for row in await connection.fetch(TRIGGERS)}
        self._tables = {
            oid: "SELECT count(*) FILTER (WHERE t.tenant = $2), "  # noqa: S608 - of the catalog
            "md5(string_agg(md5(t::text), '' ORDER BY md5(t::text)) FILTER (WHERE t.tenant = $1)) "
            f"FROM holdfast.{name} t WHERE t.tenant IN ($1, $2)"
            for oid, name in await connection.fetch(TABLES)
        }

    async def _changed(self, connection: Any, tenant: str) -> tuple[str, str]:
        """What is in the tables that this transaction changed: of the twin, and of the tenant."""
        twin, own = [], []
        for [oid] in await connection.fetch(CHANGED, list(self._tables)):
            row = await connection.fetchrow(self._tables[oid], twin_of(tenant), tenant)
            own.append(f"{oid} {row[0]}")
            twin.append(f"{oid} {row[1]}")
        return " ".join(twin), " ".join(own)

    def mutants(self) -> set[Mutant]:
        """Every condition of the statements of tenants, and of what they use."""
        return {
            mutant
            for sql, name in statements().items()
            if not is_across(name) and name not in self._contained
            for mutant, _, _ in self._candidates(sql)
        }

    async def look(
        self, connection: Any, sql: LiteralString, tenant: str, args: Sequence[Any]
    ) -> None:
        """Run the statement for each condition of its own and of what it uses, without that."""
        self._calls[sql] += 1
        calls = self._calls[sql]
        if calls & (calls - 1) or calls > LOOKS or sql.startswith("EXPLAIN"):
            return
        self._contained |= {
            name for text, name in statements().items() if text != sql and text in sql
        }
        todo = [one for one in self._candidates(sql) if self._wants(one[0])]
        if not todo:
            return
        run = partial(self._run, connection, tenant=tenant, args=args)
        right = await run("", sql, role="holdfast_app")
        if right.error:
            return
        for mutant, definition, statement in todo:
            self.tries[mutant] += 1
            below = await run(definition, statement, role="holdfast_app")
            if below != right:
                again = await run("", sql, role="holdfast_app")
                if why := _difference(right, again, below):
                    self.leaks[mutant] = why
            control = await run(definition, statement, role="none")
            if control != right:
                again = await run("", sql, role="none")
                if _difference(right, again, control):
                    self.seen.add(mutant)

    def _wants(self, mutant: Mutant) -> bool:
        return mutant not in self.seen and self.tries[mutant] < TRIES

    def _candidates(self, sql: LiteralString) -> Iterator[Trial]:
        name = name_of(sql)
        for condition in range(conditions(sql)):
            mutated: Any = without(sql, condition)
            yield Mutant("statement", name, condition), "", mutated
        for used in sorted(self._used(sql)):
            at = 0
            for definition in self._definitions[used]:
                for condition in range(conditions(definition)):
                    yield Mutant("function", used, at), without(definition, condition), sql
                    at += 1

    def _used(self, sql: str) -> set[str]:
        """The functions and views that a statement uses, and those that they use."""
        if sql not in self._uses:
            found: set[str] = set()
            new = self._names_in(sql)
            if re.search(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", sql) or new:
                new |= self._triggers
            while new:
                found |= new
                texts = (text for name in new for text in self._definitions[name])
                new = set().union(*(self._names_in(text) for text in texts)) - found
            self._uses[sql] = found
        return self._uses[sql]

    def _names_in(self, sql: str) -> set[str]:
        return set(re.findall(r"holdfast\.(\w+)", sql)) & self._definitions.keys()

    async def _run(
        self,
        connection: Any,
        definition: str,
        sql: LiteralString,
        *,
        tenant: str,
        args: Sequence[Any],
        role: str,
    ) -> Outcome:
        error, rows = "", list[str]()
        transaction = connection.transaction()
        await transaction.start()
        try:
            # The time stands still, so that the same call has the same result.
            if await connection.fetchval("SELECT to_regclass('holdfast_test.clock') IS NOT NULL"):
                await connection.execute(
                    "UPDATE holdfast_test.clock SET held = coalesce(held, clock_timestamp())"
                )
            if definition:
                await connection.execute("SET LOCAL check_function_bodies = off")
                await connection.execute(definition)
            try:
                async with connection.transaction():
                    await connection.execute(f"SET LOCAL ROLE {role}")
                    rows = sorted(
                        repr(tuple(row))
                        for row in await connection.fetch(for_tenant(sql), tenant, *args)
                    )
                    await connection.execute("SET LOCAL ROLE none")
            except asyncpg.PostgresError as raised:
                error = f"{type(raised).__name__}: {raised}"
            twin, own = await self._changed(connection, tenant)
        finally:
            await transaction.rollback()
        return Outcome(rows, twin, own, error)

    def as_json(self) -> dict[str, Any]:
        """The result, to be written to a file."""
        every = {*self.mutants(), *self.tries}
        return {
            "conditions": len(every),
            "left_out": len(self.tries),
            "calls": self.tries.total(),
            "leaks_without_policies": len(self.seen),
            "leaks_with_policies": len(self.leaks),
            "leaks": {str(one): why for one, why in sorted(self.leaks.items())},
            "not_reached": sorted(str(one) for one in every - self.tries.keys()),
        }


def _difference(right: Outcome, again: Outcome, found: Outcome) -> str:
    """How a result differs from the right one, beyond what two right ones differ by."""
    if "LockNotAvailable" in found.error or "QueryCanceled" in found.error:
        return ""
    for field in Outcome._fields:
        expected = getattr(right, field)
        if expected == getattr(again, field) != getattr(found, field):
            return f"{field}: {str(getattr(found, field))[:300]} instead of {str(expected)[:300]}"
    if len(right.rows) == len(again.rows) != len(found.rows):
        return f"{len(found.rows)} rows instead of {len(right.rows)}"
    return ""


def twin_of(tenant: str) -> str:
    """The second tenant, which has the same ids."""
    return f"twin of {tenant}"


@cache
def statements() -> dict[LiteralString, str]:
    """Every statement of the package, with the name of its file and its own."""
    folder = files("holdfast.engines.postgres").joinpath("sql")
    names = sorted(one.name.removesuffix(".sql") for one in folder.iterdir())
    return {sql: f"{file}.{name}" for file in names for name, sql in load(file).items()}


def is_across(name: str) -> bool:
    """Whether a statement is for no one tenant, by its name."""
    file, _, statement = name.partition(".")
    return statement in ACROSS.get(file, ())


@cache
def name_of(sql: LiteralString) -> str:
    """The name of a statement; of one that a filter was put into, by how it begins."""
    if sql in statements():
        return statements()[sql]
    alike = (name for text, name in statements().items() if text[:80] == sql[:80])
    return next(alike, "") or f"{sql[:60]!r}"
