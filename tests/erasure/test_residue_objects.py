"""After an erasure and a scrub, the files of an S3 server have no bytes of an erased blob."""

from __future__ import annotations

import asyncio
import os
import urllib.request
from contextlib import ExitStack

import pytest

import holdfast
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.leftovers import Leftovers
from holdfast.values.ids import new_ref
from holdfast.wiring.admin import Administration
from tests.engines.buckets import keep_versions
from tests.erasure.residue import Servers, canary

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _vacuum(servers: Servers) -> None:
    """What SeaweedFS does by its own rule once a third of a volume is deleted: all of it, now."""
    assert servers.s3 is not None
    asked = f"http://127.0.0.1:{servers.s3.ports[0]}/vol/vacuum?garbageThreshold=0.000001"
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("versions", [False, True], ids=["plain", "versions"])
async def test_an_erasure_and_a_scrub_leave_no_bytes_of_a_blob_in_a_bucket(versions: bool) -> None:
    word, other = canary(), canary()
    with ExitStack() as kept:
        servers = Servers(kept, s3=True)
        engine = await Objects.open(servers.settings.blob_url)
        if versions:
            await keep_versions(engine)
        tenant = new_ref()
        async with holdfast.open(settings=servers.settings, tenant=tenant) as state:
            for text, whose in ((word, "ana"), (other, "ben")):
                # Nothing that a server could compress.
                data = text.encode() + os.urandom(4096)
                await state.blobs.store(data, subject=whose, pinned=True)
            assert set(await servers.found({"ana": word, "ben": other})) == {"ana", "ben"}
            report = await state.erase(subject="ana")
            assert report.counts == {"blobs": 1}
            assert report.receipt is not None
            assert any("object store" in one for one in report.receipt["outlives"])
            # The object is gone and its bytes are not: the bucket or the server keeps them.
            assert await servers.found({"ana": word}) != {}
            kept_versions = [one async for one in Leftovers(engine).versions()]
            assert bool(kept_versions) == versions
            admin = await Administration.open(servers.settings)
            try:
                done = {name: await job() for name, job in admin.scrub_jobs().items()}
            finally:
                await admin.aclose()
            assert done["versions of deleted objects"] == len(kept_versions)
            assert [one async for one in Leftovers(engine).versions()] == []
            async with asyncio.timeout(60):
                # It deletes the chunks of an object some time after the object.
                while await servers.found({"ana": word}):
                    await asyncio.to_thread(_vacuum, servers)
            assert set(await servers.found({"ben": other})) == {"ben"}
