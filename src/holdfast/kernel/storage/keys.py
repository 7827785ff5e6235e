"""API keys: who may call a service, as whom."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from abc import abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from holdfast.kernel.core.checks import check_id
from holdfast.kernel.core.errors import InvalidInputError

MAX_KEY_CHARACTERS = 1_024
"""No key is longer: a tenant of 512 bytes, and the secret."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key; the key itself is shown once, when it is made, and never stored.

    >>> ApiKey("k1", "acme", "ana", datetime(2030, 1, 1)).revoked_at is None
    True
    """

    id: str
    tenant: str
    """Whose data its holder reaches."""

    owner: str
    """As whom the holder acts there."""

    created_at: datetime
    name: str = ""
    """What people call it."""

    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A key that was just made, with the text that its holder sends.

    >>> NewApiKey(ApiKey("k1", "acme", "ana", datetime(2030, 1, 1)), "hf_mfrw2zi_secret")
    NewApiKey(key=ApiKey(id='k1', tenant='acme', owner='ana', \
created_at=datetime.datetime(2030, 1, 1, 0, 0), name='', revoked_at=None))
    """

    key: ApiKey
    text: str = field(repr=False)


@runtime_checkable
class KeyStore(Protocol):
    """The API keys of a tenant.

    A key is 256 random bits, so that its plain SHA-256 can be stored: there is nothing to guess.
    Its text carries the tenant, so that whoever checks it knows where to look.

    Promises:

    - a key that was created is verified as its tenant and owner
    - every key is new
    - a key of another tenant is verified too
    - an unknown key is none
    - a text that is no key is none
    - a key whose tenant was exchanged is none
    - a revoked key is none at once
    - a revoked key stays listed
    - revoking a key that is not there or was revoked is false
    - keys are listed by when they were created
    - one tenant neither lists nor revokes another's keys
    - an owner that is empty or no id is refused
    - a key's name comes back exactly, however odd
    - 20 concurrent creates make 20 keys
    - keys are still there after a reopen
    """

    @abstractmethod
    async def create(self, owner: str, *, name: str = "") -> NewApiKey:
        """Make a key of this tenant for an owner; its text is to be had only now.

        ::

            made = await state.keys.create("ana", name="laptop")
            print(made.text)
        """
        ...

    @abstractmethod
    async def verify(self, text: str) -> ApiKey | None:
        """The live key of any tenant that this text is, or ``None``.

        ::

            key = await state.keys.verify(text)
            acme = state.for_tenant(key.tenant)
        """
        ...

    @abstractmethod
    async def list_keys(self) -> list[ApiKey]:
        """All keys of this tenant, revoked ones too, the oldest first.

        ::

            for key in await state.keys.list_keys():
                print(key.id, key.owner)
        """
        ...

    @abstractmethod
    async def revoke(self, key_id: str) -> bool:
        """End a key for good; whether there was a live one.

        ::

            await state.keys.revoke(key.id)
        """
        ...


def new_key_text(tenant: str) -> str:
    """The text of a new key of a tenant.

    >>> tenant_of_key(new_key_text("acme"))
    'acme'
    """
    where = base64.b32encode(tenant.encode()).decode("ascii").rstrip("=").lower()
    return f"hf_{where}_{secrets.token_urlsafe(32)}"


def tenant_of_key(text: object) -> str | None:
    """The tenant that a key is of by its own account; ``None`` for what is no key.

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
    """What is stored of a key.

    >>> len(key_digest("hf_mfrw2zi_secret"))
    64
    """
    return hashlib.sha256(text.encode()).hexdigest()
