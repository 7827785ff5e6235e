"""API keys on Postgres."""

from __future__ import annotations

from typing import Any

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id, check_text
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.core.errors import NotFoundError
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.keys import (
    USE_SECONDS,
    ApiKey,
    KeyScope,
    KeyStore,
    NewApiKey,
    check_grace,
    check_key_owner,
    check_scope,
    check_ttl,
    key_digest,
    new_key_text,
    tenant_of_key,
)

_SQL = load("keys")


class PostgresKeys(KeyStore):
    """``KeyStore`` on Postgres.

    ::

        keys = PostgresKeys(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def create(
        self,
        owner: str,
        *,
        name: str = "",
        scope: KeyScope | str = KeyScope.OWNER,
        ttl_seconds: float | None = None,
    ) -> NewApiKey:
        """Make a key of this tenant for an owner."""
        whose, called = check_key_owner(owner), check_text("name", name)
        text = new_key_text(self._tenant)
        row = await self._engine.fetchrow(
            _SQL["create"],
            *(self._tenant, key_digest(text), new_id(), whose, encode_json(called)),
            *(str(check_scope(scope)), check_ttl(ttl_seconds)),
            safe=True,
        )
        return NewApiKey(_to_key(row), text)

    async def verify(self, text: str) -> ApiKey | None:
        """The live key of any tenant that this text is, or ``None``."""
        tenant = tenant_of_key(text)
        if tenant is None:
            return None
        row = await self._engine.fetchrow(
            _SQL["verify"], tenant, key_digest(text), USE_SECONDS, safe=True
        )
        return None if row is None else _to_key(row)

    async def list_keys(self) -> list[ApiKey]:
        """All keys of this tenant, revoked ones too, the oldest first."""
        rows = await self._engine.fetch(_SQL["list"], self._tenant, safe=True)
        return [_to_key(row) for row in rows]

    async def revoke(self, key_id: str) -> bool:
        """End a key for good; whether there was one that had not been revoked."""
        key = check_id("key_id", key_id)
        # Not retried after a lost answer: the second try would say that there was none.
        return bool(await self._engine.fetchval(_SQL["revoke"], self._tenant, key, safe=False))

    async def rotate(self, key_id: str, *, grace_seconds: float = 0.0) -> NewApiKey:
        """Make a key like a live one, which ends ``grace_seconds`` later."""
        old, grace = check_id("key_id", key_id), check_grace(grace_seconds)
        text = new_key_text(self._tenant)
        row = await self._engine.fetchrow(
            _SQL["rotate"], self._tenant, old, key_digest(text), new_id(), grace, safe=True
        )
        if row is None:
            raise NotFoundError("key", key_id)
        return NewApiKey(_to_key(row), text)

    async def delete(self, key_id: str) -> bool:
        """Remove a key that was revoked or has expired; whether there was such a key."""
        key = check_id("key_id", key_id)
        # Not retried after a lost answer: the second try would say that there was none.
        return bool(await self._engine.fetchval(_SQL["delete"], self._tenant, key, safe=False))


def _to_key(row: Any) -> ApiKey:
    return ApiKey(
        row["id"],
        row["tenant"],
        row["owner"],
        row["created_at"],
        name=decode_json(row["name"]),
        revoked_at=row["revoked_at"],
        scope=KeyScope(row["scope"]),
        ttl_seconds=row["ttl_seconds"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
    )
