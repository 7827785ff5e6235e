"""The roles that the stores and processes use instead of a superuser or the owner of the schema.

The owner of the tables can drop them, and a superuser can do anything to the server. So a process
that logs in as one of them works as ``holdfast_app``, which may read and write the rows of the
tenant that a statement is for, and nothing more. Which functions over all tenants a login may call,
such as which tenants have work, depends on the roles that it is a member of.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from holdfast.engines.postgres.migrate import grants
from holdfast.engines.postgres.queries import load

APP_ROLE = "holdfast_app"
WORKER_ROLE = "holdfast_worker"
CONSOLIDATOR_ROLE = "holdfast_consolidator"
READER_ROLE = "holdfast_reader"
KEEPER_ROLE = "holdfast_keeper"

_SQL = load("roles")
_CREATE = f"CREATE ROLE {APP_ROLE} NOLOGIN"
_JOIN = f"GRANT {APP_ROLE} TO CURRENT_USER"
_OTHERS = {
    WORKER_ROLE: f"CREATE ROLE {WORKER_ROLE} NOLOGIN IN ROLE {APP_ROLE}",
    CONSOLIDATOR_ROLE: f"CREATE ROLE {CONSOLIDATOR_ROLE} NOLOGIN IN ROLE {APP_ROLE}",
    READER_ROLE: f"CREATE ROLE {READER_ROLE} NOLOGIN",
    KEEPER_ROLE: f"CREATE ROLE {KEEPER_ROLE} NOLOGIN",
}
_READS = (
    f"GRANT USAGE ON SCHEMA holdfast TO {READER_ROLE}",
    f"GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO {READER_ROLE}",
    f"GRANT EXECUTE ON FUNCTION holdfast.documents_holding TO {READER_ROLE}",
)
_TRIES = 20


async def make_roles(connection: Any) -> bool:
    """Create the roles and grant them their rights. Returns ``False`` if the login role may not.

    Safe to repeat: after a migration it grants rights on the new objects. If a superuser runs it,
    ``holdfast_keeper`` becomes the owner of the schema. ::

        await make_roles(connection)
    """
    if not await _made(connection, _make_app_role):
        return False
    await _made(connection, _make_other_roles)
    return True


async def _make_app_role(connection: Any) -> None:
    if not await connection.fetchval(_SQL["exists"], APP_ROLE):
        await connection.execute(_CREATE)
    if not await connection.fetchval(_SQL["is_member"], APP_ROLE):
        await connection.execute(_JOIN)
    for statement in grants(APP_ROLE):
        await connection.execute(statement)


async def _make_other_roles(connection: Any) -> None:
    for role, statement in _OTHERS.items():
        if not await connection.fetchval(_SQL["exists"], role):
            await connection.execute(statement)
    if await connection.fetchval(_SQL["is_installed"]):
        for statement in _READS:
            await connection.execute(statement)
        if await connection.fetchval(_SQL["owned_by_superuser"]):
            await connection.fetchval(_SQL["hand_over"], KEEPER_ROLE)


async def _made(connection: Any, make: Any) -> bool:
    for left in reversed(range(_TRIES)):
        try:
            async with connection.transaction():
                await make(connection)
        except asyncpg.InsufficientPrivilegeError:
            return False
        except (
            asyncpg.DuplicateObjectError,
            asyncpg.UniqueViolationError,
            asyncpg.InternalServerError,
            asyncpg.DeadlockDetectedError,
        ):
            # Roles belong to all databases of a server: another process is creating this one.
            if not left:
                raise
        else:
            return True
    return False


async def login_role(connection: Any) -> tuple[str, bool]:
    """Return the login role, and whether it is a superuser or owns the schema.

    ::

        name, mighty = await login_role(connection)
    """
    name, superuser, owner = await connection.fetchrow(_SQL["login"])
    return name, superuser or owner


async def may_work(connection: Any) -> bool:
    """Return whether the role has the rights on the schema that it needs."""
    return bool(await connection.fetchval(_SQL["may_work"], APP_ROLE))
