"""Secrets by file: ``NAME_FILE`` names a file that holds the value of ``NAME``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.values.errors import ConfigError

BY_FILE = (
    "DATABASE_URL",
    "REDIS_URL",
    "BLOB_URL",
    "HOLDFAST_EMBEDDER_KEY",
    "HOLDFAST_KEYS",
    "HOLDFAST_LOGIN_PASSWORD",
    "HOLDFAST_RECEIPT_KEY",
    "HOLDFAST_STUDIO_SECRET",
)
"""The variables that may have secrets in them."""

MAX_BYTES = 65_536
"""The maximum size of such a file."""


def with_secret_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, with the secrets read from the files that ``NAME_FILE`` names.

    A container or a service manager gives a process its secrets as files, which other processes
    and crash reports do not see. White space at the end of a file is ignored.

    >>> with_secret_files({"STORAGE_TYPE": "memory"})
    {'STORAGE_TYPE': 'memory'}
    """
    found = dict(environment)
    for name in BY_FILE:
        path = environment.get(f"{name}_FILE", "").strip()
        if not path:
            continue
        if environment.get(name, "").strip():
            raise ConfigError(f"{name} and {name}_FILE are both set: unset one of them")
        found[name] = _content(f"{name}_FILE", path)
    return found


def _content(variable: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode().strip()
    except OSError as error:
        raise ConfigError(
            f"{variable}: {path} cannot be read: {error.strerror}: "
            "check the path, and that the user of this process may read it"
        ) from None
    except (UnicodeDecodeError, ValueError):
        raise ConfigError(
            f"{variable}: {path} is not valid UTF-8: save the file as UTF-8"
        ) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{variable}: {path} has more than {MAX_BYTES} bytes: check the path")
    if not text:
        raise ConfigError(f"{variable}: {path} is empty: write the value into it")
    return text
