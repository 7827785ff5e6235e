"""The Postgres engine through a real transaction pooler."""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg

from holdfast.engines.postgres.binaries import system_user
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.roles import make_roles
from holdfast.testing.postgres_server import PASSWORD, free_port
from tests.engines.postgres import PostgresHarness, server

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


LOGIN = "holdfast_pooled"
"""Who the pooler logs in as: for workers and consolidators too."""


@cache
def pooler_port() -> int:
    """Start PgBouncer in transaction mode in front of the suite's server, once."""
    assert PROGRAM, "apt-get install pgbouncer"
    behind, port = server(18), free_port()
    folder = Path(tempfile.mkdtemp(prefix="hf-pgbouncer-"))
    folder.chmod(0o755)
    (folder / "users.txt").write_text(f'"{LOGIN}" "{PASSWORD}"\n')
    (folder / "pgbouncer.ini").write_text(
        "[databases]\n"
        f"* = host=127.0.0.1 port={behind.port} user={LOGIN} password={PASSWORD}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder}/users.txt\n"
        "pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 100\n"
    )
    process = subprocess.Popen(
        [PROGRAM, "-q", str(folder / "pgbouncer.ini")], user=system_user(folder), cwd="/"
    )

    def stop() -> None:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    limit = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < limit:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return port
    raise AssertionError("pgbouncer does not answer")


class PgBouncerHarness(PostgresHarness):
    """Three server connections behind eight of ours: nothing of a session survives a statement."""

    name = "postgres18-pgbouncer"
    database = "holdfast_pooled"

    async def _grant(self, connection: Any) -> None:
        # A pooler sends no settings at the start, so the role has to log in itself.
        await make_roles(connection)
        await connection.execute(
            f"""
            DO $$ BEGIN
                IF to_regrole('{LOGIN}') IS NULL THEN
                    CREATE ROLE {LOGIN} LOGIN PASSWORD '{PASSWORD}'
                    IN ROLE holdfast_worker, holdfast_consolidator;
                END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
            END $$
            """
        )

    async def _connect(self) -> Postgres:
        url = f"postgresql://{LOGIN}:{PASSWORD}@127.0.0.1:{pooler_port()}/{self.database}"
        try:
            return await Postgres.open(url, pooler=True, max_connections=8)
        except asyncpg.PostgresError as error:
            raise AssertionError(f"pgbouncer refused: {error}") from error
