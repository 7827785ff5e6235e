"""API keys, without their secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

USE_SECONDS = 60.0
"""The precision of the last use of a key: it is written at most once in this time."""


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
    """As ``owner``; also read the tasks of all owners of the tenant, and the service's metrics."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its text, which is shown once, at creation, and never stored.

    >>> ApiKey("k1", "acme", "ana", datetime(2030, 1, 1)).revoked_at is None
    True
    """

    id: str
    tenant: str
    """The tenant whose data its holder can access."""

    owner: str
    """The owner as whom the holder acts."""

    created_at: datetime
    name: str = ""
    """A name for people."""

    revoked_at: datetime | None = None
    scope: KeyScope = KeyScope.OWNER
    ttl_seconds: float | None = None
    """Its lifetime from creation; ``None`` means forever. A rotated key gets the same lifetime."""

    expires_at: datetime | None = None
    """When it expires: ``ttl_seconds`` after its creation, or earlier if it was rotated."""

    last_used_at: datetime | None = None
    """When it was last verified, exact to a minute; ``None`` means never."""


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A new key, with the text that its holder sends.

    >>> made = NewApiKey(ApiKey("k1", "acme", "ana", datetime(2030, 1, 1)), "hf_mfrw2zi_secret")
    >>> made.text in repr(made)
    False
    """

    key: ApiKey
    text: str = field(repr=False)
