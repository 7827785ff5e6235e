"""Login roles for the processes of a deployment."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import Any

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.roles import APP_ROLE, CONSOLIDATOR_ROLE, READER_ROLE, WORKER_ROLE
from holdfast.values.errors import ConfigError, InvalidInputError

KINDS = {
    "app": APP_ROLE,
    "worker": WORKER_ROLE,
    "consolidator": CONSOLIDATOR_ROLE,
    "reader": READER_ROLE,
}
"""The kinds of processes, and the role that the login of each kind is a member of."""

_SQL = load("roles")
_ITERATIONS = 4096
_LONGEST_NAME = 63


async def make_login(connection: Any, name: str, password: str, kinds: Sequence[str]) -> bool:
    """Create a login role or change its password. Returns ``True`` if the role is new.

    The server gets a SCRAM verifier, so that the password is not in its logs or statistics. ::

        await make_login(connection, "my_worker", password, ["worker"])
    """
    if not 0 < len(name.encode()) <= _LONGEST_NAME or "\0" in name:
        raise InvalidInputError("name", f"must have 1 to {_LONGEST_NAME} bytes")
    if not (password.isascii() and password.isprintable() and password):
        # Clients encode other characters in different ways.
        raise InvalidInputError("password", "must be printable ASCII characters, at least one")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise InvalidInputError(
            "for", f"choose from {', '.join(KINDS)}, not {', '.join(unknown) or 'nothing'}"
        )
    roles = [KINDS[kind] for kind in kinds]
    async with connection.transaction():
        missing = [one for one in roles if not await connection.fetchval(_SQL["exists"], one)]
        if missing:
            raise ConfigError(f"there is no role {missing[0]}: run `holdfast db migrate` first")
        if await connection.fetchval(_SQL["may_more"], name):
            raise ConfigError(
                f"{name} is a superuser or owns the schema: choose another name for the login"
            )
        new = not await connection.fetchval(_SQL["exists"], name)
        for row in await connection.fetch(
            _SQL["login_statements"], name, scram_verifier(password), roles, new
        ):
            await connection.execute(row[0])
    return new


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """Return the SCRAM verifier that Postgres stores for a password (RFC 5803).

    >>> scram_verifier("secret", b"salt")[:33]
    'SCRAM-SHA-256$4096:c2FsdA==$ZgOBn'
    """
    salt = os.urandom(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored = hashlib.sha256(client).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, server64 = (base64.b64encode(one).decode() for one in (salt, stored, server))
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt64}${stored64}:{server64}"
