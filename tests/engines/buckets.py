"""What a test does to a bucket that the engine has no call for."""

from __future__ import annotations

import asyncio
import hashlib
import urllib.request

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.leftovers import Leftovers

_ENABLED = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Status>Enabled</Status></VersioningConfiguration>"
)


async def keep_versions(engine: Objects) -> None:
    """Let the bucket of an engine keep versions from now on."""
    await asyncio.to_thread(_enable, Leftovers(engine))


def _enable(bucket: Leftovers) -> None:
    url, query = bucket._base, "versioning="
    request = urllib.request.Request(f"{url}?{query}", method="PUT", data=_ENABLED)  # noqa: S310 - on loopback
    signed = bucket._signed("PUT", url, query, hashlib.sha256(_ENABLED).hexdigest())
    for name, value in signed.items():
        request.add_header(name, value)
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        assert answer.status == 200
