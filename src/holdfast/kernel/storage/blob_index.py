"""A blob whose bytes are kept elsewhere, as an index knows it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.kernel.storage.blob import BlobInfo
from holdfast.values.checks import check_text
from holdfast.values.errors import ConflictError, InvalidInputError

RETRY_SECONDS = 300.0
"""How long a taken blob is hidden before it may be taken again."""


@dataclass(frozen=True, slots=True)
class IndexedBlob:
    """A ref, where its bytes are, and what is known about them.

    >>> from datetime import UTC, datetime
    >>> info = BlobInfo(3, "text/plain", "9f86d0…", datetime.now(UTC), None, pinned=True)
    >>> IndexedBlob("r1", "blobs/4f", info).object_key
    'blobs/4f'
    """

    ref: str
    object_key: str
    info: BlobInfo


def check_sha256(value: object) -> str:
    """A SHA-256 digest as 64 lower-case hexadecimal digits.

    >>> check_sha256("0" * 64) == "0" * 64
    True
    """
    text = check_text("sha256", value)
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InvalidInputError("sha256", "must be 64 lower-case hexadecimal digits")
    return text


def condemned(object_key: str) -> ConflictError:
    """The error of a put whose bytes were swept.

    >>> str(condemned("blobs/4f"))
    "the bytes were swept as nobody's: upload them again"
    """
    text = "the bytes were swept as nobody's: upload them again"
    return ConflictError("object", object_key, text)


def taken_before(ref: str) -> ConflictError:
    """The error of a put whose ref or object belongs to another blob.

    >>> str(taken_before("r1"))
    "the ref 'r1' or its object is taken: use new ones"
    """
    return ConflictError("blob", ref, f"the ref {ref!r} or its object is taken: use new ones")
