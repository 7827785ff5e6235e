"""Opens the pool: creates or checks the schema, and switches to a role with few rights."""

from __future__ import annotations

from typing import Any

import asyncpg

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.errors import connecting, mapped
from holdfast.engines.postgres.hosts import connector
from holdfast.engines.postgres.packed_vectors import VectorCodec
from holdfast.engines.postgres.roles import APP_ROLE, login_role, make_roles, may_work
from holdfast.values.errors import ConfigError, SchemaError


async def _nothing_to_reset(_connection: Any) -> None:
    """Do nothing on release: Holdfast's statements leave no session state."""


async def connected_pool(
    url: str, *, pooler: bool, session: dict[str, str], codec: VectorCodec | None, **how: Any
) -> Any:
    """Return a pool with one connection; ``session`` holds the settings of every connection.

    With a ``codec``, each connection packs vectors.
    """
    with connecting():
        pool = await asyncpg.create_pool(
            url,
            connect=connector(url) if codec is None else codec.connecting(connector(url)),
            min_size=0,
            reset=_nothing_to_reset,
            # A transaction pooler supports neither named statements nor startup settings.
            **({"statement_cache_size": 0} if pooler else {"server_settings": session}),
            **how,
        )
    try:
        with connecting():
            # The connection stays in the pool, for the checks.
            await pool.release(await pool.acquire())
    except BaseException:
        pool.terminate()
        raise
    return pool


async def prepare(pool: Any, *, auto_migrate: bool) -> str:
    """Create or migrate the schema if needed.

    Returns the login role if it is to work as ``holdfast_app``, else ``""``.

    A database without our schema gets it; an older schema is migrated with ``auto_migrate``. ::

        login = await prepare(pool, auto_migrate=False)
    """
    with mapped(wrote=True):
        async with pool.acquire() as connection:
            found = await migrate.status(connection)
            migrates = found.have == 0 or bool(auto_migrate and found.pending)
            if migrates:
                try:
                    await migrate.migrate(connection)
                except ConfigError as error:
                    if isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError):
                        raise _not_allowed(found, error.__cause__) from error
                    raise
            login, mighty = await login_role(connection)
            if not mighty:
                return ""
            # After a migration, grant the rights on the new objects too.
            ready = (not migrates and await may_work(connection)) or await make_roles(connection)
            return login if ready else ""


def _not_allowed(found: migrate.SchemaStatus, error: Exception) -> SchemaError:
    return SchemaError(
        have=found.have,
        want=found.want,
        message=f"the schema is at version {found.have}, this code needs {found.want}, and this "
        f"role may not migrate ({error}): run `holdfast db migrate` as the owner of the database",
    )


__all__ = ["APP_ROLE", "connected_pool", "prepare"]
