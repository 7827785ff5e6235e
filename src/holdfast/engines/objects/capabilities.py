"""What an object store supports, checked when it is opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Whether the kind of store is tested, and whether it supports conditional create.

    >>> Capabilities("s3", tested=True, conditional_create=True).describe()
    'S3, conditional create'
    """

    scheme: str
    tested: bool
    conditional_create: bool
    """Needed for an index of blobs in objects; the bytes of blobs do not need it."""

    def describe(self) -> str:
        """Return one line for people to read."""
        kind = {"s3": "S3", "file": "disk"}.get(self.scheme, self.scheme)
        able = "conditional create" if self.conditional_create else "no conditional create"
        return f"{kind}{'' if self.tested else ' (untested)'}, {able}"
