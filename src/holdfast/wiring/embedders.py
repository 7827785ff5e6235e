"""Opens the embedder that a setting names."""

from __future__ import annotations

from urllib.parse import parse_qs

from holdfast.engines.embedders.hashing import HashEmbedder
from holdfast.engines.embedders.onnx import OnnxEmbedder
from holdfast.engines.embedders.openai_compatible import OpenAICompatibleEmbedder
from holdfast.engines.embedders.static import StaticEmbedder
from holdfast.spi.embedding import Embedder
from holdfast.values.errors import ConfigError, UnknownSchemeError

KNOWN = (
    "none",
    "static",
    "onnx:FOLDER",
    "openai:URL?model=NAME&dimension=N",
    "hash",
)


async def embedder_named(text: str, *, key: str = "") -> Embedder | None:
    """Return the embedder that a ``HOLDFAST_EMBEDDER`` value names, or ``None`` for ``none``.

    ``key`` is the secret of an embedding service.

    ::

        embedder = await embedder_named("onnx:models/e5-small")
    """
    kind, _, rest = text.partition(":")
    match kind:
        case "" | "none" if not rest:
            return None
        case "static" if not rest:
            return StaticEmbedder()
        case "hash" if not rest:
            return HashEmbedder()
        case "onnx" if rest:
            return await OnnxEmbedder.open(rest)
        case "openai" if rest:
            return _service(rest, key)
    # The text after the colon may contain a secret, so the error does not repeat it.
    raise UnknownSchemeError(kind, known=KNOWN, setting="HOLDFAST_EMBEDDER")


def _service(address: str, key: str) -> OpenAICompatibleEmbedder:
    url, _, query = address.partition("?")
    given = {name: values[-1] for name, values in parse_qs(query).items()}
    model, dimension = given.pop("model", ""), given.pop("dimension", "")
    if given or not model or not dimension.isdecimal():
        raise ConfigError(
            "HOLDFAST_EMBEDDER must be openai:URL?model=NAME&dimension=N: a part is missing or "
            "unknown; the API key belongs into HOLDFAST_EMBEDDER_KEY"
        )
    return OpenAICompatibleEmbedder(url, model, dimension=int(dimension), api_key=key)
