"""What is known of an API key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

USE_SECONDS = 60.0
"""How exactly the last use of a key is known: it is written at most this often."""


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
