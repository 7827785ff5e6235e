"""URLs, the marker, what an object store can do, and what is shown of all that."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from holdfast.contracts.blobs import StoredBlobs
from holdfast.engines.objects.address import Address
from holdfast.engines.objects.blob import ObjectBlobs
from holdfast.engines.objects.blob_index import ObjectBlobIndex
from holdfast.engines.objects.capabilities import Capabilities
from holdfast.engines.objects.engine import Objects
from holdfast.engines.objects.paths import Paths, decode, encode
from holdfast.values.errors import (
    CodecError,
    ConfigError,
    NotFoundError,
    NotSupportedError,
    SchemaError,
    UnknownSchemeError,
)
from holdfast.values.ids import new_ref
from tests.engines.seaweedfs_server import s3_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRETS = "s3://bucket/prefix?access_key_id=AKIA&secret_access_key=s3cret&session_token=t0ken"


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("mysql://db", UnknownSchemeError),
        ("bucket/prefix", UnknownSchemeError),
        ("s3:///prefix", ConfigError),
        ("s3://ana:s3cret@bucket", ConfigError),
        ("s3://bucket?endpoint=http://127.0.0.1:9000", ConfigError),
        ("s3://bucket?allow_http=perhaps", ConfigError),
        ("file://relative/dir", ConfigError),
        ("file:///dir?region=x", ConfigError),
    ],
)
async def test_a_url_that_cannot_be_meant_is_refused_with_what_to_write(
    url: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        Address.parse(url)
    assert "s3cret" not in str(caught.value)


async def test_neither_repr_nor_place_tells_a_secret(tmp_path: Path) -> None:
    address = Address.parse(SECRETS)
    assert repr(address) == "Address('s3://bucket/prefix')"
    engine = await Objects.open(s3_server().url(f"holdfast-engine/{new_ref()}"))
    for shown in (repr(engine), engine.location, str(vars(engine))):
        assert "only-on-loopback" not in shown
    disk = await Objects.open(tmp_path.as_uri())
    assert repr(disk) == f"Objects('{tmp_path.as_uri()}')"


async def test_credentials_and_endpoint_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = Address.parse(s3_server().url("holdfast-engine"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", given.config["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given.config["secret_access_key"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", given.config["endpoint"])
    engine = await Objects.open(f"s3://holdfast-engine/{new_ref()}?allow_http=true")
    await engine.ping()


async def test_both_stores_say_that_they_create_conditionally(tmp_path: Path) -> None:
    s3 = await Objects.open(s3_server().url(f"holdfast-engine/{new_ref()}"))
    disk = await Objects.open(tmp_path.as_uri())
    assert s3.capabilities.describe() == "S3, conditional create"
    assert disk.capabilities.describe() == "disk, conditional create"


async def test_a_store_that_ignores_the_condition_is_found_out_and_cannot_keep_an_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = obstore.put_async

    async def put(store: Any, path: str, data: Any, **options: Any) -> Any:
        options.pop("mode", None)
        return await real(store, path, data, **options)

    monkeypatch.setattr(obstore, "put_async", put)
    engine = await Objects.from_store(MemoryStore())
    assert engine.capabilities.conditional_create is False
    with pytest.raises(NotSupportedError, match="Postgres"):
        ObjectBlobIndex(engine)


async def test_a_kind_of_store_that_is_untested_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        engine = await Objects.from_store(MemoryStore())
    assert "untested" in caplog.text
    assert engine.capabilities == Capabilities("MemoryStore", tested=False, conditional_create=True)
    blobs = StoredBlobs(ObjectBlobs(engine, ObjectBlobIndex(engine)))
    assert await blobs.resolve(await blobs.store(b"abc")) == b"abc"


async def test_objects_of_another_format_are_refused(tmp_path: Path) -> None:
    await Objects.open(tmp_path.as_uri())
    marker = tmp_path / "holdfast.json"
    marker.write_text('{"format":2}')
    with pytest.raises(SchemaError, match="upgrade"):
        await Objects.open(tmp_path.as_uri())
    marker.write_text("<html>")
    with pytest.raises(CodecError):
        await Objects.open(tmp_path.as_uri())


async def test_ping_notices_that_the_store_was_emptied(tmp_path: Path) -> None:
    engine = await Objects.open(tmp_path.as_uri())
    await engine.ping()
    (tmp_path / "holdfast.json").unlink()
    with pytest.raises(NotFoundError, match="open it again"):
        await engine.ping()


async def test_a_borrowed_store_serves_as_one_of_our_own() -> None:
    store = MemoryStore()
    engine = await Objects.from_store(store)
    await engine.put("a/b", b"x")
    await engine.aclose()
    assert bytes((await obstore.get_async(store, "a/b")).bytes()) == b"x"


@pytest.mark.parametrize(
    "text",
    ["acme", "Acme", "a:b{c}*\n", "../..", "é 🦀", "a%2fb", "=41", "~", "x" * 512, "", "\ud800"],
)
async def test_a_tenants_folder_is_one_plain_path_piece_and_nobody_elses(text: str) -> None:
    piece = encode(text)
    assert set(piece) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_=~")
    assert 0 < len(piece) <= 100
    assert decode(piece) in {text, None}
    others = ["acme", "Acme", "ACME", text + "x", "x" * 511]
    assert all(encode(other).lower() != piece.lower() for other in others if other != text)
    assert Paths(text).part("3f-4", 0).count("/") == 3
