"""A Valkey primary with two replicas behind three Sentinels, from the wheel."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.testing.valkey_server import PROGRAM, ValkeyServer

SERVICE = "holdfast"
SENTINELS = 3
REPLICAS = 2
DOWN_AFTER_MS = 1000
FAILOVER_TIMEOUT_MS = 2000
_LIMIT_SECONDS = 120.0


class SentinelProcess(ValkeyServer):
    """One Sentinel.

    ::

        sentinel = SentinelProcess(primary_port)
        sentinel.start()
    """

    def __init__(self, primary: int) -> None:
        super().__init__()
        self._primary = primary

    def command(self) -> list[str]:
        """A Sentinel keeps what it learns in its configuration file."""
        file = self.folder / "sentinel.conf"
        if not file.exists():
            lines = (
                "bind 127.0.0.1",
                f"port {self.port}",
                f"dir {self.folder}",
                f"sentinel monitor {SERVICE} 127.0.0.1 {self._primary} {SENTINELS // 2 + 1}",
                f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {SERVICE} {FAILOVER_TIMEOUT_MS}",
            )
            file.write_text("\n".join(lines) + "\n")
        return [str(PROGRAM), str(file), "--sentinel"]


class ValkeySentinel:
    """A primary, two replicas, and three Sentinels that watch them.

    ::

        group = ValkeySentinel()
        group.start()
        group.fail_over()
        group.repair()
    """

    def __init__(self) -> None:
        first = ValkeyServer(fsync="no")
        others = [
            ValkeyServer("--replicaof", f"127.0.0.1 {first.port}", fsync="no")
            for _ in range(REPLICAS)
        ]
        self.servers = [first, *others]
        self.sentinels = [SentinelProcess(first.port) for _ in range(SENTINELS)]
        self._lost: ValkeyServer | None = None

    @property
    def url(self) -> str:
        """How to connect."""
        nodes = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        return f"redis+sentinel://{nodes}/{SERVICE}"

    @property
    def primary(self) -> ValkeyServer:
        """The server that all Sentinels name."""
        self._until(lambda: self._agreed() is not None, "agree on a primary")
        found = self._agreed()
        return self.primary if found is None else found

    def start(self) -> None:
        """Start all, and wait until the Sentinels know each other and the replicas."""
        for server in (*self.servers, *self.sentinels):
            server.start()
        self._until(self._is_whole, "know each other")

    def fail_over(self) -> None:
        """Kill the primary, and wait until a replica has taken over."""
        lost = self.primary
        lost.kill()
        self._lost = lost
        self._until(self._is_replaced, "promote a replica")

    def repair(self) -> None:
        """Start the killed server again: the Sentinels make it a replica."""
        assert self._lost is not None, "no server was killed"
        lost, self._lost = self._lost, None
        # It could start as a primary: the Sentinels turn it round, after ten seconds.
        own = [one for one in lost.options if "replicaof" not in one and "127.0.0.1" not in one]
        lost.options = (*own, "--replicaof", f"127.0.0.1 {self.primary.port}")
        lost.start()
        self._until(self._is_whole, "take the killed server back")

    def remove(self) -> None:
        """Stop all, and leave nothing behind."""
        for server in (*self.sentinels, *self.servers):
            server.remove()

    def _agreed(self) -> ValkeyServer | None:
        named = {one.fields(f"SENTINEL MASTER {SERVICE}").get("port") for one in self.sentinels}
        found = [server for server in self.servers if {str(server.port)} == named]
        return found[0] if found else None

    def _is_replaced(self) -> bool:
        found = self._agreed()
        if found is None or found is self._lost:
            return False
        return "role:master" in found.read("INFO replication")

    def _is_whole(self) -> bool:
        primary = self._agreed()
        if primary is None:
            return False
        known = [one.fields(f"SENTINEL MASTER {SERVICE}") for one in self.sentinels]
        replicas = [
            "master_link_status:up" in server.read("INFO replication")
            for server in self.servers
            if server is not primary
        ]
        return (
            all(one.get("num-other-sentinels") == str(SENTINELS - 1) for one in known)
            and all(one.get("num-slaves") == str(REPLICAS) for one in known)
            and all(one.get("flags") == "master" for one in known)
            and all(replicas)
        )

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + _LIMIT_SECONDS
        while not reached():
            assert time.monotonic() < limit, f"the Sentinels do not {what}"
            time.sleep(0.05)
