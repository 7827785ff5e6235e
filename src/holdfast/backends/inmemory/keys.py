"""API keys, in process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_id, check_text
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


@dataclass
class _Data:
    by_digest: dict[str, ApiKey] = field(default_factory=dict)


class InMemoryKeys(KeyStore):
    """``KeyStore`` in a dict, by digest.

    >>> keys = InMemoryKeys(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant
        self._data = engine.table(tenant, _Data)

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
        return self._add(whose, called, check_scope(scope), check_ttl(ttl_seconds))

    def _add(self, owner: str, name: str, scope: KeyScope, ttl: float | None) -> NewApiKey:
        now = self._engine.now()
        key = ApiKey(
            new_id(),
            self._tenant,
            owner,
            now,
            name=name,
            scope=scope,
            ttl_seconds=ttl,
            expires_at=None if ttl is None else now + timedelta(seconds=ttl),
        )
        text = new_key_text(self._tenant)
        self._data.by_digest[key_digest(text)] = key
        return NewApiKey(key, text)

    async def verify(self, text: str) -> ApiKey | None:
        """The live key of any tenant that this text is, or ``None``."""
        tenant = tenant_of_key(text)
        # Looked up without making a table: anybody may send any tenant's name.
        data = None if tenant is None else self._engine.by_tenant(_Data).get(tenant)
        digest = "" if data is None else key_digest(text)
        key = None if data is None else data.by_digest.get(digest)
        if data is None or key is None or not self._live(key):
            return None
        now, used = self._engine.now(), key.last_used_at
        if used is None or now - used >= timedelta(seconds=USE_SECONDS):
            data.by_digest[digest] = replace(key, last_used_at=now)
        return key

    async def list_keys(self) -> list[ApiKey]:
        """All keys of this tenant, revoked ones too, the oldest first."""
        return sorted(self._data.by_digest.values(), key=lambda key: (key.created_at, key.id))

    async def revoke(self, key_id: str) -> bool:
        """End a key for good; whether there was one that had not been revoked."""
        digest, key = self._found(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self._data.by_digest[digest] = replace(key, revoked_at=self._engine.now())
        return True

    async def rotate(self, key_id: str, *, grace_seconds: float = 0.0) -> NewApiKey:
        """Make a key like a live one, which ends ``grace_seconds`` later."""
        grace = check_grace(grace_seconds)
        digest, key = self._found(key_id)
        if key is None or not self._live(key):
            raise NotFoundError("key", key_id)
        made = self._add(key.owner, key.name, key.scope, key.ttl_seconds)
        end = self._engine.now() + timedelta(seconds=grace)
        ends = end if key.expires_at is None else min(key.expires_at, end)
        self._data.by_digest[digest] = replace(key, expires_at=ends)
        return made

    async def delete(self, key_id: str) -> bool:
        """Remove a key that was revoked or has expired; whether there was such a key."""
        digest, key = self._found(key_id)
        if key is None or self._live(key):
            return False
        del self._data.by_digest[digest]
        return True

    def _found(self, key_id: str) -> tuple[str, ApiKey | None]:
        check_id("key_id", key_id)
        keys = self._data.by_digest.items()
        return next(((digest, key) for digest, key in keys if key.id == key_id), ("", None))

    def _live(self, key: ApiKey) -> bool:
        ended = key.expires_at is not None and key.expires_at <= self._engine.now()
        return key.revoked_at is None and not ended
