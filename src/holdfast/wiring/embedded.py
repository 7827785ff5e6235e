"""All contracts on embedded Postgres, whose data is in a folder."""

from __future__ import annotations

import dataclasses
import os

from holdfast.engines.postgres.admin import PostgresAdmin
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.engines.postgres.embedded_backup import back_up, restore
from holdfast.wiring import postgres
from holdfast.wiring.connections import Connections
from holdfast.wiring.request import OpenRequest


async def connect(request: OpenRequest) -> Connections:
    """Start the folder's server or join a running one; create or migrate its schema."""
    embedded = await EmbeddedPostgres.open(request.url or request.settings.directory)
    try:
        settings = dataclasses.replace(request.settings, auto_migrate=True, pooler=False)
        found = await postgres.connect(
            dataclasses.replace(request, url=embedded.url, settings=settings),
            revive=embedded.revive,
        )
    except BaseException:
        await embedded.aclose()
        raise
    [pool] = found.connected

    async def close() -> None:
        try:
            await pool.close()
        finally:
            await embedded.aclose()

    found.connected = [dataclasses.replace(pool, close=close)]
    return found


async def administration(folder: str) -> tuple[EmbeddedPostgres, PostgresAdmin]:
    """Return the embedded server, which the caller must close, and an operator's connection."""
    embedded = await EmbeddedPostgres.open(folder)
    try:
        return embedded, await PostgresAdmin.open(embedded.url)
    except BaseException:
        await embedded.aclose()
        raise


async def back_up_folder(folder: str, target: str | os.PathLike[str]) -> int:
    """Copy an embedded folder, also while it is used. Returns the size of the backup in bytes."""
    return await back_up(folder, os.fspath(target))


async def restore_folder(backup: str | os.PathLike[str], folder: str) -> int:
    """Copy a backup into a new embedded folder. Returns its size in bytes."""
    return await restore(os.fspath(backup), folder)
