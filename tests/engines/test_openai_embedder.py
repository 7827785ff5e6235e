"""An embedding service: a real HTTP server on the loopback, as busy or as wrong as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from holdfast.engines.embedders.openai_compatible import BATCH, OpenAICompatibleEmbedder
from holdfast.values.errors import (
    ConfigError,
    EngineError,
    InvalidInputError,
    UnavailableError,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Service:
    """Answers with the length of each text, after the answers that the test put first."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.first: list[tuple[int, Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(size))
                service.asked.append((self.path, dict(self.headers), body))
                status, answer = service.first.pop(0) if service.first else (200, _embedded(body))
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def _embedded(body: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {"index": at, "embedding": [float(len(text)), 1.0], "object": "embedding"}
        for at, text in enumerate(body["input"])
    ]
    return {"object": "list", "model": body["model"], "data": rows[::-1]}


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that runs for one test."""
    found = Service()
    thread = threading.Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


async def test_texts_are_embedded_in_batches_and_come_back_in_order(service: Service) -> None:
    embedder = OpenAICompatibleEmbedder(service.url, "tiny", dimension=2, api_key="s3cret")
    texts = ["x" * (at % 7) for at in range(BATCH + 3)]
    vectors = await embedder.embed(texts)
    assert vectors == [[float(len(text)), 1.0] for text in texts]
    assert [len(body["input"]) for _, _, body in service.asked] == [BATCH, 3]
    path, headers, body = service.asked[0]
    assert (path, body["model"]) == ("/v1/embeddings", "tiny")
    assert headers["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(embedder)
    await embedder.aclose()


async def test_a_version_in_the_url_is_kept(service: Service) -> None:
    for base in ("/v1", "/v1/", "/api/v2"):
        embedder = OpenAICompatibleEmbedder(service.url + base, "tiny", dimension=2)
        await embedder.embed(["a"])
        await embedder.aclose()
    paths = [path for path, _, _ in service.asked]
    assert paths == ["/v1/embeddings", "/v1/embeddings", "/api/v2/embeddings"]
    assert "Authorization" not in service.asked[0][1]


async def test_a_busy_service_is_asked_again(service: Service) -> None:
    service.first = [(429, {}), (503, {})]
    embedder = OpenAICompatibleEmbedder(service.url, "tiny", dimension=2)
    assert await embedder.embed(["abc"]) == [[3.0, 1.0]]
    assert len(service.asked) == 3
    await embedder.aclose()


async def test_a_service_that_is_away_is_unavailable() -> None:
    embedder = OpenAICompatibleEmbedder("http://127.0.0.1:1", "tiny", dimension=2)
    with pytest.raises(UnavailableError, match="embedder tiny"):
        await embedder.embed(["abc"])
    await embedder.aclose()


async def test_a_refusal_is_not_tried_again_and_says_why(service: Service) -> None:
    service.first = [(401, {"error": {"message": "no such key"}})]
    embedder = OpenAICompatibleEmbedder(service.url, "tiny", dimension=2, api_key="s3cret")
    with pytest.raises(EngineError, match=r"401.*no such key") as caught:
        await embedder.embed(["abc"])
    assert not isinstance(caught.value, UnavailableError)
    assert "s3cret" not in str(caught.value)
    assert len(service.asked) == 1
    await embedder.aclose()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}, "vectors of 3 numbers.*2"),
        ({"data": []}, "0 vectors for 1 texts"),
        ({"data": [{"index": 0, "embedding": "AAAA"}]}, "no list of embeddings"),
        ({"oh": "no"}, "no list of embeddings"),
        ([], "no list of embeddings"),
        (b"<html>", "invalid JSON"),
    ],
)
async def test_an_answer_that_does_not_fit_is_an_engine_error(
    service: Service, answer: Any, says: str
) -> None:
    service.first = [(200, answer)]
    embedder = OpenAICompatibleEmbedder(service.url, "tiny", dimension=2)
    with pytest.raises(EngineError, match=says):
        await embedder.embed(["abc"])
    await embedder.aclose()


async def test_a_borrowed_client_is_never_closed(service: Service) -> None:
    async with httpx.AsyncClient() as client:
        embedder = OpenAICompatibleEmbedder.from_client(client, service.url, "tiny", dimension=2)
        await embedder.embed(["abc"])
        await embedder.aclose()
        assert not client.is_closed


async def test_a_wrong_url_or_dimension_is_refused() -> None:
    with pytest.raises(ConfigError, match="http://"):
        OpenAICompatibleEmbedder("localhost:11434", "tiny", dimension=2)
    with pytest.raises(InvalidInputError, match="dimension"):
        OpenAICompatibleEmbedder("http://x", "tiny", dimension=0)
