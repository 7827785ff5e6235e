from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from holdfast.engines.inmemory.keys import InMemoryKeys
from holdfast.values.keys import ApiKey, KeyScope
from tests.mutants.registry import mutant


@mutant("keys", "test_a_revoked_key_is_none_at_once", "test_keys_are_still_there_after_a_reopen")
class RevokedKeysStillOpen(InMemoryKeys):
    """A revoked key is marked, and still let in."""

    async def verify(self, tenant: str, digest: str) -> ApiKey | None:
        for revoked in await self.list_keys():
            if revoked.revoked_at is not None and revoked in self._data.by_digest.values():
                return revoked
        return await super().verify(tenant, digest)


@mutant("keys", "test_a_revoked_key_stays_listed")
class RevokedKeysAreForgotten(InMemoryKeys):
    """A revoked key is not listed any more."""

    async def list_keys(self) -> list[ApiKey]:
        return [key for key in await super().list_keys() if key.revoked_at is None]


@mutant("keys", "test_a_key_of_another_tenant_is_verified_too")
class OnlyTheOwnTenant(InMemoryKeys):
    """A key is verified only by the store of its own tenant."""

    async def verify(self, tenant: str, digest: str) -> ApiKey | None:
        found = await super().verify(tenant, digest)
        return found if found is not None and found.tenant == self.tenant else None


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


@mutant(
    "keys",
    "test_an_expired_key_is_none",
    "test_the_old_key_ends_after_the_grace_time",
    "test_a_rotated_key_that_would_have_expired_earlier_still_does",
    "test_a_key_that_is_not_there_was_revoked_or_has_expired_is_not_rotated",
    "test_a_revoked_or_expired_key_can_be_deleted",
)
class NothingExpires(InMemoryKeys):
    """A key stays live after its end."""

    def _live(self, key: ApiKey) -> bool:
        return key.revoked_at is None


@mutant("keys", "test_the_last_use_of_a_key_is_known_to_the_minute")
class EveryUseIsWritten(InMemoryKeys):
    """Each verify writes the last use."""

    async def verify(self, tenant: str, digest: str) -> ApiKey | None:
        found = await super().verify(tenant, digest)
        for stored, key in self._data.by_digest.items():
            if found is not None and key.id == found.id:
                self._data.by_digest[stored] = replace(key, last_used_at=self._engine.now())
        return found


@mutant("keys", "test_a_rotated_key_that_would_have_expired_earlier_still_does")
class GraceExtends(InMemoryKeys):
    """A rotated key lives as long as its grace time, whatever its own end is."""

    async def rotate(
        self, key_id: str, new_id: str, digest: str, grace_seconds: float
    ) -> ApiKey | None:
        made = await super().rotate(key_id, new_id, digest, grace_seconds)
        end = self._engine.now() + timedelta(seconds=grace_seconds)
        for stored, key in self._data.by_digest.items():
            if key.id == key_id:
                self._data.by_digest[stored] = replace(key, expires_at=end)
        return made


@mutant("keys", "test_a_rotated_key_has_the_owner_name_scope_and_lifetime_of_the_old_one")
class RotatedKeysAreOwners(InMemoryKeys):
    """A rotated key has the default scope."""

    async def rotate(
        self, key_id: str, new_id: str, digest: str, grace_seconds: float
    ) -> ApiKey | None:
        made = await super().rotate(key_id, new_id, digest, grace_seconds)
        if made is None:
            return None
        self._data.by_digest[digest] = replace(made, scope=KeyScope.OWNER)
        return self._data.by_digest[digest]


@mutant("keys", "test_a_live_key_and_one_that_is_not_there_are_not_deleted")
class LiveKeysAreDeleted(InMemoryKeys):
    """A key is deleted whether it is live or not."""

    async def delete(self, key_id: str) -> bool:
        await self.revoke(key_id)
        return await super().delete(key_id)
