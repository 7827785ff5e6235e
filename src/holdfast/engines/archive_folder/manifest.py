"""The manifest of an archive, and the paths of its files.

The manifest contains no paths: the path of a segment follows from its kind and number, and that of
a blob from its digest. So a forged manifest cannot make a reader open another file.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.spi.archive.kinds import BY_NAME, Kind
from holdfast.values.errors import InvalidInputError

VERSION = 1
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 64 << 20
SEGMENT_BYTES = 8 << 20
"""The size in bytes after which the next segment begins."""
MAX_SEGMENT_BYTES = 64 << 20
"""The maximal size in bytes of a segment with more than one record."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of JSON lines."""

    records: int
    bytes: int
    sha256: str


class KindEntry(msgspec.Struct, forbid_unknown_fields=True):
    """The segments of a kind of records, and the digest of all its lines together."""

    segments: list[Segment] = []
    records: int = 0
    sha256: str = ""


class Manifest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The content of an archive: its tenant, its date and its segments."""

    format: Literal["holdfast-archive"] = "holdfast-archive"
    version: int = VERSION
    tenant: str
    created_at: datetime
    complete: bool = False
    kinds: dict[str, KindEntry] = {}

    @property
    def id(self) -> str:
        """A digest of the whole content.

        >>> from datetime import UTC
        >>> len(Manifest(tenant="acme", created_at=datetime(2030, 1, 1, tzinfo=UTC)).id)
        64
        """
        held = [(kind, entry.records, entry.sha256) for kind, entry in sorted(self.kinds.items())]
        return hashlib.sha256(msgspec.json.encode(held)).hexdigest()


def segment_path(folder: Path, kind: Kind, number: int) -> Path:
    """Return the path of a segment.

    >>> segment_path(Path("a"), BY_NAME["events"], 1).as_posix()
    'a/episodes/events-000001.jsonl'
    """
    return folder / kind.contract / f"{kind.name}-{number:06}.jsonl"


def blob_path(folder: Path, sha256: str) -> Path:
    """Return the path of a blob. Raises if ``sha256`` is not a digest.

    >>> blob_path(Path("a"), "../x")
    Traceback (most recent call last):
        ...
    holdfast.values.errors.InvalidInputError: sha256: '../x' is not a SHA-256 digest
    """
    if not _DIGEST.fullmatch(sha256):
        raise InvalidInputError("sha256", f"{sha256[:80]!r} is not a SHA-256 digest")
    return folder / "blobs" / sha256


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a folder.

    ::

        manifest = read_manifest(Path("backup"))
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise InvalidInputError(MANIFEST, f"is longer than {MAX_MANIFEST_BYTES} bytes")
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInputError(
            "folder", f"{folder} is not an archive: it has no {MANIFEST}"
        ) from None
    try:
        found = msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(MANIFEST, f"cannot be read: {error}") from error
    if found.version != VERSION:
        raise InvalidInputError(
            MANIFEST,
            f"has format version {found.version}, and this holdfast reads {VERSION}: upgrade it",
        )
    for kind, entry in found.kinds.items():
        if kind not in BY_NAME:
            raise InvalidInputError(
                MANIFEST, f"has the unknown record kind {kind[:80]!r}: upgrade holdfast"
            )
        _check_entry(kind, entry)
    return found


def _check_entry(kind: str, entry: KindEntry) -> None:
    for segment in entry.segments:
        most = MAX_SEGMENT_BYTES if segment.records > 1 else 4 * MAX_SEGMENT_BYTES
        if not 0 < segment.bytes <= most or segment.records < 1:
            raise InvalidInputError(MANIFEST, f"has a segment of {kind} of impossible size")
    if sum(one.records for one in entry.segments) != entry.records:
        raise InvalidInputError(MANIFEST, f"has two different counts of the records of {kind}")
