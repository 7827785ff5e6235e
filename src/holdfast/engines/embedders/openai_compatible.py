"""An embedding service: OpenAI, or Ollama, vLLM, TEI and others with the same API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from holdfast.engines.embedders.limited import LIMIT_SECONDS
from holdfast.engines.retry_log import tell_retries
from holdfast.spi.embedding import Embedder, EmbeddingMode
from holdfast.values.errors import (
    ConfigError,
    EngineError,
    InvalidInputError,
    MissingExtraError,
    UnavailableError,
)

if TYPE_CHECKING:
    import httpx

BATCH = 128
ATTEMPTS = 4
_VERSION = re.compile(r"/v\d+$")
_LOGGER = "holdfast.embedding"
tell_retries()


class OpenAICompatibleEmbedder(Embedder):
    """``POST /v1/embeddings`` in batches, retried while the service is busy or unreachable.

    ``base_url`` ends with the version, as in ``https://api.openai.com/v1``; without one, ``/v1`` is
    appended. The caller passes the dimension, so that the service need not be up before the first
    write; a vector of another length raises an error that names both. ``timeout_seconds`` limits
    one request, ``limit_seconds`` all attempts for a text; after that a store continues without
    the vector. ::

        embedder = OpenAICompatibleEmbedder(
            "http://localhost:11434/v1", "nomic-embed-text", dimension=768
        )
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        dimension: int,
        api_key: str = "",
        timeout_seconds: float = 30,
        limit_seconds: float = LIMIT_SECONDS,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if find_spec("httpx") is None or find_spec("stamina") is None:
            raise MissingExtraError("OpenAICompatibleEmbedder", "embeddings")
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError("the embedder's URL must begin with http:// or https://")
        if dimension < 1:
            raise InvalidInputError("dimension", f"must be 1 or more, not {dimension}")
        base = base_url.rstrip("/")
        self._url = f"{base if _VERSION.search(base) else f'{base}/v1'}/embeddings"
        self._model = model
        self._dimension = dimension
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout = timeout_seconds
        self.limit_seconds = limit_seconds
        self._client = client
        self._owns = client is None

    @classmethod
    def from_client(cls, client: httpx.AsyncClient, base_url: str, model: str, **more: Any) -> Self:
        """Borrow a client; ``aclose`` does not close it.

        ::

            embedder = OpenAICompatibleEmbedder.from_client(client, url, "m", dimension=768)
        """
        return cls(base_url, model, client=client, **more)

    def __repr__(self) -> str:
        return f"<OpenAICompatibleEmbedder {self.name}>"

    @property
    def name(self) -> str:
        """The model's name at the service."""
        return self._model

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._dimension

    async def embed(
        self,
        texts: Sequence[str],
        *,
        mode: EmbeddingMode = "passage",  # noqa: ARG002 - the API knows no modes
    ) -> list[list[float]]:
        """Return the service's vectors, in the order of the texts."""
        found: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            found += await self._batch(list(texts[start : start + BATCH]))
        return found

    async def aclose(self) -> None:
        """Close the client that this embedder opened; a borrowed one stays open."""
        if self._owns and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _batch(self, texts: list[str]) -> list[list[float]]:
        import stamina  # noqa: PLC0415 - the extra may not be installed

        async for attempt in stamina.retry_context(
            on=UnavailableError, attempts=ATTEMPTS, timeout=60, wait_initial=0.1, wait_max=5
        ).with_name(_LOGGER, (), {}):
            with attempt:
                return self._vectors(await self._ask(texts), len(texts))
        raise UnavailableError(self._engine, "no answer")

    @property
    def _engine(self) -> str:
        return f"embedder {self._model}"

    async def _ask(self, texts: list[str]) -> Any:
        import httpx  # noqa: PLC0415 - the extra may not be installed

        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._timeout)
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            answer = await self._client.post(self._url, json=body, headers=self._headers)
        except httpx.HTTPError as error:
            raise UnavailableError(self._engine, f"{type(error).__name__}: {error}") from error
        if answer.status_code in {408, 409, 429} or answer.status_code >= 500:
            raise UnavailableError(self._engine, f"answered {answer.status_code}")
        if answer.status_code != 200:
            raise EngineError(self._engine, f"answered {answer.status_code}: {answer.text[:300]}")
        try:
            return answer.json()
        except ValueError as error:
            raise EngineError(self._engine, f"returned invalid JSON: {error}") from error

    def _vectors(self, answer: Any, count: int) -> list[list[float]]:
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(
                self._engine, f"returned no list of embeddings: {type(error).__name__}"
            ) from error
        if [row["index"] for row in rows] != list(range(count)):
            raise EngineError(self._engine, f"returned {len(rows)} vectors for {count} texts")
        for vector in vectors:
            if len(vector) != self._dimension:
                raise EngineError(
                    self._engine,
                    f"returned vectors of {len(vector)} numbers, not {self._dimension}",
                )
        return vectors
