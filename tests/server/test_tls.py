"""HTTP and gRPC over TLS, with a certificate that is made here."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

import holdfast
from holdfast.errors import ConfigError
from holdfast.server.options import ServiceOptions
from holdfast.server.service import listening
from holdfast.server.tls import tls_context
from tests.certificates import self_signed
from tests.server.running import MODERN, example_app, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_http_and_grpc_serve_tls(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    chain = (tmp_path / "cert.pem").read_bytes()
    with listening("127.0.0.1", 0) as sock:
        port: int = sock.getsockname()[1]
    async with (
        holdfast.open("memory:") as state,
        serving(
            example_app(), state, tls_cert=cert, tls_key=key, grpc_port=port, head_seconds=0.5
        ) as service,
    ):
        assert service.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=cert)
        async with httpx.AsyncClient(
            verify=trusted, base_url=service.url, headers=MODERN, timeout=60
        ) as http:
            card = (await http.get("/.well-known/agent-card.json")).json()
            assert all(
                one["url"].startswith("https://") or one["protocolBinding"] == "GRPC"
                for one in card["supportedInterfaces"]
            )
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "say hi"}]}
            sent = await http.post("/message:send", json={"message": message})
            task_id = sent.json()["task"]["id"]
        credentials = grpc.ssl_channel_credentials(chain)
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
            make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
            found = await make(channel).GetTask(a2a.GetTaskRequest(id=task_id), wait_for_ready=True)
            assert found.id == task_id
        # Whoever never begins the handshake is closed as one who never sends a request.
        reader, writer = await asyncio.open_connection("127.0.0.1", service.options.port)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()


async def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    (tmp_path / "other").mkdir()
    other, _ = self_signed(tmp_path / "other")
    (tmp_path / "broken.pem").write_text("no certificate")
    for wrong, match in (
        ((cert, ""), "both --tls-cert and --tls-key"),
        (("", key), "both --tls-cert and --tls-key"),
        ((cert, str(tmp_path / "none.pem")), "No such file"),
        ((str(tmp_path / "broken.pem"), key), "not a certificate"),
        ((other, key), "not a certificate"),
    ):
        with pytest.raises(ConfigError, match=match):
            tls_context(ServiceOptions(tls_cert=wrong[0], tls_key=wrong[1]))
