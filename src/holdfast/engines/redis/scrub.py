"""Removes the bytes of deleted keys from the files of the server."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.engines.redis.engine import Redis
from holdfast.values.errors import EngineError, NotSupportedError

_PAUSE_SECONDS = 0.1


class Scrub:
    """The Redis part of ``holdfast db maintain --scrub``.

    ::

        await Scrub(engine).rewrite()
    """

    def __init__(self, engine: Redis) -> None:
        self._engine = engine

    async def rewrite(self) -> int:
        """Rewrite the snapshot and the append-only file. Returns how many files were rewritten."""
        if self._engine.capabilities.mode == "cluster":
            raise NotSupportedError(
                self._engine.name,
                "a scrub of a cluster",
                why="run BGREWRITEAOF and BGSAVE on each node",
            )
        about = await self._persistence()
        await self._write("BGSAVE", "rdb_bgsave_in_progress", "rdb_last_bgsave_status")
        if about["aof_enabled"] != "1":
            return 1
        await self._write("BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status")
        return 2

    async def _write(self, command: str, running: str, ended: str) -> None:
        # One that began earlier may have deleted keys: wait for it, then start another.
        await self._wait(running)
        await self._engine.command("", command, safe=False)
        await self._wait(running)
        if (await self._persistence())[ended] != "ok":
            raise EngineError(self._engine.name, f"{command} failed: look into the server's log")

    async def _wait(self, running: str) -> None:
        while (await self._persistence())[running] != "0":  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _persistence(self) -> dict[str, str]:
        answer: Any = await self._engine.command("", "INFO", "persistence", safe=True)
        text = answer.decode() if isinstance(answer, bytes) else str(answer)
        pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
        return {name: value for name, _, value in pairs}
