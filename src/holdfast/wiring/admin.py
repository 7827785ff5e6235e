"""The database that the environment configures, for operator commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from holdfast.values.errors import NotSupportedError
from holdfast.values.retention import Retention
from holdfast.wiring.engines import EMBEDDED, OBJECTS, POSTGRES, REDIS, engine_of_settings, load
from holdfast.wiring.masking import mask_url
from holdfast.wiring.request import OpenRequest
from holdfast.wiring.settings import Settings


@dataclasses.dataclass(slots=True)
class Administration:
    """An operator's connection to embedded Postgres or to a server."""

    label: str
    _admin: Any
    _embedded: Any = None
    _blobs: Any = None
    _redis: OpenRequest | None = None

    @classmethod
    async def open(cls, settings: Settings | None = None) -> Administration:
        """Connect to the configured database; default: embedded Postgres in its folder."""
        chosen = Settings.from_environment() if settings is None else settings
        spec = engine_of_settings(chosen) or EMBEDDED
        if spec not in (EMBEDDED, POSTGRES):
            raise NotSupportedError(
                spec.name, "a schema", why="set DATABASE_URL, or STORAGE_TYPE=embedded"
            )
        wiring = load(spec)
        if spec is POSTGRES:
            admin = await wiring.administration(chosen.database_url)
            found = cls(mask_url(chosen.database_url), admin)
        else:
            embedded, admin = await wiring.administration(chosen.directory)
            found = cls(f"embedded in {chosen.directory}", admin, embedded)
        if chosen.redis_url:
            found._redis = OpenRequest(
                url=chosen.database_url, redis=chosen.redis_url, blobs="", settings=chosen
            )
        if chosen.blob_url:
            found._blobs = load(OBJECTS).Upkeep(chosen, wiring)
        return found

    @staticmethod
    def sql(*, role: str = "") -> Iterator[str]:
        """Return the SQL of all migrations, and of the grants of a role."""
        yield from load(POSTGRES).migration_texts(role)

    async def status(self) -> Any:
        """Return which migrations are applied, pending and changed."""
        return await self._admin.status()

    async def migrate(self) -> Sequence[Any]:
        """Apply the pending migrations."""
        found: Sequence[Any] = await self._admin.migrate()
        return found

    async def make_login(self, name: str, password: str, kinds: Sequence[str]) -> bool:
        """Create a login role for these kinds of processes. Returns ``False`` if it existed."""
        new: bool = await self._admin.make_login(name, password, kinds)
        return new

    async def distribution(self) -> Any:
        """Return which objects of the schema Citus distributes, and which it does not."""
        return await self._admin.distribution()

    async def distribute(
        self, *, move_rows: bool, progress: Callable[[Any], None]
    ) -> Sequence[Any]:
        """Distribute the objects of the schema that Citus does not distribute yet. Returns them."""
        found: Sequence[Any] = await self._admin.distribute(move_rows=move_rows, progress=progress)
        return found

    async def problems(self) -> list[str]:
        """Return the problems of the database, each with its fix."""
        found: list[str] = await self._admin.problems()
        return found

    def jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the maintenance jobs by name."""
        found: dict[str, Callable[[], Awaitable[int]]] = self._admin.jobs()
        return found | (self._blobs.jobs() if self._blobs else {})

    def retention_jobs(self, policy: Retention) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs that delete data which is older than the policy allows, by name."""
        found: dict[str, Callable[[], Awaitable[int]]] = self._admin.retention_jobs(policy)
        return found

    def scrub_jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """Return the jobs that remove the bytes of deleted data from files, by name."""
        found: dict[str, Callable[[], Awaitable[int]]] = self._admin.scrub_jobs()
        request = self._redis
        if request is not None:
            found["files of Redis rewritten"] = lambda: load(REDIS).scrub(request)
        return found | (self._blobs.scrub_jobs() if self._blobs else {})

    async def aclose(self) -> None:
        """Disconnect, and stop the embedded server if no other process uses it."""
        await self._admin.aclose()
        if self._embedded is not None:
            await self._embedded.aclose()
