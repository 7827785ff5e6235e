"""Parse the URL of an object store, check its parameters and create the driver's store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from obstore import store as drivers

from holdfast.engines.objects.errors import ENGINE
from holdfast.values.errors import ConfigError, UnknownSchemeError

TESTED = ("s3", "file")
UNTESTED = ("s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
"""Schemes that the driver supports and that our tests do not cover."""

_CLIENT = frozenset(
    {
        *("allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url"),
        *("read_timeout", "timeout", "user_agent"),
    }
)
"""Parameters of the HTTP client; all other parameters are those of the store."""

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed URL. Its repr has no parameters, since some of them are secrets.

    >>> Address.parse("s3://bucket/prefix?region=eu-west-1&secret_access_key=x")
    Address('s3://bucket/prefix')
    """

    scheme: str
    location: str
    """The URL without its parameters, safe to show."""

    config: dict[str, str] = field(repr=False)
    client: dict[str, Any] = field(repr=False)
    fsync: bool = True
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"Address({self.location!r})"

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL.

        >>> Address.parse("file:///var/blobs").folder
        PosixPath('/var/blobs')
        """
        parts = urlsplit(url)
        if parts.scheme not in TESTED + UNTESTED:
            raise UnknownSchemeError(parts.scheme, known=TESTED + UNTESTED)
        if "@" in parts.netloc and parts.scheme not in {"abfs", "abfss"}:
            raise ConfigError(
                f"{ENGINE}: credentials do not belong before the bucket: give access_key_id and "
                "secret_access_key as parameters, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                "in the environment"
            )
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        location = f"{parts.scheme}://{parts.netloc}{parts.path}"
        if parts.scheme == "file":
            return cls._disk(location, parts.netloc, unquote(parts.path), given)
        if not parts.netloc:
            raise ConfigError(
                f"{ENGINE}: {location} names no bucket: write {parts.scheme}://bucket"
            )
        client = {name: _client(name, given.pop(name)) for name in _CLIENT & set(given)}
        if given.get("endpoint", "").startswith("http://") and not client.get("allow_http"):
            raise ConfigError(
                f"{ENGINE}: the endpoint {given['endpoint']} is not encrypted: use https://, or "
                "add allow_http=true"
            )
        return cls(parts.scheme, location, given, client)

    @classmethod
    def _disk(cls, location: str, host: str, path: str, given: dict[str, str]) -> Address:
        fsync = _flag("fsync", given.pop("fsync", "true"))
        if given:
            raise ConfigError(f"{ENGINE}: unknown parameters of {location}: {', '.join(given)}")
        if host or not path.startswith("/"):
            raise ConfigError(f"{ENGINE}: {location} is not an absolute path: write file:///dir")
        return cls("file", location, {}, {}, fsync=fsync, folder=Path(path))

    def connect(self, *, timeout_seconds: float, retry_seconds: float) -> Any:
        """Return the driver's store, which has not connected yet."""
        if self.folder is not None:
            return drivers.LocalStore(self.folder, automatic_cleanup=True, mkdir=True)
        # Any: the driver types each store's parameters apart, but these come from a URL.
        options: dict[str, Any] = {
            "config": self.config,
            "client_options": {
                "connect_timeout": timedelta(seconds=min(5.0, timeout_seconds)),
                "timeout": timedelta(seconds=timeout_seconds),
                **self.client,
            },
            "retry_config": {
                "max_retries": 6,
                "retry_timeout": timedelta(seconds=retry_seconds),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=50),
                    "max_backoff": timedelta(seconds=2),
                    "base": 2,
                },
            },
        }
        return drivers.from_url(self.location, **options)


def _client(name: str, value: str) -> Any:
    return _flag(name, value) if name.startswith("allow_") else value


def _flag(name: str, value: str) -> bool:
    if value.lower() not in _FLAGS:
        raise ConfigError(f"{ENGINE}: {name} must be true or false, not {value!r}")
    return _FLAGS[value.lower()]
