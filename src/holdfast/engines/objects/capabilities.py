"""What an object store can do: asked when it is opened, explained where it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Whether the kind of store is tested, and whether two who create one object clash.

    >>> Capabilities("s3", tested=True, conditional_create=True).describe()
    'S3, conditional create'
    """

    scheme: str
    tested: bool
    conditional_create: bool
    """Needed to keep the index of blobs in objects; the bytes alone do without it."""

    def describe(self) -> str:
        """One line for a person."""
        kind = {"s3": "S3", "file": "disk"}.get(self.scheme, self.scheme)
        able = "conditional create" if self.conditional_create else "no conditional create"
        return f"{kind}{'' if self.tested else ' (untested)'}, {able}"
