"""The contract suite on Redis itself, where it is installed, and TLS to a server."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import AgentId, ChatMessage, Settings
from holdfast.engines.redis.engine import Redis
from holdfast.errors import ConfigError
from holdfast.testing.postgres_server import free_port
from tests.certificates import self_signed
from tests.engines.postgres_database import empty_database
from tests.engines.real_redis import FOUND, RealRedis
from tests.engines.redis import server
from tests.engines.redis_engine import Wire

ROOT = Path(__file__).parents[2]
ANA = AgentId("writer", "ana")
needs_redis = pytest.mark.skipif(FOUND is None, reason="redis-server is not installed")


@needs_redis
@pytest.mark.timeout(900)
@pytest.mark.parametrize("harness", ["RealRedisHarness", "RealRedisHybridHarness"])
def test_the_contract_suite_passes_on_redis_itself(tmp_path: Path, harness: str) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--pyargs", "holdfast.testing", "-q"),
            *("-p", "no:cacheprovider", "--machine-steps=20", "-k", "not hostile"),
            *("--engine", f"tests.engines.real_redis:{harness}"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr


async def _is_served(redis: str, cert: str) -> None:
    """Write and read over TLS; without the authority it is refused, and not tried again."""
    async with empty_database() as url:
        settings = Settings(auto_migrate=True)
        trusting = f"{redis}?ssl_ca_certs={cert}"
        async with holdfast.open(url, redis=trusting, settings=settings) as state:
            for text in ("one", "x" * 200_000):
                await state.history.append(ANA, ChatMessage.user(text), session_id="s1")
            found = await state.history.get_messages(ANA, session_id="s1")
            assert [len(one.text) for one in found] == [3, 200_000]
            await state.channel("news").publish({"at": 1})
    with pytest.raises(ConfigError, match="ssl_ca_certs"):
        await Redis.open(redis)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_server_behind_tls_is_served_and_its_certificate_is_checked(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    assert server().ask("FLUSHALL") == "+OK"
    async with Wire().between(server().port, tls=tls) as front:
        await _is_served(front.url, cert)


@needs_redis
@pytest.mark.asyncio(loop_scope="session")
async def test_redis_itself_with_tls_is_served(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    port = free_port()
    tls = ("--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key)
    own = RealRedis(*tls, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
    own.start()
    try:
        await _is_served(f"rediss://127.0.0.1:{port}/0", cert)
    finally:
        own.remove()
