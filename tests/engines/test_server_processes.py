"""Servers of a test process end with it, also if it is killed while it removes their folders."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

_PROGRAM = """
import shutil, time
from holdfast.testing.valkey_server import ValkeyServer

servers = [ValkeyServer() for _ in range(3)]
for server in servers:
    server.start()
print(*(server.process.pid for server in servers), *(server.folder for server in servers))
shutil.rmtree = lambda *args, **more: time.sleep(600)
"""


def test_servers_end_though_the_process_that_started_them_ends_slowly() -> None:
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        words = process.stdout.readline().decode().split()
        limit = time.monotonic() + 60
        while any(_runs(int(pid)) for pid in words[:3]) and time.monotonic() < limit:
            time.sleep(0.05)
        left = [pid for pid in words[:3] if _runs(int(pid))]
        process.kill()
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    for folder in words[3:]:
        shutil.rmtree(folder)
    assert left == []


def _runs(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
