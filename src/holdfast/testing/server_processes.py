"""End the servers that a test process started, when it ends."""

from __future__ import annotations

import atexit
import signal
import subprocess
from typing import Protocol


class Server(Protocol):
    """A server that is a child of this process."""

    process: subprocess.Popen[bytes] | None

    def remove(self) -> None:
        """Stop the server, and delete its folder."""


_started: list[tuple[Server, signal.Signals]] = []


def end_at_exit(server: Server, how: signal.Signals) -> None:
    """Send a signal to the server when this process exits, and then remove the server.

    ::

        end_at_exit(server, signal.SIGKILL)
    """
    if not _started:
        atexit.register(_end_all)
    _started.append((server, how))


def _end_all() -> None:
    # Signals first: a test process that takes long to end is killed, and its servers would go on.
    for server, how in _started:
        if server.process is not None:
            server.process.send_signal(how)
    for server, _ in _started:
        server.remove()
