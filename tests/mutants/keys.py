from __future__ import annotations

from holdfast.backends.inmemory.keys import InMemoryKeys
from holdfast.kernel.storage.keys import ApiKey
from tests.mutants.registry import mutant


@mutant("keys", "test_a_revoked_key_is_none_at_once", "test_keys_are_still_there_after_a_reopen")
class RevokedKeysStillOpen(InMemoryKeys):
    """A revoked key is marked, and still let in."""

    async def verify(self, text: str) -> ApiKey | None:
        for revoked in await self.list_keys():
            if revoked.revoked_at is not None and revoked in self._data.by_digest.values():
                return revoked
        return await super().verify(text)


@mutant("keys", "test_a_revoked_key_stays_listed")
class RevokedKeysAreForgotten(InMemoryKeys):
    """A revoked key is not listed any more."""

    async def list_keys(self) -> list[ApiKey]:
        return [key for key in await super().list_keys() if key.revoked_at is None]


@mutant("keys", "test_a_key_of_another_tenant_is_verified_too")
class OnlyTheOwnTenant(InMemoryKeys):
    """A key is verified only by the store of its own tenant."""

    async def verify(self, text: str) -> ApiKey | None:
        found = await super().verify(text)
        return found if found is not None and found.tenant == self._tenant else None


@mutant("keys", "test_revoking_a_key_that_is_not_there_or_was_revoked_is_false")
class RevokeAlwaysSaysYes(InMemoryKeys):
    """Whatever is revoked, it was there, unless it is another tenant's."""

    async def revoke(self, key_id: str) -> bool:
        return await super().revoke(key_id) or bool(await self.list_keys())


@mutant("keys", "test_keys_are_listed_by_when_they_were_created")
class ListedByOwner(InMemoryKeys):
    """Keys are listed by owner."""

    async def list_keys(self) -> list[ApiKey]:
        return sorted(await super().list_keys(), key=lambda key: key.owner)
