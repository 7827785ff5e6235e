"""Create the data folder of an embedded Postgres, whole or not at all.

``initdb`` works in a sibling folder, which is renamed when it is done. The process that creates one
holds the server's lock, and so does ``initdb`` itself: while either lives, no other one begins.
"""

from __future__ import annotations

import logging
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.engines.postgres.binaries import initialise
from holdfast.values.errors import ConfigError

_log = logging.getLogger("holdfast.postgres")
UNFINISHED = "data.unfinished-"
"""The prefix of unfinished folders, which are garbage once the process that made them is dead."""

MADE = "holdfast.made"
"""The last file that is written to a new data folder: a folder that has it is never deleted."""

_READY = b"ready to accept connections"
_FIRST_USER_FILE = 16_384
"""The files of users' tables have at least this number in their names."""
_DATABASES = frozenset({"1", "4", "5", "pgsql_tmp"})
"""What ``initdb`` makes in ``base``: template1, template0 and postgres."""
_INITDB = frozenset({"PG_VERSION", "base", "global", "postgresql.conf", "postgresql.auto.conf"})
_CHUNK = 1 << 20


def make_data(folder: Path, user: str | None, *, lock: int) -> None:
    """Create the data folder, unless it exists; the caller holds the server's lock.

    ``lock`` is the lock's open file, which ``initdb`` inherits. ::

        make_data(folder, "postgres", lock=lock.fileno())
    """
    data = folder / "data"
    for left in folder.glob(f"{UNFINISHED}*"):
        # The process that made it held the lock that we hold now, so it is dead.
        _remove(left)
    if data.is_symlink() or (data.exists() and not _holds_nothing(data, folder / "log")):
        if not (data / "PG_VERSION").exists():
            raise ConfigError(
                f"{str(data)!r} is not a data folder of Postgres, and has files that are not ours: "
                "move it away, or choose another folder"
            )
        return
    making = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder))
    try:
        give_to(making, user)
        initialise(making, lock=lock, folder=folder)
        (making / MADE).touch()
        give_to(making / MADE, user)
        # initdb has synced its own files.
        _sync(making / MADE)
        _sync(making)
        _put(making, data)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def give_to(path: Path, user: str | None) -> None:
    """Make the server's user the owner of a path; ``None`` is the current user: nothing changes.

    ::

        give_to(folder, "postgres")
    """
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(path, account.pw_uid, account.pw_gid)


def _put(making: Path, data: Path) -> None:
    """Rename the new folder; move an existing folder without data away first."""
    half_made = None
    if data.exists():
        half_made = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=data.parent))
        if any(data.iterdir()):
            _log.warning("the folder %s was never finished: making it again", data)
        _rename(data, half_made)
    _rename(making, data)
    _sync(data.parent)
    if half_made is not None:
        _remove(half_made)


def _rename(old: Path, new: Path) -> None:
    try:
        old.rename(new)
    except OSError as error:
        raise ConfigError(
            f"{str(old)!r} cannot be renamed to {str(new)!r} ({error.strerror}): "
            "if one of them is a mount point, mount the folder above it instead"
        ) from error


def _remove(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _holds_nothing(data: Path, log: Path) -> bool:
    """Whether only ``initdb`` has written to this folder, so that it holds no user's data.

    Earlier versions ran ``initdb`` in the data folder, and left a half-made one when they were
    killed. The check is strict: one name that ``initdb`` does not create, one table of a user, one
    link, or one start in the log, and the folder is left alone.
    """
    if not all(_made_by_initdb(entry.name) for entry in data.iterdir()):
        return False
    if any(True for _ in _foreign(data)):
        return False
    return not _was_ready(log)


def _made_by_initdb(name: str) -> bool:
    return (
        name in _INITDB or name.startswith("pg_") or name in {"postmaster.opts", "postmaster.pid"}
    )


def _foreign(data: Path) -> Iterator[Path]:
    """Yield the paths that initdb did not create: symlinks, users' databases, users' tables."""
    for where, folders, files in os.walk(data):
        parent = Path(where)
        relative = parent.relative_to(data).parts
        yield from (parent / name for name in [*folders, *files] if (parent / name).is_symlink())
        if relative == ("base",):
            yield from (parent / name for name in [*folders, *files] if name not in _DATABASES)
        if relative[:1] in {("base",), ("global",)}:
            yield from (parent / name for name in files if _number(name) >= _FIRST_USER_FILE)


def _number(name: str) -> int:
    """Return the number at the start of a relation's file name, as in ``16385_fsm``."""
    digits = name.partition(".")[0].partition("_")[0]
    return int(digits) if digits.isdecimal() else 0


def _was_ready(log: Path) -> bool:
    """Return whether the log shows that a server ever accepted connections."""
    with suppress(FileNotFoundError), log.open("rb") as file:
        end = b""
        while chunk := file.read(_CHUNK):
            if _READY in end + chunk:
                return True
            end = chunk[-len(_READY) :]
    return False
