"""Citus: divides the schema of a migrated database by tenant over the nodes of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.engines.postgres.errors import mapped
from holdfast.engines.postgres.migrate import LOCK, LOCK_SECONDS
from holdfast.engines.postgres.queries import load
from holdfast.values.errors import ConfigError

_SQL = load("distribution")
_LOCKS = load("migrate")

BY_STATEMENT = (
    "isolation: by statement: each statement names its tenant, and no row-level policy applies"
)
"""How tenants are isolated on a distributed database."""


@dataclass(frozen=True, slots=True)
class Step:
    """One object of the schema: how it should be distributed, and how it is."""

    kind: str
    name: str
    wanted: str
    found: str
    statement: str | None

    @property
    def is_done(self) -> bool:
        """Whether the object is distributed as it should be."""
        return self.wanted == self.found


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the cluster, and how many shards of the schema it has."""

    name: str
    takes_shards: bool
    shards: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """Which objects of the schema are distributed; ``version`` is the version of Citus."""

    version: str
    nodes: tuple[Node, ...]
    steps: tuple[Step, ...]

    @property
    def missing(self) -> tuple[Step, ...]:
        """The objects that are not distributed as they should be."""
        return tuple(step for step in self.steps if not step.is_done)


async def read_distribution(connection: Any) -> Distribution:
    """Return which objects are distributed. Without Citus, ``ConfigError`` names the next step.

    ::

        found = await read_distribution(connection)
        print(len(found.missing), "objects are to be distributed")
    """
    with mapped(wrote=False):
        version = await _version(connection)
        if not await connection.fetchval(_SQL["known"]):
            raise ConfigError("the schema has no function distribution: run `holdfast db migrate`")
        nodes = tuple(Node(*row) for row in await connection.fetch(_SQL["nodes"]))
        steps = tuple(Step(*row) for row in await connection.fetch(_SQL["steps"]))
    return Distribution(version, nodes, steps)


async def distribute(
    connection: Any, *, move_rows: bool = False, progress: Callable[[Step], None]
) -> Sequence[Step]:
    """Distribute the objects that are not distributed yet, one at a time, and return them.

    A killed run can be repeated. If a table has rows, it raises ``ConfigError`` unless
    ``move_rows`` is set: then the rows are copied to the shards, and writes wait meanwhile. ::

        await distribute(connection, progress=print)
    """
    with mapped(wrote=True):
        while not await connection.fetchval(_LOCKS["lock"], LOCK):  # noqa: ASYNC110 - see migrate
            await asyncio.sleep(LOCK_SECONDS)
        try:
            found = await read_distribution(connection)
            if not any(node.takes_shards for node in found.nodes):
                raise ConfigError(
                    "citus: no node takes shards: run SELECT citus_set_coordinator_host(...) and "
                    "SELECT citus_add_node('worker', 5432) for each worker"
                )
            if not move_rows:
                await _refuse_rows(connection)
            await connection.execute(_SQL["prepare_session"])
            for step in found.missing:
                if step.statement is not None:
                    # Each in a transaction of its own: what is done stays done.
                    await connection.execute(step.statement)
                    progress(step)
            await connection.execute(_SQL["grant_views"])
        finally:
            if not connection.is_closed():
                await connection.execute(_LOCKS["unlock"], LOCK)
    return found.missing


async def _refuse_rows(connection: Any) -> None:
    filled = [row[0] for row in await connection.fetch(_SQL["filled"])]
    if filled:
        raise ConfigError(
            f"these tables have rows: {', '.join(filled)}; to distribute them copies every row "
            "and blocks writes meanwhile: stop the processes, make a backup, and pass --yes"
        )


async def _version(connection: Any) -> str:
    installed, available, preloaded = await connection.fetchrow(_SQL["installed"])
    if installed is not None:
        return str(installed)
    if available is None:
        raise ConfigError(
            "citus: the extension is not installed on this server: install Citus on every node"
        )
    if "citus" not in preloaded:
        raise ConfigError(
            "citus: add citus to shared_preload_libraries on every node, and restart them"
        )
    raise ConfigError("citus: run CREATE EXTENSION citus in this database, on every node")
