"""The artifact service: files with versions, of a session or of a user."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from holdfast import State
from holdfast.adapters.google_adk import HoldfastArtifactService
from holdfast.errors import InvalidInputError, NotSupportedError
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA: dict[str, Any] = {"app_name": "tides", "user_id": "ana", "session_id": "s1"}
BEN: dict[str, Any] = {**ANA, "user_id": "ben"}


def _bytes(data: bytes, mime: str = "image/png") -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type=mime))


async def test_each_kind_of_part_comes_back_as_it_was(state: State) -> None:
    artifacts = HoldfastArtifactService(state)
    named = _bytes(b"\x00\xff" * 1_000_000)
    assert named.inline_data is not None
    named.inline_data.display_name = "chart"
    named.thought_signature = b"\xfe"
    file = types.FileData(file_uri="gs://bucket/file", mime_type="text/csv", display_name="f")
    parts = [
        named,
        _bytes(b"", "image/png"),
        types.Part(text="low \u2028 tide"),
        types.Part(text=""),
        types.Part(file_data=file),
    ]
    for at, part in enumerate(parts):
        assert await artifacts.save_artifact(**ANA, filename="f", artifact=part) == at
        assert await artifacts.load_artifact(**ANA, filename="f") == part
    for at, part in enumerate(parts):
        assert await artifacts.load_artifact(**ANA, filename="f", version=at) == part
    for absent in (5, -1):
        assert await artifacts.load_artifact(**ANA, filename="f", version=absent) is None
    as_dict = {"inlineData": {"data": "AAE=", "mimeType": "image/png"}}
    await artifacts.save_artifact(**ANA, filename="d", artifact=as_dict)
    assert await artifacts.load_artifact(**ANA, filename="d") == _bytes(b"\x00\x01")
    assert await artifacts.load_artifact(**ANA, filename="unknown") is None


async def test_a_version_has_a_number_a_time_a_type_and_metadata(state: State) -> None:
    artifacts, reference = HoldfastArtifactService(state), InMemoryArtifactService()
    file = types.Part(file_data=types.FileData(file_uri="gs://b/f", mime_type="text/csv"))
    for filename in ("a/b.txt", "user:a"):
        for service in (artifacts, reference):
            for part in (_bytes(b"1"), types.Part(text="2"), file):
                await service.save_artifact(
                    **ANA, filename=filename, artifact=part, custom_metadata={"k": [1]}
                )
        assert await artifacts.list_versions(**ANA, filename=filename) == [0, 1, 2]
        mine = await artifacts.list_artifact_versions(**ANA, filename=filename)
        theirs = await reference.list_artifact_versions(**ANA, filename=filename)
        for one, other in zip(mine, theirs, strict=True):
            assert one.canonical_uri == other.canonical_uri.replace("memory:", "artifact:")
            assert one.create_time > 0
            update = {"canonical_uri": other.canonical_uri, "create_time": other.create_time}
            assert one.model_copy(update=update) == other
        newest = await artifacts.get_artifact_version(**ANA, filename=filename)
        assert newest == mine[2]
        first = await artifacts.get_artifact_version(**ANA, filename=filename, version=0)
        assert first == mine[0]
    assert await artifacts.get_artifact_version(**ANA, filename="a/b.txt", version=9) is None
    assert await artifacts.list_versions(**ANA, filename="unknown") == []
    assert await artifacts.list_artifact_versions(**ANA, filename="unknown") == []


async def test_files_are_those_of_a_session_or_of_a_user(state: State) -> None:
    artifacts = HoldfastArtifactService(state)
    for filename, session in (("a", "s1"), ("b", "s2"), ("user:c", "s1")):
        where = {**ANA, "session_id": session}
        await artifacts.save_artifact(**where, filename=filename, artifact=_bytes(b"1"))
    keys = artifacts.list_artifact_keys
    assert await keys(**ANA) == ["a", "user:c"]
    assert await keys(app_name="tides", user_id="ana", session_id="s2") == ["b", "user:c"]
    assert await keys(app_name="tides", user_id="ana") == ["user:c"]
    assert await keys(**BEN) == []
    nowhere: dict[str, Any] = {"app_name": "tides", "user_id": "ana"}
    assert await artifacts.load_artifact(**nowhere, filename="user:c") == _bytes(b"1")
    with pytest.raises(InputValidationError, match="Session ID"):
        await artifacts.load_artifact(**nowhere, filename="a")
    for bad in ({"user_id": ""}, {"app_name": "../x"}, {"session_id": "a/../b"}):
        with pytest.raises(InputValidationError):
            await artifacts.save_artifact(**{**ANA, **bad}, filename="a", artifact=_bytes(b""))


async def test_more_files_than_a_page_are_all_listed(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.google_adk.artifacts._PAGE", 2)
    artifacts = HoldfastArtifactService(state)
    for name in "abcd":
        await artifacts.save_artifact(**ANA, filename=name, artifact=_bytes(b"1"))
        await artifacts.save_artifact(**ANA, filename="a", artifact=_bytes(b"1"))
    assert await artifacts.list_artifact_keys(**ANA) == ["a", "b", "c", "d"]
    assert len(await artifacts.list_artifact_versions(**ANA, filename="a")) == 5
    await artifacts.delete_artifact(**ANA, filename="a")
    assert await artifacts.list_artifact_keys(**ANA) == ["b", "c", "d"]


async def test_savers_at_once_get_a_version_each(state: State) -> None:
    services = [HoldfastArtifactService(state), HoldfastArtifactService(state)]
    numbers = await asyncio.gather(
        *(
            services[at % 2].save_artifact(**ANA, filename="f", artifact=_bytes(b"%d" % at))
            for at in range(10)
        )
    )
    assert sorted(numbers) == list(range(10))
    for at, number in enumerate(numbers):
        part = await services[0].load_artifact(**ANA, filename="f", version=number)
        assert part == _bytes(b"%d" % at)


async def test_a_deleted_file_is_gone_with_its_bytes(state: State) -> None:
    artifacts = HoldfastArtifactService(state)
    for data in (b"1", b"2"):
        await artifacts.save_artifact(**ANA, filename="f", artifact=_bytes(data))
    await artifacts.save_artifact(**BEN, filename="f", artifact=_bytes(b"3"))
    hits = await state.items.search(("adk-artifact-versions",), limit=10)
    refs = {hit.item.value["ref"] for hit in hits}
    for _ in range(2):
        await artifacts.delete_artifact(**ANA, filename="f")
        assert await artifacts.list_artifact_keys(**ANA) == []
        assert await artifacts.load_artifact(**ANA, filename="f", version=0) is None
    assert await artifacts.load_artifact(**BEN, filename="f") == _bytes(b"3")
    [kept] = [hit.item for hit in await state.items.search(("adk-artifact-versions",), limit=10)]
    assert len(refs) == 3
    for ref in refs - {kept.value["ref"]}:
        assert not await state.blobs.delete(ref)
    assert await artifacts.save_artifact(**ANA, filename="f", artifact=_bytes(b"4")) == 0


async def test_saves_and_deletes_at_once_leave_a_whole_file_or_none(state: State) -> None:
    artifacts = HoldfastArtifactService(state)
    await asyncio.gather(
        *(artifacts.save_artifact(**ANA, filename="f", artifact=_bytes(b"1")) for _ in range(4)),
        *(artifacts.delete_artifact(**ANA, filename="f") for _ in range(4)),
    )
    versions = await artifacts.list_artifact_versions(**ANA, filename="f")
    newest = await artifacts.load_artifact(**ANA, filename="f")
    assert (newest is None) == (versions == [])
    await artifacts.delete_artifact(**ANA, filename="f")
    assert await state.items.search(("adk-artifact-versions",), limit=10) == []


async def test_a_reference_is_followed_within_the_files_of_a_user(state: State) -> None:
    artifacts = HoldfastArtifactService(state)

    def to(filename: str, user: str = "ana", session: str = "s1") -> types.Part:
        uri = (
            f"artifact://apps/tides/users/{user}/sessions/{session}/artifacts/{filename}/versions/0"
        )
        return types.Part(file_data=types.FileData(file_uri=uri, mime_type="image/png"))

    await artifacts.save_artifact(**ANA, filename="a", artifact=_bytes(b"1"))
    await artifacts.save_artifact(**ANA, filename="b", artifact=to("a"))
    assert await artifacts.load_artifact(**ANA, filename="b") == _bytes(b"1")
    await artifacts.save_artifact(**ANA, filename="loop", artifact=to("loop"))
    with pytest.raises(InputValidationError, match="depth"):
        await artifacts.load_artifact(**ANA, filename="loop")
    for bad in (to("a", user="ben"), to("a", session="s2")):
        with pytest.raises(InputValidationError, match="scope"):
            await artifacts.save_artifact(**ANA, filename="c", artifact=bad)
    assert await artifacts.list_artifact_keys(**ANA) == ["a", "b", "loop"]


async def test_what_a_rewind_saves_loads_as_absent(state: State) -> None:
    artifacts = HoldfastArtifactService(state)
    await artifacts.save_artifact(**ANA, filename="f", artifact=_bytes(b"1"))
    gone = _bytes(b"", "application/octet-stream")
    await artifacts.save_artifact(**ANA, filename="f", artifact=gone)
    assert await artifacts.load_artifact(**ANA, filename="f") is None
    assert await artifacts.load_artifact(**ANA, filename="f", version=0) == _bytes(b"1")


@pytest.mark.parametrize(
    ("part", "metadata", "error"),
    [
        (types.Part(), {}, InputValidationError),
        (_bytes(b"1"), {"a": math.nan}, InvalidInputError),
        (_bytes(b"1"), {"a": "x" * 2_000_000}, InvalidInputError),
        (_bytes(b"1", "a\nb"), {}, InvalidInputError),
    ],
    ids=["empty", "nan", "large", "type"],
)
async def test_what_cannot_be_stored_is_refused_and_nothing_is_written(
    state: State, part: types.Part, metadata: dict[str, Any], error: type[Exception]
) -> None:
    artifacts = HoldfastArtifactService(state)
    with pytest.raises(error):
        await artifacts.save_artifact(**ANA, filename="f", artifact=part, custom_metadata=metadata)
    assert await artifacts.list_artifact_keys(**ANA) == []


async def test_tenants_and_owners_are_apart(state: State) -> None:
    owned = HoldfastArtifactService(state.for_owner("o1"))
    await owned.save_artifact(**ANA, filename="f", artifact=_bytes(b"1"))
    others = [
        state,
        state.for_owner("o2"),
        state.for_tenant(new_ref()).for_owner("o1"),
    ]
    for view in others:
        other = HoldfastArtifactService(view)
        assert await other.list_artifact_keys(**ANA) == []
        assert await other.load_artifact(**ANA, filename="f", version=0) is None
    with pytest.raises(NotSupportedError, match=r"blobs\.delete"):
        await owned.delete_artifact(**ANA, filename="f")
    assert await owned.load_artifact(**ANA, filename="f") == _bytes(b"1")
