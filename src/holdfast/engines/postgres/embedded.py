"""Postgres in a folder: started by the first process that opens it, stopped by the last.

Lock files coordinate the processes. However a process dies, the kernel releases its locks:

- ``users.lock``: every process that uses the folder holds it shared. A process that leaves tries
  to take it exclusively; if it succeeds, it was the last user, and stops the server.
- ``server.lock``: the server itself holds it, and before that ``initdb``: they inherit the open
  file. A process that can take it knows that neither works on the folder, in this container or in
  any other on the machine.
- ``present.lock`` and ``guard.lock``: with them the folder's guard stops the server when its last
  user has ended without leaving (``embedded_guard``).
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from holdfast.engines.postgres import embedded_guard
from holdfast.engines.postgres.binaries import MAJOR, as_user, program, reached, system_user
from holdfast.engines.postgres.embedded_data import give_to, make_data
from holdfast.engines.postgres.embedded_guard import (
    is_guarded,
    place,
    recorded_place,
    stop_server,
)
from holdfast.values.errors import ConfigError, UnavailableError

_log = logging.getLogger("holdfast.postgres")
DATABASE = "holdfast"
_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_LIMIT = 100
"""How long the path of a unix socket may be, with a margin (the kernel's limit is 107 bytes)."""
_NOBODYS = frozenset({"lost+found"})
"""Files that a folder may contain and still count as empty."""
_START_SECONDS = 60.0
_STARTS = 3
"""How often one caller starts a server that ends at once, before it raises an error."""
_LOG_LINES = 3
_children: dict[Path, subprocess.Popen[bytes]] = {}
"""The servers that this process started: it must wait for a child process that has ended."""


@dataclass(slots=True)
class EmbeddedPostgres:
    """A folder with a running server, which this process uses.

    ::

        embedded = await EmbeddedPostgres.open("./state")
        engine = await Postgres.open(embedded.url, auto_migrate=True, revive=embedded.revive)
    """

    folder: Path
    _users: IO[bytes]
    _present: IO[bytes]
    _reviving: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, folder: str | Path) -> EmbeddedPostgres:
        """Start the server of a folder, or join a running one; create a missing folder."""
        path = await asyncio.to_thread(_prepare, folder)
        present, users = (path / "present.lock").open("ab"), (path / "users.lock").open("ab")
        try:
            # Each lock waits while the last user, or the guard, stops the server.
            await asyncio.to_thread(fcntl.flock, present, fcntl.LOCK_SH)
            await asyncio.to_thread(fcntl.flock, users, fcntl.LOCK_SH)
            await _ensure_running(path, make=True)
            await asyncio.to_thread(_ensure_guard, path)
        except BaseException:
            users.close()
            present.close()
            raise
        return cls(path, users, present)

    @property
    def url(self) -> str:
        """The connection URL: a unix socket that only the user of this folder can reach."""
        return f"postgresql://postgres@/postgres?host={socket_folder(self.folder)}"

    async def revive(self) -> None:
        """Restart the server if it was killed. Of all processes that call this, one starts it.

        ::

            await embedded.revive()
        """
        if self._users.closed:
            raise ConfigError(f"the folder {str(self.folder)!r} was closed: open it again")
        if self._reviving is None or self._reviving.done():
            self._reviving = asyncio.create_task(_run_again(self.folder))
        # Several callers wait for one start, which continues when one of them is cancelled.
        await asyncio.shield(self._reviving)

    async def aclose(self) -> None:
        """Stop using the folder. The last process that uses it stops the server."""
        if self._reviving is not None:
            await asyncio.wait([self._reviving])
        if self._users.closed:
            return
        try:
            fcntl.flock(self._users, fcntl.LOCK_UN)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            await asyncio.to_thread(_stop, self.folder)
        finally:
            self._users.close()
            self._present.close()


def socket_folder(folder: Path) -> Path:
    """Return the folder of the socket: ``folder``, or a temporary one if its path is too long."""
    if len(str(folder / _SOCKET_NAME)) <= _SOCKET_LIMIT:
        return folder
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"holdfast-{name}"


def _prepare(given: str | Path) -> Path:
    folder = Path(given).expanduser().resolve()
    try:
        _check_ours(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("users.lock", "server.lock", "present.lock", "guard.lock"):
            (folder / name).touch()
    except OSError as error:
        raise ConfigError(
            f"the folder {str(folder)!r} cannot be written ({error.strerror}): "
            "choose another, or change its owner"
        ) from error
    version = folder / "data" / "PG_VERSION"
    made_by = version.read_text().strip() if version.exists() else ""
    # The data folder was never finished if the file is empty.
    if made_by not in {"", str(MAJOR)}:
        raise ConfigError(
            f"{str(folder)!r} was made by Postgres {made_by}, and this version of holdfast has "
            f"{MAJOR}: dump it with the old one, restore it into a new folder"
        )
    return folder


def _check_ours(folder: Path) -> None:
    """Raise if a folder has other files: the server would change its owner and add files to it."""
    if not folder.exists():
        return
    names = {entry.name for entry in folder.iterdir()} - _NOBODYS
    if names and "users.lock" not in names and not (folder / "data" / "PG_VERSION").exists():
        raise ConfigError(
            f"the folder {str(folder)!r} has files that are not ours, such as {min(names)!r}: "
            "choose a new or an empty folder"
        )


async def _ensure_running(folder: Path, *, make: bool) -> None:
    limit = asyncio.get_running_loop().time() + _START_SECONDS
    starts = 0
    while True:
        if await asyncio.to_thread(_start_if_free, folder, make=make, last=starts == _STARTS):
            starts += 1
        _check_place(folder)
        if await asyncio.to_thread(_answers, folder):
            return
        if asyncio.get_running_loop().time() > limit:
            raise _silent(folder, "does not answer")
        await asyncio.sleep(0.05)


async def _run_again(folder: Path) -> None:
    if not (folder / "data" / "PG_VERSION").exists():
        # A start would create a new, empty data folder.
        raise UnavailableError(
            "postgres",
            f"the data of the folder {str(folder)!r} is gone: restore it, and start again",
        )
    await _ensure_running(folder, make=False)


def _start_if_free(folder: Path, *, make: bool, last: bool) -> bool:
    """Start the server unless it runs. It runs in one thread, which no cancellation interrupts."""
    with (folder / "server.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # No server runs, here or elsewhere: the files of a killed server are stale.
        if last:
            raise _silent(folder, "does not start")
        _start(folder, lock, make=make)
    return True


def _start(folder: Path, lock: IO[bytes], *, make: bool) -> None:
    data = folder / "data"
    user = system_user(data if data.exists() else folder)
    give_to(folder, user)
    if make:
        make_data(folder, user, lock=lock.fileno())
    where = socket_folder(folder)
    if where != folder:
        where.mkdir(mode=0o700, exist_ok=True)
        give_to(where, user)
    # We hold the server's lock, so the process that these files name is dead, or its pid reused.
    _reap(folder)
    for left in (data / "postmaster.pid", where / _SOCKET_NAME, where / f"{_SOCKET_NAME}.lock"):
        left.unlink(missing_ok=True)
    (folder / "server.json").write_text(json.dumps(place()))
    _ensure_guard(folder)
    with (
        (folder / "log").open("ab") as log,
        reached(data, user) as (data_path, data_files),
        reached(where, user) as (socket_path, socket_files),
    ):
        _children[folder] = subprocess.Popen(  # noqa: S603 - a program of the wheel, arguments of our own
            [
                str(program("postgres")),
                *("-D", data_path, "-k", socket_path, "-c", "listen_addresses="),
                *("-c", "max_connections=100", "-c", "unix_socket_permissions=0700"),
            ],
            **as_user(user),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # The server holds the lock as long as it lives, and is detached from the terminal.
            pass_fds=(lock.fileno(), *data_files, *socket_files),
            start_new_session=True,
        )


def _answers(folder: Path) -> bool:
    where = socket_folder(folder)
    done = subprocess.run(  # noqa: S603 - a program of the wheel, arguments of our own
        [str(program("pg_isready")), "-h", str(where), "-q"], check=False
    )
    return done.returncode == 0


def _check_place(folder: Path) -> None:
    found = recorded_place(folder)
    if found not in (None, place()):
        raise ConfigError(
            f"the folder {str(folder)!r} is in use by another container or machine "
            f"({(found or {}).get('host')}): stop that one, or run a Postgres server and use its "
            "URL"
        )


def _stop(folder: Path) -> None:
    stop_server(folder)
    _reap(folder)


def _ensure_guard(folder: Path) -> None:
    """Start the guard, which stops the server when the last process ends without closing it."""
    if is_guarded(folder):
        return
    command = [sys.executable, "-I", "-S", embedded_guard.__file__, str(folder)]
    try:
        with (folder / "log").open("ab") as log:
            # It forks into the background, detached from our terminal and our locks.
            subprocess.run(  # noqa: S603 - our own program
                command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=True,
                timeout=_START_SECONDS,
            )
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning(
            "the server of %s runs on if this process ends without closing it: %s", folder, error
        )


def _reap(folder: Path) -> None:
    child = _children.pop(folder, None)
    if child is not None:
        child.wait()


def _silent(folder: Path, what: str) -> UnavailableError:
    path = folder / "log"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    said = " | ".join(lines[-_LOG_LINES:]) or "nothing"
    return UnavailableError(
        "postgres", f"the server of {str(folder)!r} {what}; {str(path)!r} ends with: {said}"
    )
