"""``state.ops.archives``: export, import and copy of a tenant."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.spi.archive.storage import ArchiveStorage
from holdfast.spi.key_provider import KeyProvider
from holdfast.values.errors import InvalidInputError, NotSupportedError, UnavailableError
from holdfast.wiring.archive_keys import ArchiveKeys, has_content
from holdfast.wiring.archive_runs import (
    ArchiveReport,
    OnProgress,
    copy_tenant,
    export_archive,
    import_archive,
)
from holdfast.wiring.connections import ATTRIBUTES, Connections

if TYPE_CHECKING:
    from holdfast.wiring.state import State

DRAIN_SECONDS = 600.0
"""How long an export waits until all events in Redis are in Postgres."""


class Archives:
    """Exports, imports and copies all data of one tenant.

    An archive is a folder of JSON lines and files that any engine can load. Ids, numbers,
    versions and times stay the same; the word index and the vectors of recall are rebuilt after a
    load. The archive has the digests of API keys, and the secrets of push configs: keep it as safe
    as the database. An erasure does not reach it.

    ::

        report = await state.ops.archives.export("backup")
        await other.ops.archives.load("backup")
    """

    def __init__(self, connections: Connections, tenant: str) -> None:
        self._connections = connections
        self._tenant = tenant

    async def export(
        self,
        folder: str | os.PathLike[str],
        *,
        without: Collection[str] = (),
        recipient: KeyProvider | None = None,
        progress: OnProgress | None = None,
    ) -> ArchiveReport:
        """Write an archive into a folder, from one snapshot.

        To continue an interrupted export, export into the same folder again: segments and blobs
        that exist are not written again. ``without`` names attributes of the state to leave out.
        Sealed content stays sealed: the archive has its data keys, wrapped for the ``recipient``,
        or else by the keys that wrap them here. ::

            report = await state.ops.archives.export("backup")
        """
        return await export_archive(
            await self._source(without),
            Path(folder),
            tenant=self._tenant,
            without=frozenset(without),
            keys=self._keys(recipient),
            progress=progress,
        )

    async def load(
        self,
        folder: str | os.PathLike[str],
        *,
        rename: bool = False,
        progress: OnProgress | None = None,
    ) -> ArchiveReport:
        """Load an archive into this tenant, which must have no data, and verify it.

        Everything in the archive is checked before anything is loaded. To
        continue an interrupted load, call it again. ``rename`` allows an archive of another tenant.
        A sealed archive needs the keys that wrap its data keys, and its tenant's name. ::

            await state.ops.archives.load("backup")
        """
        return await import_archive(
            *(self._storage(), Path(folder)),
            tenant=self._tenant,
            rename=rename,
            keys=self._keys(),
            progress=progress,
        )

    async def copy_to(
        self, other: State, *, without: Collection[str] = (), progress: OnProgress | None = None
    ) -> ArchiveReport:
        """Copy this tenant into the tenant of another state, which must have no data.

        ::

            await state.ops.archives.copy_to(other)
        """
        target = other.ops.archives
        provider = target._connections.provider  # noqa: SLF001 - it is one of us
        keys, source = target._keys(), await self._source(without)  # noqa: SLF001
        keys.check_archive(
            sealed=await self._is_sealed(),
            tenant=self._tenant,
            has_content=keys.seals and await has_content(source),
        )
        return await copy_tenant(
            source,
            target._storage(),  # noqa: SLF001 - it is one of us
            tenant=other.tenant,
            without=frozenset(without),
            keys=self._keys(provider),
            progress=progress,
        )

    def _storage(self) -> ArchiveStorage:
        archive = self._connections.archive
        if archive is None:
            names = " and ".join(sorted(set(self._connections.engines.values())))
            raise NotSupportedError(names, "archives", why="use a state in memory or on Postgres")
        return archive(self._tenant)

    def _keys(self, recipient: KeyProvider | None = None) -> ArchiveKeys:
        return ArchiveKeys(self._tenant, self._connections.provider, recipient)

    async def _is_sealed(self) -> bool:
        """Return whether the tenant has data keys."""
        keys = self._connections.data_keys
        return keys is not None and bool(await keys(self._tenant).page(0, 1))

    async def _source(self, without: Collection[str]) -> ArchiveStorage:
        for name in without:
            if name not in ATTRIBUTES:
                raise InvalidInputError(
                    "without", f"must be in {', '.join(ATTRIBUTES)}, not {name!r}"
                )
        storage = self._storage()
        missing = self._connections.unarchived - frozenset(without)
        if missing:
            engines = self._connections.engines
            raise NotSupportedError(
                engines[min(missing)],
                f"archives of {', '.join(sorted(missing))}",
                why=f"leave it out with without={sorted(missing)} (--without)",
            )
        hybrid = self._connections.hybrid
        if hybrid is not None and not await hybrid.consolidator.drain(limit_seconds=DRAIN_SECONDS):
            raise UnavailableError(
                "hybrid", f"events were not in Postgres after {DRAIN_SECONDS:g} s: see health"
            )
        return storage
