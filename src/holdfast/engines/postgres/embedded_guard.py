"""Stops the server of an embedded folder, also when its last user ends without closing it.

Run as a program, it is the guard of a folder: one small process that waits until no user is left,
however they ended, and then stops the server. It is started by path, and imports nothing but the
standard library, so that it starts quickly and needs no package.

Every user holds ``present.lock``, shared, from before it joins until after it has left; the kernel
releases it when the user dies. The guard waits until it can take that lock exclusively. The guard
itself holds ``guard.lock``, so that there is only one. It creates no file, since the folder may be
deleted at any time.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

RETRY_SECONDS = 0.1


def place() -> dict[str, str | int]:
    """Return the host and the pid namespace of this process.

    Containers can share a folder without sharing process ids.
    """
    return {"host": socket.gethostname(), "processes": Path("/proc/self/ns/pid").stat().st_ino}


def recorded_place(folder: Path) -> dict[str, str | int] | None:
    """Return the host and pid namespace in which a folder's server was started, or ``None``."""
    try:
        found: dict[str, str | int] = json.loads((folder / "server.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found


def stop_server(folder: Path) -> None:
    """Ask the server to shut down, and wait until it has released its lock.

    ::

        stop_server(folder)
    """
    with (folder / "server.lock").open("r+b") as lock:
        while not _taken(lock.fileno()):
            if recorded_place(folder) not in (None, place()):
                # The server runs in another container: its pid means nothing here.
                return
            try:
                pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
                os.kill(pid, signal.SIGINT)
            except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
                # The server is starting, or was killed and its children are about to end.
                time.sleep(RETRY_SECONDS)
            else:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return


def is_guarded(folder: Path) -> bool:
    """Return whether a guard runs for the folder."""
    with (folder / "guard.lock").open("r+b") as lock:
        return not _taken(lock.fileno())


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _guard(folder: Path) -> None:
    """Wait until no user is left, then stop the server."""
    with (
        (folder / "present.lock").open("r+b") as present,
        (folder / "guard.lock").open("r+b") as guard,
    ):
        if not _taken(guard.fileno()):
            return
        with (folder / "users.lock").open("r+b") as users:
            fcntl.flock(present, fcntl.LOCK_EX)
            while not _taken(users.fileno()):
                # A user of a version without guards does not hold present.lock: poll.
                fcntl.flock(present, fcntl.LOCK_UN)
                time.sleep(10 * RETRY_SECONDS)
                fcntl.flock(present, fcntl.LOCK_EX)
            # A new user waits now until the server has ended.
            stop_server(folder)
        # Release it before present.lock, so that the next user starts a new guard.
        fcntl.flock(guard, fcntl.LOCK_UN)


def _main() -> None:
    if os.fork():
        # The process that started us waits for this one, not for the child.
        os._exit(0)
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A signal to all processes reaches the users too; the guard ends after them.
        signal.signal(one, signal.SIG_IGN)
    with suppress(FileNotFoundError):
        _guard(Path(sys.argv[1]))


if __name__ == "__main__":
    _main()
