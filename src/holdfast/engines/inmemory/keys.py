"""API keys, in process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.keys import KeyDraft, KeyStorage
from holdfast.values.keys import USE_SECONDS, ApiKey


@dataclass
class _Data:
    by_digest: dict[str, ApiKey] = field(default_factory=dict)


class InMemoryKeys(KeyStorage):
    """Stores API keys in a dict, by digest.

    >>> keys = InMemoryKeys(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self.tenant = tenant
        self._engine = engine
        self._data = engine.table(tenant, _Data)

    async def create(self, draft: KeyDraft) -> ApiKey:
        """Store a key, and return it."""
        now, ttl = self._engine.now(), draft.ttl_seconds
        key = ApiKey(
            draft.id,
            self.tenant,
            draft.owner,
            now,
            name=draft.name,
            scope=draft.scope,
            ttl_seconds=ttl,
            expires_at=None if ttl is None else now + timedelta(seconds=ttl),
        )
        self._data.by_digest[draft.digest] = key
        return key

    async def verify(self, tenant: str, digest: str) -> ApiKey | None:
        """Return the key with this digest if it is neither revoked nor expired, or ``None``."""
        # Do not create a table here: a caller may send any name as the tenant.
        data = self._engine.by_tenant(_Data).get(tenant)
        key = None if data is None else data.by_digest.get(digest)
        if data is None or key is None or not self._live(key):
            return None
        now, used = self._engine.now(), key.last_used_at
        if used is None or now - used >= timedelta(seconds=USE_SECONDS):
            data.by_digest[digest] = replace(key, last_used_at=now)
        return key

    async def live(self, key_id: str) -> ApiKey | None:
        """Return a key by its id if it is neither revoked nor expired, or ``None``."""
        _, key = self._found(key_id)
        return key if key is not None and self._live(key) else None

    async def list_keys(self) -> list[ApiKey]:
        """Return all keys."""
        return sorted(self._data.by_digest.values(), key=lambda key: (key.created_at, key.id))

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key. Returns ``False`` if there is none, or it was revoked before."""
        digest, key = self._found(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self._data.by_digest[digest] = replace(key, revoked_at=self._engine.now())
        return True

    async def rotate(
        self, key_id: str, new_id: str, digest: str, grace_seconds: float
    ) -> ApiKey | None:
        """Replace a valid key by a new one; the old one expires after the grace time."""
        old_digest, old = self._found(key_id)
        if old is None or not self._live(old):
            return None
        draft = KeyDraft(new_id, digest, old.owner, old.name, old.scope, old.ttl_seconds)
        made = await self.create(draft)
        end = self._engine.now() + timedelta(seconds=grace_seconds)
        ends = end if old.expires_at is None else min(old.expires_at, end)
        self._data.by_digest[old_digest] = replace(old, expires_at=ends)
        return made

    async def delete(self, key_id: str) -> bool:
        """Delete a revoked or expired key. Returns whether there was one."""
        digest, key = self._found(key_id)
        if key is None or self._live(key):
            return False
        del self._data.by_digest[digest]
        return True

    def _found(self, key_id: str) -> tuple[str, ApiKey | None]:
        keys = self._data.by_digest.items()
        return next(((digest, key) for digest, key in keys if key.id == key_id), ("", None))

    def _live(self, key: ApiKey) -> bool:
        ended = key.expires_at is not None and key.expires_at <= self._engine.now()
        return key.revoked_at is None and not ended
