"""What is known of an API key, and how its text is made."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from holdfast.values.checks import check_id, check_seconds, check_unreserved
from holdfast.values.errors import InvalidInputError

USE_SECONDS = 60.0
"""How exactly the last use of a key is known: it is written at most this often."""

MAX_KEY_CHARACTERS = 1_024
"""No key is longer: a tenant of 512 bytes, and the secret."""


class KeyScope(StrEnum):
    """What the holder of a key may do.

    >>> KeyScope("reader") is KeyScope.READER
    True
    """

    OWNER = "owner"
    """Read and change what belongs to the key's owner."""

    READER = "reader"
    """Read what belongs to the key's owner, and change nothing."""

    OPERATOR = "operator"
    """As owner; and read the tasks of every owner of the tenant, and the figures of the service."""


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
    scope: KeyScope = KeyScope.OWNER
    ttl_seconds: float | None = None
    """How long it was made to last; ``None`` is for ever. A rotated key lasts as long again."""

    expires_at: datetime | None = None
    """When it ends: ``ttl_seconds`` after it was made, or earlier if it was rotated."""

    last_used_at: datetime | None = None
    """When it was last verified, up to a minute ago; ``None`` is never."""


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A key that was just made, with the text that its holder sends.

    >>> made = NewApiKey(ApiKey("k1", "acme", "ana", datetime(2030, 1, 1)), "hf_mfrw2zi_secret")
    >>> made.text in repr(made)
    False
    """

    key: ApiKey
    text: str = field(repr=False)


def check_key_owner(value: object) -> str:
    """The owner of a new key: an id that the library does not use itself.

    >>> check_key_owner("ana")
    'ana'
    """
    return check_unreserved("owner", check_id("owner", value))


def check_scope(value: object) -> KeyScope:
    """One of the scopes of a key.

    >>> check_scope("reader")
    <KeyScope.READER: 'reader'>
    """
    try:
        return KeyScope(str(value))
    except ValueError:
        names = ", ".join(KeyScope)
        raise InvalidInputError("scope", f"must be one of {names}, not {value!r}") from None


def check_ttl(value: float | None) -> float | None:
    """How long a key lasts; ``None`` is for ever.

    >>> check_ttl(60)
    60
    """
    return None if value is None else check_seconds("ttl_seconds", value)


def check_grace(value: float) -> float:
    """How long a rotated key goes on; 0 ends it at once.

    >>> check_grace(0)
    0
    """
    no_grace = not isinstance(value, bool) and value == 0
    return value if no_grace else check_seconds("grace_seconds", value)


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
