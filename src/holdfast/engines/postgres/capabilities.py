"""The server's version, extensions and settings, and the rights of the role, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.engines.postgres.queries import load
from holdfast.values.errors import ConfigError

_SQL = load("engine")
_NODES = load("distribution")["nodes"]
ITERATIVE_SCAN_SINCE = (0, 8)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The server's version and extensions, and whether a commit is on disk when it returns.

    >>> Capabilities(180000, "0.8.5", None, "").iterative_scan
    True
    """

    server_version: int
    pgvector: str | None
    age: str | None
    unsafe: str
    age_available: bool = False
    role: str = ""
    sees_all: bool = False
    """Whether the role bypasses row-level security: it is a superuser, or owns the schema."""
    confined: bool = False
    """Whether row-level security applies to the role, so that a statement sees one tenant only."""

    host: str = ""
    """The address and port that the server was reached at; empty over a socket."""
    standby: bool = False
    standbys: int = 0
    """How many standbys stream from the server."""
    synchronous: bool = False
    """Whether ``synchronous_standby_names`` is set, so that a commit waits for standbys."""
    synchronous_commit: str = "on"
    citus: str | None = None
    shards: tuple[tuple[str, int], ...] = ()
    """The nodes of a distributed database, and how many shards of the schema each has."""

    @property
    def distributed(self) -> str:
        """How the schema is divided by Citus; ``""`` if it is not.

        >>> Capabilities(180000, None, None, "", citus="14.0-1", shards=(("a:1", 32),)).distributed
        'distributed by Citus 14.0-1: 32 shards on a:1'
        """
        if not any(count for _, count in self.shards):
            return ""
        nodes = ", ".join(f"{count} shards on {node}" for node, count in self.shards if count)
        return f"distributed by Citus {self.citus}: {nodes}"

    @property
    def iterative_scan(self) -> bool:
        """Whether an index scan continues until enough rows pass the filter."""
        if self.pgvector is None:
            return False
        version = tuple(int(part) for part in self.pgvector.split(".")[:2])
        return version >= ITERATIVE_SCAN_SINCE

    @property
    def where(self) -> str:
        """The host that the server runs on, and how many standbys stream from it.

        >>> Capabilities(180000, None, None, "", host="10.0.0.5:5432", standbys=1).where
        'the primary at 10.0.0.5:5432, 1 standby, not synchronous'
        """
        found = ["a standby" if self.standby else "the primary"]
        found[0] += f" at {self.host}" if self.host else ""
        if self.standbys or self.synchronous:
            found.append(f"{self.standbys} standby{'s' * (self.standbys != 1)}")
            waits = self.synchronous and self.synchronous_commit not in {"off", "local"}
            found.append("synchronous" if waits else "not synchronous")
        return ", ".join(found)

    @property
    def failover_warning(self) -> str:
        """Why a failover could lose a write, or writes may hang, with the fix; else ``""``.

        >>> Capabilities(180000, None, None, "", standbys=1, synchronous=True).failover_warning
        ''
        """
        if self.standbys and not self.synchronous:
            why, fix = "no standby is synchronous", "set synchronous_standby_names"
        elif self.synchronous and self.synchronous_commit == "local":
            why, fix = "synchronous_commit is local", "set it to on"
        elif self.synchronous and not self.standbys:
            return (
                "synchronous_standby_names is set and no standby is connected: start one, or "
                "writes may wait for it"
            )
        else:
            return ""
        return f"{why}, so that a failover can lose an acknowledged write: {fix}"

    def check_safe(self) -> None:
        """Raise unless a commit is on disk when it returns and row-level security applies."""
        if self.unsafe:
            raise ConfigError(
                f"postgres: {self.unsafe}: an acknowledged write could be lost; "
                "turn it on, or open with allow_unsafe=True"
            )
        if self.sees_all:
            raise ConfigError(
                f"postgres: {self.role} is a superuser or owns the schema, so that a statement "
                "could see every tenant, and it cannot work as holdfast_app here: log in as a "
                "member of holdfast_app, or open with allow_unsafe=True"
            )

    def describe(self) -> str:
        """One line for people to read.

        >>> Capabilities(180004, "0.8.5", None, "").describe()
        'Postgres 18.4, pgvector 0.8.5, no AGE'
        """
        major, minor = divmod(self.server_version, 10_000)
        return (
            f"Postgres {major}.{minor}, pgvector {self.pgvector or 'missing'}, "
            f"{f'AGE {self.age}' if self.age else 'no AGE'}"
        )


async def read_capabilities(connection: Any) -> Capabilities:
    """Read the capabilities of the server."""
    row = await connection.fetchrow(_SQL["settings"])
    off = [
        name for name in ("synchronous_commit", "fsync", "full_page_writes") if row[name] == "off"
    ]
    nodes = await connection.fetch(_NODES) if row["citus"] and row["knows_shards"] else []
    return Capabilities(
        server_version=row["version"],
        pgvector=row["pgvector"],
        age=row["age"],
        unsafe=" and ".join(f"{name} is off" for name in off),
        age_available=row["age_available"],
        role=row["role"],
        sees_all=row["sees_all"],
        confined=row["confined"],
        host=row["host"],
        standby=row["standby"],
        standbys=row["standbys"],
        synchronous=row["synchronous"],
        synchronous_commit=row["synchronous_commit"],
        citus=row["citus"],
        shards=tuple((node["node"], node["shards"]) for node in nodes),
    )
