"""Harnesses on a Redis of the system, where one is installed: `apt install redis-server`."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

from tests.engines.hybrid import HybridHarness
from tests.engines.redis import RedisHarness
from tests.engines.server_folder import server_folder
from tests.engines.valkey_server import ValkeyServer

FOUND = shutil.which("redis-server")


class RealRedis(ValkeyServer):
    """Redis itself: its options are those of Valkey."""

    program = Path(FOUND or "redis-server")


@cache
def real_redis() -> RealRedis:
    """One server for all tests of a run."""
    found = RealRedis(folder=server_folder("hf-redis-"))
    found.start()
    return found


class RealRedisHarness(RedisHarness):
    """A standalone Redis."""

    name = "real-redis"

    @classmethod
    def url(cls) -> str:
        """How the engine connects."""
        return real_redis().url

    @classmethod
    def servers(cls) -> list[ValkeyServer]:
        """The one."""
        return [real_redis()]


class RealRedisHybridHarness(HybridHarness):
    """The hybrid with it."""

    name = "hybrid-real-redis"
    database = "holdfast_real_redis"

    @classmethod
    def hot_url(cls) -> str:
        """How the engine connects."""
        return real_redis().url

    @classmethod
    def hot_servers(cls) -> list[ValkeyServer]:
        """The one."""
        return [real_redis()]
