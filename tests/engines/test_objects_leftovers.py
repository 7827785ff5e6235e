"""What a bucket keeps of deleted objects, and how it goes, on a real S3 server."""

from __future__ import annotations

import obstore
import pytest

from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.leftovers import Leftovers
from holdfast.errors import ConfigError, NotSupportedError
from holdfast.values.ids import new_ref
from holdfast.wiring.objects import warnings_of
from tests.engines.buckets import keep_versions
from tests.engines.seaweedfs_server import s3_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


def bucket() -> str:
    """The name of a bucket that no other test uses."""
    return f"b{new_ref().lower().replace('_', '').replace('-', '')}x"


async def test_versions_and_markers_of_deleted_objects_are_deleted_and_objects_are_not() -> None:
    name = bucket()
    engine = await Objects.open(s3_server().url(f"{name}/here"))
    other = await Objects.open(s3_server().url(f"{name}/elsewhere"))
    left = Leftovers(engine)
    assert not await left.keeps_versions()
    assert await warnings_of(engine) == ()
    await keep_versions(engine)
    assert await left.keeps_versions()
    assert "keeps versions" in (await warnings_of(engine))[0]
    for one in (engine, other):
        await one.put("acme/bytes/kept & read", b"first")
        await one.put("acme/bytes/kept & read", b"second")
        await one.put("acme/bytes/gone", b"secret")
        await one.delete(["acme/bytes/gone"])
    found = [version async for version in left.versions()]
    # The first text of what is read, and of what is gone its text and the marker.
    assert [(one.key, one.is_marker) for one in found].count(
        ("here/acme/bytes/kept & read", False)
    ) == 1
    assert sorted(one.is_marker for one in found if one.key == "here/acme/bytes/gone") == [
        False,
        True,
    ]
    assert await left.remove_versions() == len(found) == 3
    assert [version async for version in left.versions()] == []
    assert await left.remove_versions() == 0
    assert await engine.get("acme/bytes/kept & read") == b"second"
    assert await engine.get("acme/bytes/gone") is None
    # What is below another prefix is not this engine's.
    assert len([version async for version in Leftovers(other).versions()]) == 3


async def test_the_objects_of_others_in_the_bucket_keep_their_versions() -> None:
    engine = await Objects.open(s3_server().url(bucket()))
    await keep_versions(engine)
    for path in ("photos/cat.jpg", "acme/bytes/3f/3f09-4.0"):
        await engine.put(path, b"first")
        await engine.put(path, b"second")
        await engine.delete([path])
    left = Leftovers(engine)
    assert {one.key async for one in left.versions()} == {"acme/bytes/3f/3f09-4.0"}
    assert await left.remove_versions() == 3
    whole = await left._ask("GET", "", {"versions": ""})
    keys = [one.text for one in whole.iter() if one.tag.endswith("}Key")]
    assert keys.count("photos/cat.jpg") == 3
    assert "acme/bytes/3f/3f09-4.0" not in keys


async def test_a_removal_that_ends_early_brings_no_deleted_object_back() -> None:
    engine = await Objects.open(s3_server().url(f"{bucket()}/here"))
    await keep_versions(engine)
    for text in (b"one", b"two", b"three"):
        await engine.put("acme/bytes/gone", text)
    await engine.delete(["acme/bytes/gone"])
    left, asked = Leftovers(engine), 0
    whole = left._ask

    async def ask(method: str, key: str, query: dict[str, str]) -> object:
        nonlocal asked
        asked += method == "DELETE"
        if asked > 2:
            raise ConnectionError
        return await whole(method, key, query)

    left._ask = ask  # type: ignore[method-assign, assignment]
    with pytest.raises(ConnectionError):
        await left.remove_versions()
    assert await engine.get("acme/bytes/gone") is None
    assert await Leftovers(engine).remove_versions() == 2
    assert await engine.get("acme/bytes/gone") is None


async def test_an_upload_that_never_ended_is_aborted_once_no_writer_can_be_at_work() -> None:
    engine = await Objects.open(s3_server().url(f"{bucket()}/here"))
    left = Leftovers(engine)
    writer = obstore.open_writer_async(engine.driver, "acme/bytes/large", buffer_size=5 << 20)
    await writer.write(b"x" * (11 << 20))
    [upload] = [one async for one in left.uploads()]
    assert upload.key == "here/acme/bytes/large"
    assert await left.remove_uploads() == 0
    assert await left.remove_uploads(older_seconds=-60) == 1
    assert [one async for one in left.uploads()] == []


async def test_a_folder_has_no_versions_and_unknown_credentials_are_refused(
    tmp_path: object,
) -> None:
    folder = await Objects.open(f"file://{tmp_path}")
    with pytest.raises(NotSupportedError, match="versions of objects"):
        Leftovers(folder)
    assert await warnings_of(folder) == ()
    engine = await Objects.open(s3_server().url(f"{bucket()}/here"))
    left = Leftovers(engine)
    left._secret = new_ref()
    with pytest.raises(ConfigError, match="check the credentials"):
        await left.keeps_versions()
