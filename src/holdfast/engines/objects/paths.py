"""The paths in the store: only this module makes object names.

::

    holdfast.json                                  the format version of the store
    TENANT/name                                    the tenant's name, if TENANT is a digest
    TENANT/bytes/3f/3f09…-4.0                      the first part of a blob's bytes
    TENANT/index/refs/9a/9a41…/0                   a ref: what was put
    TENANT/index/refs/9a/9a41…/LIFE.0000000001     a change of it: pinned, unpinned, taken
    TENANT/index/keys/c0/c0de…                     the ref of an object key, or its condemnation
    TENANT/index/due/SLOT/MOMENT-9a41…-TOKEN       when a ref expires
    TENANT/index/taken/SLOT/MOMENT-9a41…-TOKEN     when a ref was taken

A user's text is part of a path only as ``encode`` writes it, or as a digest.
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
"""The size of a part: large enough to be fast, small enough that a stream can hold a few."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OURS = re.compile(
    r"[a-z0-9_=~-]+/(name|bytes/.+|index/(refs|keys|due|taken)/.+)|holdfast\.json", re.DOTALL
)


def encode(text: str) -> str:
    """Return a text as one path segment.

    Lower-case ASCII letters, digits, ``-`` and ``_`` stay; every other byte becomes ``=xx``. A
    result that is empty or longer than 100 characters is replaced by a hash of the text.

    No two texts share a segment, even if the store ignores case in names.

    >>> encode("acme"), encode("../Acme")
    ('acme', '=2e=2e=2f=41cme')
    """
    data = text.encode("utf-8", "surrogatepass")
    piece = "".join(chr(byte) if byte in _PLAIN else f"={byte:02x}" for byte in data)
    return piece if 0 < len(piece) <= _LONGEST else f"~{digest(text)}"


def decode(piece: str) -> str | None:
    """Return the text of a path segment; ``None`` if the segment is a hash.

    >>> decode("=2e=2e=2f=41cme")
    '../Acme'
    """
    if piece.startswith("~"):
        return None
    data = re.sub(rb"=([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), piece.encode())
    return data.decode("utf-8", "surrogatepass")


def is_ours(path: str) -> bool:
    """Return whether this module makes such paths; a bucket may hold the objects of others too.

    >>> is_ours("acme/bytes/3f/3f09-4.0"), is_ours("photos/cat.jpg")
    (True, False)
    """
    return _OURS.fullmatch(path) is not None


def digest(text: str) -> str:
    """Return a name of fixed length for any text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def new_key() -> str:
    """Return a new object key: 160 random bits and the size of the parts, in MiB."""
    return f"{secrets.token_hex(20)}-{PART_BYTES >> 20}"


@dataclass(frozen=True, slots=True)
class Hint:
    """An object name that contains when a ref expires, so that a sweep need not read all refs.

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
        """Return a new, unique hint."""
        return cls(kind, moment, ref_digest, secrets.token_hex(8))

    @classmethod
    def read(cls, name: str) -> Hint:
        """Parse the name of a hint."""
        kind, _, last = name.split("/")
        micros, ref_digest, token = last.split("-")
        return cls(kind, _EPOCH + timedelta(microseconds=int(micros)), ref_digest, token)

    @property
    def name(self) -> str:
        """The hint's path below the index."""
        micros = (self.moment - _EPOCH) // timedelta(microseconds=1)
        last = f"{micros:017d}-{self.ref_digest}-{self.token}"
        return f"{self.kind}/{slot(self.moment)}/{last}"


def slot(moment: datetime) -> str:
    """Return the ten-minute slot of a time; the names of slots sort by time."""
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
        """Return the path of one part of an object key that ``new_key`` made."""
        return f"{self.bytes}/{key[:2]}/{key}.{number}"

    def parts(self, key: str, size_bytes: int) -> list[str]:
        """Return the paths of a blob's parts; an empty blob has one too, so that it is listed."""
        count = max(1, -(-size_bytes // part_bytes(key)))
        return [self.part(key, number) for number in range(count)]

    def ref(self, ref_digest: str) -> str:
        """Return the folder of a ref."""
        return f"{self.index}/refs/{ref_digest[:2]}/{ref_digest}"

    def claim(self, object_key: str) -> str:
        """Return the path of the claim of an object key."""
        name = digest(object_key)
        return f"{self.index}/keys/{name[:2]}/{name}"

    def hint(self, name: str) -> str:
        """Return the path of a hint."""
        return f"{self.index}/{name}"


def part_bytes(key: str) -> int:
    """Return the size of an object's parts, from its key: ``PART_BYTES`` may have changed since.

    >>> part_bytes("3f09-4") == 4 << 20
    True
    """
    return int(key.rpartition("-")[2]) << 20
