"""Checks of blobs: what is stored, and what is read."""

from __future__ import annotations

from holdfast.values.blobs import BlobInfo
from holdfast.values.checks import check_flag, check_seconds, check_text
from holdfast.values.errors import CodecError, InvalidInputError

MAX_CONTENT_TYPE = 255


def check_lifetime(*, pinned: object, ttl_seconds: object, default: float) -> float | None:
    """Return the time to live of a new blob, in seconds; ``None`` if it is pinned.

    >>> check_lifetime(pinned=False, ttl_seconds=None, default=60)
    60
    """
    if check_flag("pinned", pinned) and ttl_seconds is not None:
        raise InvalidInputError(
            "ttl_seconds", "cannot be combined with pinned: a pinned blob does not expire"
        )
    window = check_seconds("ttl_seconds", default if ttl_seconds is None else ttl_seconds)
    return None if pinned else window


def check_content_type(value: object) -> str:
    """Check a content type: 1 to 255 characters without control characters.

    >>> check_content_type("application/pdf")
    'application/pdf'
    """
    text = check_text("content_type", value)
    if not 1 <= len(text) <= MAX_CONTENT_TYPE:
        raise InvalidInputError(
            "content_type", f"must have 1 to {MAX_CONTENT_TYPE} characters, not {len(text)}"
        )
    for char in text:
        if char < " " or "\x7f" <= char <= "\x9f":
            raise InvalidInputError(
                "content_type", f"must not contain the control character {char!r}"
            )
    return text


def check_data(value: object) -> bytes:
    """Return the bytes of a blob; text is encoded as UTF-8.

    >>> len(check_data("é"))
    2
    """
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return check_text("data", value).encode()
    raise InvalidInputError("data", f"must be bytes or text, not {type(value).__name__}")


def check_chunk(at: int, value: object) -> bytes:
    """Check one chunk of a stream; ``at`` is its index.

    >>> check_chunk(0, b"abc")
    b'abc'
    """
    if not isinstance(value, bytes):
        raise InvalidInputError(f"chunks[{at}]", f"must be bytes, not {type(value).__name__}")
    return bytes(value)


def check_digest(ref: str, info: BlobInfo, sha256: str) -> None:
    """Raise ``CodecError`` if the digest of the bytes is not the stored one.

    >>> from datetime import UTC, datetime
    >>> info = BlobInfo(0, "a/b", "e3b0c4…", datetime(2030, 1, 1, tzinfo=UTC), None, pinned=True)
    >>> check_digest("r1", info, "e3b0c4…")
    """
    if sha256 != info.sha256:
        raise CodecError(f"the bytes of blob {ref!r} are not those that were stored")


def check_reach(ref: str, *, has_bytes: int, needs_bytes: int) -> None:
    """Raise ``CodecError`` if a blob has fewer bytes than the read needs.

    >>> check_reach("r1", has_bytes=3, needs_bytes=3)
    """
    if has_bytes < needs_bytes:
        raise CodecError(f"the blob {ref!r} is shorter than it was stored")
