"""API keys, which identify the callers of a service."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets

from holdfast.spi.keys import KeyDraft, KeyStorage
from holdfast.values.checks import check_id, check_seconds, check_text, check_unreserved
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.ids import new_id
from holdfast.values.keys import ApiKey, KeyScope, NewApiKey

MAX_KEY_CHARACTERS = 1_024
"""No key is longer: a tenant of 512 bytes, and the secret."""


class KeyStore:
    """The API keys of a tenant.

    A key is 256 random bits. It cannot be guessed, so a plain SHA-256 of it is stored. Its text
    contains the tenant, so that ``verify`` knows in which tenant to look.

    Promises:

    - a key that was created is verified as its tenant and owner
    - every key is new
    - a key of another tenant is verified too
    - an unknown key is none
    - a live key of the tenant is found by its id, and no other
    - a text that is no key is none
    - a key whose tenant was exchanged is none
    - a key has the scope that it was created with
    - a scope that is none of the three is refused
    - an expired key is none
    - a time to live that is no span of time is refused
    - the last use of a key is known to the minute
    - a revoked key is none at once
    - a revoked key stays listed
    - revoking a key that is not there or was revoked is false
    - a rotated key has the owner, name, scope and lifetime of the old one
    - the old key ends after the grace time
    - a rotated key that would have expired earlier still does
    - a key that is not there, was revoked or has expired is not rotated
    - a revoked or expired key can be deleted
    - a live key and one that is not there are not deleted
    - keys are listed by when they were created
    - one tenant neither lists, revokes, rotates nor deletes another's keys
    - an owner that is empty or no id is refused
    - an owner that begins with holdfast. is refused
    - a key's name comes back exactly, however odd
    - 20 concurrent creates make 20 keys
    - keys are still there after a reopen
    """

    def __init__(self, storage: KeyStorage) -> None:
        self._storage = storage

    async def create(
        self,
        owner: str,
        *,
        name: str = "",
        scope: KeyScope | str = KeyScope.OWNER,
        ttl_seconds: float | None = None,
    ) -> NewApiKey:
        """Create a key of this tenant for an owner. The key's text is returned only here.

        ``owner`` must not begin with ``holdfast.``. ::

            made = await state.keys.create("ana", name="laptop", ttl_seconds=30 * 86_400)
            print(made.text)
        """
        whose = check_key_owner(owner)
        called = check_text("name", name)
        allowed, ttl = check_scope(scope), check_ttl(ttl_seconds)
        text = new_key_text(self._storage.tenant)
        draft = KeyDraft(new_id(), key_digest(text), whose, called, allowed, ttl)
        return NewApiKey(await self._storage.create(draft), text)

    async def verify(self, text: str) -> ApiKey | None:
        """Return the key with this text, of any tenant; ``None`` if unknown, revoked or expired.

        It updates ``last_used_at`` at most once a minute; the returned key has the earlier value.
        ::

            key = await state.keys.verify(text)
            acme = state.for_tenant(key.tenant)
        """
        tenant = tenant_of_key(text)
        return None if tenant is None else await self._storage.verify(tenant, key_digest(text))

    async def live(self, key_id: str) -> ApiKey | None:
        """Return this tenant's key with this id; ``None`` if unknown, revoked or expired.

        It does not count as a use of the key.

        ::

            if await state.keys.live(session.key_id) is None:
                raise PermissionError
        """
        return await self._storage.live(check_id("key_id", key_id))

    async def list_keys(self) -> list[ApiKey]:
        """Return all keys of this tenant, also revoked ones, the oldest first.

        ::

            for key in await state.keys.list_keys():
                print(key.id, key.owner)
        """
        return await self._storage.list_keys()

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key permanently. Returns whether there was one that had not been revoked.

        ::

            await state.keys.revoke(key.id)
        """
        return await self._storage.revoke(check_id("key_id", key_id))

    async def rotate(self, key_id: str, *, grace_seconds: float = 0.0) -> NewApiKey:
        """Create a replacement for a key. The old key expires ``grace_seconds`` later.

        Raises ``NotFoundError`` if the key is unknown, revoked or expired. ::

            made = await state.keys.rotate(key.id, grace_seconds=3600)
        """
        old, grace = check_id("key_id", key_id), check_grace(grace_seconds)
        text = new_key_text(self._storage.tenant)
        made = await self._storage.rotate(old, new_id(), key_digest(text), grace)
        if made is None:
            raise NotFoundError("key", key_id)
        return NewApiKey(made, text)

    async def delete(self, key_id: str) -> bool:
        """Delete a key that was revoked or has expired. Returns whether there was such a key.

        ::

            await state.keys.delete(key.id)
        """
        return await self._storage.delete(check_id("key_id", key_id))


def check_key_owner(value: object) -> str:
    """Check the owner of a new key: an id that is not reserved for the library.

    >>> check_key_owner("ana")
    'ana'
    """
    return check_unreserved("owner", check_id("owner", value))


def check_scope(value: object) -> KeyScope:
    """Check the scope of a key.

    >>> check_scope("reader")
    <KeyScope.READER: 'reader'>
    """
    try:
        return KeyScope(str(value))
    except ValueError:
        names = ", ".join(KeyScope)
        raise InvalidInputError("scope", f"must be one of {names}, not {value!r}") from None


def check_ttl(value: float | None) -> float | None:
    """Check how long a key lasts; ``None`` means forever.

    >>> check_ttl(60)
    60
    """
    return None if value is None else check_seconds("ttl_seconds", value)


def check_grace(value: float) -> float:
    """Check how long a rotated key stays valid; 0 ends it at once.

    >>> check_grace(0)
    0
    """
    no_grace = not isinstance(value, bool) and value == 0
    return value if no_grace else check_seconds("grace_seconds", value)


def new_key_text(tenant: str) -> str:
    """Return the text of a new key of a tenant.

    >>> tenant_of_key(new_key_text("acme"))
    'acme'
    """
    where = base64.b32encode(tenant.encode()).decode("ascii").rstrip("=").lower()
    return f"hf_{where}_{secrets.token_urlsafe(32)}"


def tenant_of_key(text: object) -> str | None:
    """Return the tenant that a key's text names, unverified; ``None`` if it is not a key.

    >>> tenant_of_key("hf_mfrw2zi_secret"), tenant_of_key("Bearer")
    ('acme', None)
    """
    if not isinstance(text, str) or len(text) > MAX_KEY_CHARACTERS or not text.isascii():
        return None
    mark, _, rest = text.partition("_")
    where, _, secret = rest.partition("_")
    if mark != "hf" or not secret or where != where.lower():
        return None
    try:
        padded = where.upper() + "=" * (-len(where) % 8)
        return check_id("tenant", base64.b32decode(padded).decode())
    except (binascii.Error, UnicodeDecodeError, InvalidInputError):
        return None


def key_digest(text: str) -> str:
    """Return the digest of a key, which is stored instead of it.

    >>> len(key_digest("hf_mfrw2zi_secret"))
    64
    """
    return hashlib.sha256(text.encode()).hexdigest()
