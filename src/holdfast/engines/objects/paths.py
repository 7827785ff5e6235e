"""Where things are in the store: the only place that makes object names.

::

    holdfast.json                                  the format of what is stored here
    TENANT/name                                    the tenant's name, where TENANT cannot say it
    TENANT/bytes/3f/3f09…-4.0                      the first part of a blob's bytes
    TENANT/index/refs/9a/9a41…/0                   a ref: what was put
    TENANT/index/refs/9a/9a41…/LIFE.0000000001     a change of it: pinned, unpinned, taken
    TENANT/index/keys/c0/c0de…                     who uses an object key, or that nobody may
    TENANT/index/due/SLOT/MOMENT-9a41…-TOKEN       when a ref expires
    TENANT/index/taken/SLOT/MOMENT-9a41…-TOKEN     when a ref was taken

Text of the user's is a path piece only as ``encode`` writes it, or as a digest.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MARKER = "holdfast.json"
SLOT_SECONDS = 600
PART_BYTES = 4 << 20
"""Large enough to be quick over a network, small enough for a stream to hold a few."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode(text: str) -> str:
    """Any text as one path piece: lower-case letters stay, the rest is escaped, long is hashed.

    No two texts share a piece, also where names are compared without regard to case.

    >>> encode("acme"), encode("../Acme")
    ('acme', '=2e=2e=2f=41cme')
    """
    data = text.encode("utf-8", "surrogatepass")
    piece = "".join(chr(byte) if byte in _PLAIN else f"={byte:02x}" for byte in data)
    return piece if 0 < len(piece) <= _LONGEST else f"~{digest(text)}"


def decode(piece: str) -> str | None:
    """The text of a piece; ``None`` for a hashed one.

    >>> decode("=2e=2e=2f=41cme")
    '../Acme'
    """
    if piece.startswith("~"):
        return None
    data = re.sub(rb"=([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), piece.encode())
    return data.decode("utf-8", "surrogatepass")


def digest(text: str) -> str:
    """A name of fixed length for any text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def new_key() -> str:
    """A new object key: 160 random bits and the size of the parts, in MiB."""
    return f"{secrets.token_hex(20)}-{PART_BYTES >> 20}"


@dataclass(frozen=True, slots=True)
class Hint:
    """A name that says when a ref is due, so that whoever removes need not read them all.

    >>> hint = Hint.at("due", datetime(2030, 1, 1, tzinfo=UTC), "9a41")
    >>> Hint.read(hint.name) == hint
    True
    """

    kind: str
    moment: datetime
    ref_digest: str
    token: str

    @classmethod
    def at(cls, kind: str, moment: datetime, ref_digest: str) -> Hint:
        """A new one, unlike any other."""
        return cls(kind, moment, ref_digest, secrets.token_hex(8))

    @classmethod
    def read(cls, name: str) -> Hint:
        """The hint of a name."""
        kind, _, last = name.split("/")
        micros, ref_digest, token = last.split("-")
        return cls(kind, _EPOCH + timedelta(microseconds=int(micros)), ref_digest, token)

    @property
    def name(self) -> str:
        """Its path below the index."""
        micros = (self.moment - _EPOCH) // timedelta(microseconds=1)
        last = f"{micros:017d}-{self.ref_digest}-{self.token}"
        return f"{self.kind}/{slot(self.moment)}/{last}"


def slot(moment: datetime) -> str:
    """The ten minutes that a moment lies in; names of slots sort as the moments do."""
    return f"{(moment - _EPOCH) // timedelta(seconds=SLOT_SECONDS):09d}"


class Paths:
    """The paths of one tenant.

    >>> Paths("acme").part("3f09-4", 0)
    'acme/bytes/3f/3f09-4.0'
    """

    def __init__(self, tenant: str) -> None:
        self.root = encode(tenant)
        self.name = f"{self.root}/name" if self.root.startswith("~") else None
        self.bytes = f"{self.root}/bytes"
        self.index = f"{self.root}/index"

    def part(self, key: str, number: int) -> str:
        """One part of the bytes of an object key that ``new_key`` made."""
        return f"{self.bytes}/{key[:2]}/{key}.{number}"

    def parts(self, key: str, size_bytes: int) -> list[str]:
        """All parts of a blob; an empty one has a part too, so that every blob is seen."""
        count = max(1, -(-size_bytes // part_bytes(key)))
        return [self.part(key, number) for number in range(count)]

    def ref(self, ref_digest: str) -> str:
        """The folder of a ref."""
        return f"{self.index}/refs/{ref_digest[:2]}/{ref_digest}"

    def claim(self, object_key: str) -> str:
        """Who uses an object key."""
        name = digest(object_key)
        return f"{self.index}/keys/{name[:2]}/{name}"

    def hint(self, name: str) -> str:
        """A hint."""
        return f"{self.index}/{name}"


def part_bytes(key: str) -> int:
    """How large the parts of an object are: its key says so, whatever is usual now.

    >>> part_bytes("3f09-4") == 4 << 20
    True
    """
    return int(key.rpartition("-")[2]) << 20
