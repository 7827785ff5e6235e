"""The role that the stores use instead of a superuser or the owner of the schema.

The owner of the tables can drop them, and a superuser can do anything to the server. So a process
that logs in as one of them works as ``holdfast_app``, which may read and write rows and nothing
more.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from holdfast.engines.postgres.migrate import grants
from holdfast.engines.postgres.queries import load

APP_ROLE = "holdfast_app"
_SQL = load("app_role")
_CREATE = f"CREATE ROLE {APP_ROLE} NOLOGIN"
_JOIN = f"GRANT {APP_ROLE} TO CURRENT_USER"
_TRIES = 20


async def make_app_role(connection: Any) -> bool:
    """Create the role and grant it the schema; ``False`` if the login role may not do that.

    Safe to repeat: after a migration it grants the new objects. ::

        await make_app_role(connection)
    """
    for left in reversed(range(_TRIES)):
        try:
            async with connection.transaction():
                if not await connection.fetchval(_SQL["exists"], APP_ROLE):
                    await connection.execute(_CREATE)
                if not await connection.fetchval(_SQL["is_member"], APP_ROLE):
                    await connection.execute(_JOIN)
                for statement in grants(APP_ROLE):
                    await connection.execute(statement)
        except asyncpg.InsufficientPrivilegeError:
            return False
        except (
            asyncpg.DuplicateObjectError,
            asyncpg.UniqueViolationError,
            asyncpg.InternalServerError,
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
    """Whether the role has the rights on the schema that it needs."""
    return bool(await connection.fetchval(_SQL["may_work"], APP_ROLE))
