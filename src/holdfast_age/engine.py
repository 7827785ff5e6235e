"""The connections to a Postgres with Apache AGE, and the graphs in it.

AGE needs prepared sessions, so it has its own pool, with direct connections: a transaction pooler
would lose the preparation.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, LiteralString, Self

import asyncpg

from holdfast.engines.postgres.capabilities import Capabilities, read_capabilities
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.migrate import LOCK
from holdfast.engines.postgres.queries import load
from holdfast.values.checks import check_id
from holdfast.values.errors import ConfigError, NotSupportedError, SchemaError

_SQL = load("session", package="holdfast_age")
_ABOUT = "holdfast graph of tenant "
_PLACE = "holdfast_graph"


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """A tenant, and the name of its graph in AGE."""

    tenant: str
    graph: str


def graph_name(tenant: str) -> str:
    """Return the name of a tenant's graph in AGE: a digest, since a tenant may be any text.

    >>> graph_name("acme")
    'holdfast_822b33ad87c148a0a20a5ba7cd5ebcaa'
    """
    digest = hashlib.sha256(check_id("tenant", tenant).encode()).hexdigest()
    return f"holdfast_{digest[:32]}"


def on_graph(sql: LiteralString, graph: str) -> LiteralString:
    """Return a statement of ``sql`` for one graph; the name is a digest, never a user's text.

    >>> on_graph('SELECT FROM holdfast_graph."Entity"', graph_name("acme"))
    'SELECT FROM holdfast_822b33ad87c148a0a20a5ba7cd5ebcaa."Entity"'
    """
    return sql.replace(_PLACE, graph)


class Age:
    """A server that has AGE, and a small pool of sessions prepared for it.

    ::

        age = await Age.open("postgresql://app@db/main")
        graph = CypherGraph(AgeGraph(age, tenant="acme"))
    """

    name = "age"

    def __init__(self, postgres: Postgres, *, auto_create: bool = False) -> None:
        self.postgres = postgres
        self.auto_create = auto_create
        self.tag = f"hf{secrets.token_hex(16)}"
        """The dollar tag around Cypher: random, and a text that contains it is refused."""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        max_connections: int = 4,
        connect_timeout_seconds: float = 10,
        command_timeout_seconds: float = 60,
        auto_create: bool = False,
        allow_unsafe: bool = False,
        ssl: Any = None,
    ) -> Self:
        """Connect, and check that the server has AGE; ``NotSupportedError`` names what it lacks.

        ``auto_create`` creates a tenant's graph on first use; the role must own the database then.
        Otherwise ``holdfast graph create TENANT`` creates it. ``allow_unsafe`` accepts a server
        that may lose an acknowledged write.

        ::

            age = await Age.open("postgresql://app@db/main")
        """
        milliseconds = max(1, round(command_timeout_seconds * 1000))
        with mapped(wrote=False):
            pool = await asyncpg.create_pool(
                url,
                min_size=0,
                max_size=max_connections,
                timeout=connect_timeout_seconds,
                server_settings={"statement_timeout": f"{milliseconds}"},
                ssl=ssl,
                init=_prepare,
                reset=_nothing_to_reset,
            )
            try:
                async with pool.acquire() as connection:
                    capabilities = await read_capabilities(connection)
                check_age(capabilities, allow_unsafe=allow_unsafe)
            except BaseException:
                pool.terminate()
                raise
        postgres = Postgres(
            pool, capabilities, owns=True, command_timeout_seconds=command_timeout_seconds
        )
        return cls(postgres, auto_create=auto_create)

    @property
    def capabilities(self) -> Capabilities:
        """What the server supports."""
        return self.postgres.capabilities

    async def ping(self) -> None:
        """Send one statement and wait for its answer."""
        await self.postgres.ping()

    async def aclose(self) -> None:
        """Close the pool."""
        await self.postgres.aclose()

    async def create(self, tenant: str, *, role: str = "") -> bool:
        """Create the graph of a tenant and grant it to a role. Return whether it is new.

        Safe to run again and concurrently. The connected role must be allowed to create schemas in
        the database; ``role`` then needs no rights but those granted here.

        ::

            await age.create("acme", role="holdfast_app")
        """
        graph = graph_name(tenant)
        script = (files(__package__) / "sql" / "create.sql").read_text(encoding="utf-8")
        async with self.postgres.connection(writes=True) as connection, connection.transaction():
            await connection.fetch(_SQL["lock"], LOCK)
            new = not await connection.fetchval(_SQL["is_there"], graph)
            if not await connection.fetchval(_SQL["has_graph"], graph):
                await connection.fetch(_SQL["create_graph"], graph)
                await connection.fetch(_SQL["create_labels"], graph)
            await connection.execute(script.replace(_PLACE, graph))
            await connection.execute(
                await connection.fetchval(_SQL["remark"], graph, f"{_ABOUT}{tenant}")
            )
            for statement in grants(graph, role) if role else ():
                await connection.execute(statement)
        return new

    async def graphs(self) -> list[GraphInfo]:
        """Return the graphs that Holdfast created, by tenant.

        ::

            [acme] = await age.graphs()
        """
        rows = await self.postgres.fetch_across(_SQL["graphs"], safe=True)
        return [
            GraphInfo(row["about"].removeprefix(_ABOUT), row["graph"])
            for row in rows
            if (row["about"] or "").startswith(_ABOUT)
        ]


def check_age(capabilities: Capabilities, *, allow_unsafe: bool) -> None:
    """Raise if a server has no AGE, naming what it lacks, or if it may lose a commit.

    >>> check_age(Capabilities(180000, "0.8.5", "1.7.0", ""), allow_unsafe=False)
    """
    if capabilities.age is None:
        raise NotSupportedError(
            "postgres",
            "Apache AGE",
            why=(
                "the extension is installed on the server, but not created in this database: "
                "run CREATE EXTENSION age as a superuser"
                if capabilities.age_available
                else "the extension is not installed on the server: "
                "install it, or use the graph without it"
            ),
        )
    if capabilities.unsafe and not allow_unsafe:
        raise ConfigError(
            f"postgres: {capabilities.unsafe}: an acknowledged write could be lost; "
            "turn it on, or open with allow_unsafe=True"
        )


def no_graph(tenant: str) -> SchemaError:
    """Return the error for a tenant without a graph, with the command that creates it.

    >>> str(no_graph("acme"))
    "the tenant 'acme' has no graph: run `holdfast graph create acme`"
    """
    return SchemaError(
        have=0,
        want=1,
        message=f"the tenant {tenant!r} has no graph: "
        f"run `holdfast graph create {shlex.quote(tenant)}`",
    )


def grants(graph: str, role: str) -> list[str]:
    """Return the statements that let a role read and write a graph, and nothing more.

    >>> grants(graph_name("acme"), "app")[0]
    'GRANT USAGE ON SCHEMA ag_catalog TO "app"'
    """
    quoted = '"' + role.replace('"', '""') + '"'
    return [
        f"GRANT USAGE ON SCHEMA ag_catalog TO {quoted}",
        f"GRANT SELECT ON ag_catalog.ag_graph, ag_catalog.ag_label TO {quoted}",
        f"GRANT USAGE ON SCHEMA {graph} TO {quoted}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {graph} TO {quoted}",
        f'GRANT INSERT, UPDATE, DELETE ON {graph}."Entity", {graph}."Relationship" TO {quoted}',
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {graph} TO {quoted}",
    ]


async def _prepare(connection: Any) -> None:
    """Prepare a new session for Cypher; do nothing on a server without AGE."""
    if (await read_capabilities(connection)).age is not None:
        await connection.fetch(_SQL["load_library"])
        await connection.fetch(_SQL["prepare"])


async def _nothing_to_reset(_connection: Any) -> None:
    """Do nothing: a session stays prepared, and a query leaves no other session state."""
