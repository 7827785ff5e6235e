"""What an S3 bucket keeps of deleted objects: earlier versions, and uploads that never ended."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from holdfast.engines.objects.blob import ORPHAN_GRACE_SECONDS
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.errors import ENGINE
from holdfast.engines.objects.paths import is_ours
from holdfast.values.errors import (
    CodecError,
    ConfigError,
    EngineError,
    NotSupportedError,
    UnavailableError,
)

_TIMEOUT_SECONDS = 60
_EMPTY = hashlib.sha256(b"").hexdigest()
_DENIED = frozenset({401, 403})
_ABSENT = 404


class Version(NamedTuple):
    """An earlier version of an object, or a marker that it was deleted."""

    key: str
    id: str
    is_marker: bool


class Upload(NamedTuple):
    """An upload in parts that has not ended."""

    key: str
    id: str
    began_at: datetime


class Leftovers:
    """Lists and deletes what a bucket keeps of the objects of an engine; only for S3.

    Objects of others in the same bucket are left alone, also if the engine has no prefix.
    The driver has no calls for this, so the requests are signed here, with its credentials.

    ::

        removed = await Leftovers(engine).remove_versions()
    """

    def __init__(self, engine: Objects) -> None:
        if engine.capabilities.scheme != "s3":
            raise NotSupportedError(
                ENGINE, "versions of objects", why=f"{engine.location} is not a bucket of S3"
            )
        config: Mapping[str, Any] = engine.driver.config
        self._clock = engine
        self._prefix = f"{engine.driver.prefix}/" if engine.driver.prefix else ""
        self._region = str(config.get("region", "us-east-1"))
        self._key = str(config.get("access_key_id", ""))
        self._secret = str(config.get("secret_access_key", ""))
        self._token = str(config.get("token", config.get("session_token", "")))
        if not self._key or not self._secret:
            raise ConfigError(
                f"{ENGINE}: versions of objects are listed with access_key_id and "
                "secret_access_key: give them, or let the bucket expire noncurrent versions and "
                "incomplete uploads by a lifecycle rule"
            )
        bucket, endpoint = str(config["bucket"]), str(config.get("endpoint", "")).rstrip("/")
        if not endpoint:
            endpoint = f"https://s3.{self._region}.amazonaws.com"
        hosted = str(config.get("virtual_hosted_style_request", "")).lower() in {"true", "1"}
        self._base = endpoint if hosted else f"{endpoint}/{quote(bucket)}"

    async def keeps_versions(self) -> bool:
        """Return whether the bucket keeps the bytes of deleted objects as versions."""
        found = await self._ask("GET", "", {"versioning": ""})
        return found.findtext(_named(found, "Status"), "") != ""

    async def versions(self) -> AsyncIterator[Version]:
        """Yield the versions that no read returns, and the markers of deletions, by key."""
        after: dict[str, str] = {}
        while True:
            page = await self._ask("GET", "", {"versions": "", "prefix": self._prefix, **after})
            for one in page:
                kind = one.tag.rpartition("}")[2]
                newest = one.findtext(_named(page, "IsLatest")) == "true"
                key, version = _text(one, page, "Key"), _text(one, page, "VersionId")
                deleted = kind == "DeleteMarker" or (kind == "Version" and not newest)
                if deleted and self._has(key):
                    yield Version(key, version, kind == "DeleteMarker")
            if page.findtext(_named(page, "IsTruncated")) != "true":
                return
            after = {
                "key-marker": _text(page, page, "NextKeyMarker"),
                "version-id-marker": _text(page, page, "NextVersionIdMarker"),
            }

    async def uploads(self) -> AsyncIterator[Upload]:
        """Yield the uploads in parts that have not ended."""
        after: dict[str, str] = {}
        while True:
            page = await self._ask("GET", "", {"uploads": "", "prefix": self._prefix, **after})
            for one in page.iter(_named(page, "Upload")):
                key, began = _text(one, page, "Key"), _text(one, page, "Initiated")
                if self._has(key):
                    moment = datetime.fromisoformat(began).astimezone(UTC)
                    yield Upload(key, _text(one, page, "UploadId"), moment)
            if page.findtext(_named(page, "IsTruncated")) != "true":
                return
            after = {
                "key-marker": _text(page, page, "NextKeyMarker"),
                "upload-id-marker": _text(page, page, "NextUploadIdMarker"),
            }

    async def remove_versions(self) -> int:
        """Delete the versions that no read returns. Returns how many. A retry deletes the rest."""
        count, of_key = 0, list[Version]()
        async for one in self.versions():
            if of_key and of_key[0].key != one.key:
                count += await self._remove(of_key)
                of_key = []
            of_key.append(one)
        return count + await self._remove(of_key)

    async def _remove(self, of_key: Sequence[Version]) -> int:
        """Delete versions of one object; a marker last, since without it they would be read."""
        for one in sorted(of_key, key=lambda one: one.is_marker):
            await self._ask("DELETE", one.key, {"versionId": one.id})
        return len(of_key)

    async def remove_uploads(self, *, older_seconds: float = ORPHAN_GRACE_SECONDS) -> int:
        """Abort uploads that began so long ago that no writer is at work. Returns how many."""
        before, count = self._clock.now() - timedelta(seconds=older_seconds), 0
        for one in [upload async for upload in self.uploads()]:
            if one.began_at <= before:
                await self._ask("DELETE", one.key, {"uploadId": one.id})
                count += 1
        return count

    def _has(self, key: str) -> bool:
        """Return whether an object key of the bucket is one of the engine."""
        return key.startswith(self._prefix) and is_ours(key[len(self._prefix) :])

    async def _ask(self, method: str, key: str, query: Mapping[str, str]) -> ET.Element:
        return await asyncio.to_thread(self._send, method, key, query)

    def _send(self, method: str, key: str, query: Mapping[str, str]) -> ET.Element:
        path = f"{self._base}/{quote(key)}" if key else self._base
        asked = "&".join(f"{quote(n, '')}={quote(v, '')}" for n, v in sorted(query.items()))
        request = urllib.request.Request(f"{path}?{asked}", method=method)  # noqa: S310 - the bucket's
        for name, value in self._signed(method, path, asked).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code == _ABSENT and method == "DELETE":
                return ET.Element("gone")
            said = error.read()[:200].decode(errors="replace")
            if error.code in _DENIED:
                raise ConfigError(
                    f"{ENGINE}: {error.code}: {said}: check the credentials and their rights"
                ) from error
            raise EngineError(ENGINE, f"status {error.code}: {said}") from error
        except OSError as error:
            raise UnavailableError(ENGINE, str(error)) from error
        try:
            return ET.fromstring(text) if text else ET.Element("empty")  # noqa: S314 - expat loads no entities from elsewhere
        except ET.ParseError as error:
            raise CodecError(f"{ENGINE}: the bucket's answer is not XML: {error}") from error

    def _signed(self, method: str, url: str, query: str, body: str = _EMPTY) -> dict[str, str]:
        """Return the headers of a request, signed by version 4 of AWS; ``body`` is its SHA-256."""
        parts, now = urlsplit(url), datetime.now(UTC)
        moment, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        headers = {"host": parts.netloc, "x-amz-content-sha256": body, "x-amz-date": moment}
        if self._token:
            headers["x-amz-security-token"] = self._token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        asked = "\n".join([method, parts.path or "/", query, lines, names, body])
        scope = f"{day}/{self._region}/s3/aws4_request"
        digest = hashlib.sha256(asked.encode()).hexdigest()
        key = f"AWS4{self._secret}".encode()
        for part in scope.split("/"):
            key = _hmac(key, part)
        signature = _hmac(key, f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._key}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}"
        )
        return headers


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _named(page: ET.Element, name: str) -> str:
    """Return the name of an element in the namespace of the answer."""
    space, brace, _ = page.tag.rpartition("}")
    return f"{space}{brace}{name}"


def _text(one: ET.Element, page: ET.Element, name: str) -> str:
    return one.findtext(_named(page, name)) or ""
