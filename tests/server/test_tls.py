"""HTTP and gRPC over TLS, with a certificate that is made here."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import holdfast
from holdfast.errors import ConfigError
from holdfast.server.options import ServiceOptions
from holdfast.server.service import listening
from holdfast.server.tls import tls_context
from tests.server.running import MODERN, example_app, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _made(folder: Path) -> tuple[str, str]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(cert_file), str(key_file)


async def test_http_and_grpc_serve_tls(tmp_path: Path) -> None:
    cert, key = _made(tmp_path)
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
    cert, key = _made(tmp_path)
    (tmp_path / "other").mkdir()
    other, _ = _made(tmp_path / "other")
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
