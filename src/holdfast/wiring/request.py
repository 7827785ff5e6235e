"""The arguments of ``holdfast.open()``, before anything is connected."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from holdfast.engines.embedders.limited import LimitedEmbedder
from holdfast.spi.embedding import Embedder, lexical_weight
from holdfast.spi.key_provider import KeyProvider
from holdfast.telemetry.options import Telemetry
from holdfast.values.clock import Clock
from holdfast.values.errors import InvalidInputError
from holdfast.wiring.settings import Settings


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """URLs, the environment's settings, and objects that the caller passed, such as an embedder."""

    url: str = field(repr=False)
    redis: str = field(repr=False)
    blobs: str = field(repr=False)
    settings: Settings
    graph: str = "tables"
    embedder: Embedder | None = None
    clock: Clock | None = None
    background: bool = True
    seal: KeyProvider | None = None
    telemetry: Telemetry | None = None


def check_embedder(embedder: object) -> None:
    """Raise if this object is not an embedder, before anything is opened.

    ::

        check_embedder(StaticEmbedder())
    """
    if isinstance(embedder, type):
        raise InvalidInputError(
            "embedder", f"must be an object, not a class: pass {embedder.__name__}(...)"
        )
    if embedder is None:
        return
    if not isinstance(embedder, Embedder):
        raise InvalidInputError(
            "embedder",
            "must have name, dimension and `async def embed(texts, *, mode)`, or be a name as "
            f"HOLDFAST_EMBEDDER takes it, such as 'static', not {type(embedder).__name__}",
        )
    lexical_weight(embedder)


async def with_embedder(request: OpenRequest) -> OpenRequest:
    """Return the request with the embedder of the settings, unless the caller passed one.

    ::

        request = await with_embedder(request)
    """
    if request.embedder is not None or request.settings.embedder in {"", "none"}:
        return request
    from holdfast.wiring.embedders import embedder_named  # noqa: PLC0415 - it needs numpy

    settings = request.settings
    made = await embedder_named(settings.embedder, key=settings.embedder_key)
    return dataclasses.replace(request, embedder=made)


def with_limit(request: OpenRequest) -> OpenRequest:
    """Return the request with a time limit on calls of its embedder.

    ::

        request = with_limit(request)
    """
    if request.embedder is None:
        return request
    return dataclasses.replace(request, embedder=LimitedEmbedder(request.embedder))
