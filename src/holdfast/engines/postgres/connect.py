"""How a pool of our own connects: with a schema that is there, as a role that may do little."""

from __future__ import annotations

from typing import Any

import asyncpg

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.app_role import APP_ROLE, login_role, make_app_role, may_work
from holdfast.engines.postgres.errors import connecting, mapped
from holdfast.values.errors import ConfigError, SchemaError


async def _nothing_to_reset(_connection: Any) -> None:
    """No statement of ours leaves session state behind, so giving a connection back is free."""


async def connected_pool(url: str, *, pooler: bool, session: dict[str, str], **how: Any) -> Any:
    """A pool with one connection in it; ``session`` are settings of every connection."""
    with connecting():
        pool = await asyncpg.create_pool(
            url,
            min_size=0,
            reset=_nothing_to_reset,
            # A transaction pooler knows neither named statements nor settings at the start.
            **({"statement_cache_size": 0} if pooler else {"server_settings": session}),
            **how,
        )
    try:
        with connecting():
            # It stays in the pool, for the checks.
            await pool.release(await pool.acquire())
    except BaseException:
        pool.terminate()
        raise
    return pool


async def prepare(pool: Any, *, auto_migrate: bool) -> str:
    """Migrate what is to be migrated; returns the login role if it is to work as ``holdfast_app``.

    A database without our schema gets it, and an older schema where ``auto_migrate`` says so. ::

        login = await prepare(pool, auto_migrate=False)
    """
    with mapped(wrote=True):
        async with pool.acquire() as connection:
            found = await migrate.status(connection)
            if found.have == 0 or (auto_migrate and found.pending):
                try:
                    await migrate.migrate(connection)
                except ConfigError as error:
                    if isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError):
                        raise _not_allowed(found, error.__cause__) from error
                    raise
            login, mighty = await login_role(connection)
            if not mighty:
                return ""
            ready = await may_work(connection) or await make_app_role(connection)
            return login if ready else ""


def _not_allowed(found: migrate.SchemaStatus, error: Exception) -> SchemaError:
    return SchemaError(
        have=found.have,
        want=found.want,
        message=f"the schema is at version {found.have}, this code needs {found.want}, and this "
        f"role may not migrate ({error}): run `holdfast db migrate` as the owner of the database",
    )


__all__ = ["APP_ROLE", "connected_pool", "prepare"]
