"""API keys on Postgres."""

from __future__ import annotations

from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.keys import KeyDraft, KeyStorage
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.keys import USE_SECONDS, ApiKey, KeyScope

_SQL = load("keys")


class PostgresKeys(KeyStorage):
    """Stores the API keys of one tenant.

    ::

        keys = PostgresKeys(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self.tenant = tenant
        self._engine = engine

    async def create(self, draft: KeyDraft) -> ApiKey:
        """Store a key, and return it."""
        row = await self._engine.fetchrow(
            _SQL["create"],
            *(self.tenant, draft.digest, draft.id, draft.owner, encode_json(draft.name)),
            *(str(draft.scope), draft.ttl_seconds),
            safe=True,
        )
        return _to_key(row)

    async def verify(self, tenant: str, digest: str) -> ApiKey | None:
        """Return the key with this digest if it is neither revoked nor expired, or ``None``."""
        row = await self._engine.fetchrow(_SQL["verify"], tenant, digest, USE_SECONDS, safe=True)
        return None if row is None else _to_key(row)

    async def live(self, key_id: str) -> ApiKey | None:
        """Return a key by its id if it is neither revoked nor expired, or ``None``."""
        row = await self._engine.fetchrow(_SQL["live"], self.tenant, key_id, safe=True)
        return None if row is None else _to_key(row)

    async def list_keys(self) -> list[ApiKey]:
        """Return all keys."""
        rows = await self._engine.fetch(_SQL["list"], self.tenant, safe=True)
        return [_to_key(row) for row in rows]

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key. Returns ``False`` if there is none, or it was revoked before."""
        # Not retried after a lost answer: the second try would return that there was no key.
        return bool(await self._engine.fetchval(_SQL["revoke"], self.tenant, key_id, safe=False))

    async def rotate(
        self, key_id: str, new_id: str, digest: str, grace_seconds: float
    ) -> ApiKey | None:
        """Replace a valid key by a new one; the old one expires after the grace time."""
        args = (self.tenant, key_id, digest, new_id, grace_seconds)
        row = await self._engine.fetchrow(_SQL["rotate"], *args, safe=True)
        return None if row is None else _to_key(row)

    async def delete(self, key_id: str) -> bool:
        """Delete a revoked or expired key. Returns whether there was one."""
        # Not retried after a lost answer: the second try would return that there was no key.
        return bool(await self._engine.fetchval(_SQL["delete"], self.tenant, key_id, safe=False))


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
