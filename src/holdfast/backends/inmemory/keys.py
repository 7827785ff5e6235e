"""API keys, in process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_id, check_text
from holdfast.kernel.core.ids import new_id
from holdfast.kernel.storage.keys import (
    ApiKey,
    KeyStore,
    NewApiKey,
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

    async def create(self, owner: str, *, name: str = "") -> NewApiKey:
        """Make a key of this tenant for an owner."""
        whose, called = check_id("owner", owner), check_text("name", name)
        key = ApiKey(new_id(), self._tenant, whose, self._engine.now(), name=called)
        text = new_key_text(self._tenant)
        self._data.by_digest[key_digest(text)] = key
        return NewApiKey(key, text)

    async def verify(self, text: str) -> ApiKey | None:
        """The live key of any tenant that this text is, or ``None``."""
        tenant = tenant_of_key(text)
        # Looked up without making a table: anybody may send any tenant's name.
        data = None if tenant is None else self._engine.by_tenant(_Data).get(tenant)
        key = None if data is None else data.by_digest.get(key_digest(text))
        return None if key is None or key.revoked_at else key

    async def list_keys(self) -> list[ApiKey]:
        """All keys of this tenant, revoked ones too, the oldest first."""
        return sorted(self._data.by_digest.values(), key=lambda key: (key.created_at, key.id))

    async def revoke(self, key_id: str) -> bool:
        """End a key for good; whether there was a live one."""
        check_id("key_id", key_id)
        for digest, key in self._data.by_digest.items():
            if key.id == key_id and key.revoked_at is None:
                self._data.by_digest[digest] = replace(key, revoked_at=self._engine.now())
                return True
        return False
