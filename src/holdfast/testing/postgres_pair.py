"""A Postgres primary and its synchronous standby, as direct children of tests and fault runs."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from holdfast.engines.postgres.binaries import as_user, program, run, system_user
from holdfast.testing.postgres_server import PASSWORD, PostgresServer

_LIMIT_SECONDS = 120.0


class PostgresStandby(PostgresServer):
    """A server that follows another one.

    ::

        standby = PostgresStandby(primary)
        standby.start()
    """

    def __init__(self, primary: PostgresServer, folder: Path | None = None) -> None:
        self.primary = primary
        super().__init__(primary.major, *primary.options, folder=folder)

    def create(self) -> None:
        """Copy the data folder of the primary."""
        follow(self, self.primary)


def follow(server: PostgresServer, primary: PostgresServer) -> None:
    """Make a stopped server a standby: with a copy of the primary's data folder.

    ::

        follow(old_primary, primary=new_primary)
    """
    shutil.rmtree(server.data, ignore_errors=True)
    server.data.mkdir(mode=0o700)
    user = system_user(primary.data)
    if user:
        account = pwd.getpwnam(user)
        os.chown(server.data, account.pw_uid, account.pw_gid)
    where = f"host=127.0.0.1 port={primary.port} user=postgres password={PASSWORD}"
    run(
        [
            str(program("pg_basebackup", major=primary.major)),
            *("-D", str(server.data), "-d", where, "-R", "-X", "stream", "-c", "fast"),
        ],
        user=user,
    )


class PostgresPair:
    """A primary whose commits wait for the answer of its standby.

    ::

        pair = PostgresPair()
        pair.start()
        pair.fail_over()
        pair.repair()
    """

    def __init__(self, *options: str, folders: tuple[Path, Path] | None = None) -> None:
        first: Path | None
        self._second: Path | None
        first, self._second = folders or (None, None)
        self.primary = PostgresServer(18, *options, folder=first)
        self.standby: PostgresServer | None = None
        self.servers = [self.primary]

    def start(self) -> None:
        """Start both, and wait until commits wait for the standby."""
        self.primary.start()
        self.standby = PostgresStandby(self.primary, self._second)
        self.servers.append(self.standby)
        self.standby.start()
        self._synchronize()

    def url(self, ports: tuple[int, ...] | None = None) -> str:
        """Both hosts; ``ports`` are those of proxies in front of them."""
        listed = ports or tuple(server.port for server in self.servers)
        hosts = ",".join(f"127.0.0.1:{port}" for port in listed)
        return f"postgresql://postgres:{PASSWORD}@{hosts}/postgres?target_session_attrs=read-write"

    def kill_primary(self) -> None:
        """As the power would, without a word."""
        self.primary.kill()

    def promote(self) -> None:
        """Make the standby the primary, as an operator or a failover manager does."""
        assert self.standby is not None, "there is no standby: repair the pair first"
        data = ["-D", str(self.standby.data), "-t", str(int(_LIMIT_SECONDS))]
        run(
            [str(program("pg_ctl", major=self.standby.major)), "promote", *data],
            user=self.standby.user,
        )
        self.primary, self.standby = self.standby, None

    def fail_over(self) -> None:
        """Kill the primary, and promote the standby."""
        self.kill_primary()
        self.promote()

    def repair(self) -> None:
        """Make the killed server the standby of the new primary."""
        old = next(server for server in self.servers if server is not self.primary)
        follow(old, self.primary)
        old.start()
        self.standby = old
        self._synchronize()

    def remove(self) -> None:
        """Stop both, and leave nothing behind."""
        for server in self.servers:
            server.remove()

    def ask(self, sql: str) -> str:
        """Ask the primary as the superuser, by its socket."""
        server = self.primary
        done = subprocess.run(
            [
                str(program("psql", major=server.major)),
                *("-h", str(server.folder), "-p", str(server.port), "-U", "postgres"),
                *("-XAtq", "-c", sql),
            ],
            **as_user(server.user),
            cwd="/",
            env={"PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def _synchronize(self) -> None:
        # Not before there is a standby: every commit would wait for one.
        limit = time.monotonic() + _LIMIT_SECONDS
        while self.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") != "1":
            assert time.monotonic() < limit, "the standby does not follow"
            time.sleep(0.05)
        self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.ask("SELECT pg_reload_conf()")
        while self.ask("SELECT sync_state FROM pg_stat_replication") != "sync":
            assert time.monotonic() < limit, "the standby is not synchronous"
            time.sleep(0.05)
