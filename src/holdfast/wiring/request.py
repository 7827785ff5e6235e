"""What was asked of ``holdfast.open()``; nothing is connected yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.kernel.core.clock import Clock
from holdfast.kernel.storage.embedding import Embedder
from holdfast.wiring.settings import Settings


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """URLs, the environment's settings, and the parts that the caller brings."""

    url: str = field(repr=False)
    redis: str = field(repr=False)
    blobs: str = field(repr=False)
    settings: Settings
    graph: str = "tables"
    embedder: Embedder | None = None
    clock: Clock | None = None
