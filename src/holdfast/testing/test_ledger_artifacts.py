"""The promises of ``ProgressLedger``: artifacts."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import found, leased, next_lease
from holdfast.values.content import (
    AudioBlock,
    ContentBlock,
    DataBlock,
    DocumentBlock,
    ErrorBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
    text_of,
)
from holdfast.values.errors import ConflictError
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

FETCH = StepKey("fetch")


async def _write(store: Any, lease: Lease, text: str, **how: Any) -> Any:
    return await store.append_artifact(lease, "a1", [TextBlock(text)], **how)


async def _text(store: Any, lease: Lease) -> str:
    artifact = await store.get_artifact(lease.task_id, "a1")
    return text_of(artifact.parts)


async def test_every_kind_of_content_block_survives_in_an_artifact(store: Any) -> None:
    lease = await leased(store)
    blocks: list[ContentBlock] = [
        TextBlock("a\x00b"),
        ImageBlock(data=bytes(range(256)), media_type="image/png"),
        AudioBlock(url="https://example.org/a.wav"),
        VideoBlock(blob_ref="b_1"),
        DocumentBlock(blob_ref="b_2", name="report.pdf"),
        ToolUseBlock("c1", "search", {"q": [1, 2.5]}),
        ToolResultBlock("c1", [TextBlock("3 hits")], is_error=True),
        ReasoningBlock("hm", signature="s"),
        DataBlock({"rows": [[1], None]}),
        ErrorBlock("no", code="429"),
        UnknownBlock({"type": "hologram", "frames": 3}),
    ]
    chunk = await store.append_artifact(lease, "a1", blocks)
    assert chunk.parts == blocks
    assert (await store.get_artifact(lease.task_id, "a1")).parts == blocks


async def test_chunks_of_one_attempt_follow_each_other(store: Any) -> None:
    lease = await leased(store)
    chunks = [await _write(store, lease, text, append=True) for text in ("a", "b", "c")]
    assert [chunk.append for chunk in chunks] == [False, True, True]
    assert await _text(store, lease) == "abc"


async def test_a_chunk_without_append_begins_the_artifact_anew(store: Any) -> None:
    lease = await leased(store)
    await _write(store, lease, "old", name="draft", metadata={"a": 1}, last_chunk=True)
    await _write(store, lease, "new")
    artifact = await store.get_artifact(lease.task_id, "a1")
    assert artifact.parts == [TextBlock("new")]
    assert (artifact.name, artifact.metadata, artifact.complete) == ("", {}, False)


async def test_the_first_chunk_of_an_artifact_is_never_an_append(store: Any) -> None:
    lease = await leased(store)
    assert not (await _write(store, lease, "a", append=True)).append


async def test_the_last_chunk_makes_the_artifact_complete(store: Any) -> None:
    lease = await leased(store)
    await _write(store, lease, "a")
    assert not (await store.get_artifact(lease.task_id, "a1")).complete
    await store.append_artifact(lease, "a1", [], append=True, last_chunk=True)
    assert (await store.get_artifact(lease.task_id, "a1")).complete
    assert await _text(store, lease) == "a"


async def test_nothing_is_appended_after_the_last_chunk_of_an_attempt(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _write(store, lease, "a", last_chunk=True)
    before = await found(store, lease.task_id)
    with pytest.raises(ConflictError):
        await _write(store, lease, "b", append=True)
    assert await found(store, lease.task_id) == before
    later = await next_lease(harness, store)
    await _write(store, later, "c", append=True)
    assert await _text(store, later) == "c"


async def test_an_artifact_keeps_the_name_and_the_metadata_that_a_chunk_last_gave(
    store: Any,
) -> None:
    lease = await leased(store)
    await _write(store, lease, "a", name="one", metadata={"n": 1})
    await _write(store, lease, "b", append=True, metadata={"n": 2})
    await _write(store, lease, "c", append=True, name="two")
    artifact = await store.get_artifact(lease.task_id, "a1")
    assert (artifact.name, artifact.metadata) == ("two", {"n": 2})


async def test_the_first_chunk_of_a_later_attempt_replaces_what_an_earlier_attempt_wrote(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _write(store, lease, "half of it", append=True)
    await store.append_artifact(lease, "a2", [TextBlock("untouched")])
    later = await next_lease(harness, store)
    assert await _text(store, later) == "half of it"
    assert not (await _write(store, later, "all ", append=True)).append
    assert (await _write(store, later, "of it", append=True)).append
    assert await _text(store, later) == "all of it"
    assert text_of((await store.get_artifact(lease.task_id, "a2")).parts) == "untouched"


async def test_chunks_of_a_stored_step_are_put_back_among_those_of_a_later_attempt(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _write(store, lease, "head ", append=True)
    await _write(store, lease, "step, ", append=True, step=FETCH)
    await _write(store, lease, "more of it ", append=True, step=FETCH)
    await store.record_step(lease, FETCH, None)
    await _write(store, lease, "tail", append=True)
    for _ in range(2):
        lease = await next_lease(harness, store)
        await _write(store, lease, "head ", append=True)
        restored = await store.restore_artifacts(lease, FETCH)
        assert [text_of(chunk.parts) for chunk in restored] == ["step, ", "more of it "]
        await _write(store, lease, "tail", append=True)
        assert await _text(store, lease) == "head step, more of it tail"


async def test_chunks_of_a_step_are_put_back_once_in_an_attempt(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _write(store, lease, "x", append=True, step=FETCH)
    await store.record_step(lease, FETCH, None)
    assert await store.restore_artifacts(lease, FETCH) == []
    later = await next_lease(harness, store)
    assert len(await store.restore_artifacts(later, FETCH)) == 1
    assert await store.restore_artifacts(later, FETCH) == []
    assert await _text(store, later) == "x"


async def test_a_step_that_is_not_stored_has_no_chunks_to_put_back(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _write(store, lease, "x", append=True, step=FETCH)
    later = await next_lease(harness, store)
    before = await found(store, lease.task_id)
    assert await store.restore_artifacts(later, FETCH) == []
    assert await store.restore_artifacts(later, StepKey("unheard of")) == []
    assert await found(store, lease.task_id) == before


async def test_a_stored_step_says_how_many_chunks_were_written_in_it(
    harness: Harness, store: Any
) -> None:
    first = await leased(store)
    await _write(store, first, "lost with its attempt", append=True, step=FETCH)
    lease = await next_lease(harness, store)
    for _ in range(2):
        await _write(store, lease, "x", append=True, step=FETCH)
    assert (await store.record_step(lease, FETCH, None)).chunks == 2
    assert (await store.record_step(lease, StepKey("other"), None)).chunks == 0


async def test_artifacts_come_in_the_order_they_were_begun(harness: Harness, store: Any) -> None:
    lease = await leased(store)
    for name in ("c", "a", "b"):
        await store.append_artifact(lease, name, [])
    later = await next_lease(harness, store)
    await store.append_artifact(later, "a", [])
    artifacts = await store.artifacts(lease.task_id)
    assert [artifact.id for artifact in artifacts] == ["c", "a", "b"]
    assert (await found(store, lease.task_id)).artifacts == artifacts


async def test_an_artifact_is_found_by_its_id(store: Any) -> None:
    lease = await leased(store)
    await _write(store, lease, "x", name="summary.md", metadata={"lang": "en"})
    artifact = await store.get_artifact(lease.task_id, "a1")
    assert (artifact.id, artifact.task_id, artifact.name) == ("a1", lease.task_id, "summary.md")
    assert artifact.metadata == {"lang": "en"}
    assert artifact.updated_at == (await store.events(lease.task_id))[-1].at


async def test_an_unknown_artifact_is_none(store: Any) -> None:
    lease = await leased(store)
    assert await store.get_artifact(lease.task_id, "a1") is None
    assert await store.get_artifact("no such task", "a1") is None
    assert await store.artifacts("no such task") == []


async def test_another_owners_artifacts_are_not_found(store: Any) -> None:
    lease = await leased(store, owner="ana")
    await _write(store, lease, "x")
    for owner in ("ben", ""):
        assert await store.artifacts(lease.task_id, owner=owner) == []
        assert await store.get_artifact(lease.task_id, "a1", owner=owner) is None
    assert len(await store.artifacts(lease.task_id, owner="ana")) == 1
    assert await store.get_artifact(lease.task_id, "a1", owner=None) is not None


async def test_one_tenant_never_sees_anothers_artifacts_and_steps(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    await _write(store, lease, "x")
    await store.record_step(lease, FETCH, 1)
    other = harness.store(CONTRACT, tenant="other")
    assert await other.artifacts(lease.task_id, owner=None) == []
    assert await other.steps(lease.task_id) == []


async def test_steps_and_artifacts_are_still_there_after_a_reopen(
    harness: Harness, store: Any
) -> None:
    lease = await leased(store)
    step = await store.record_step(lease, FETCH, {"pages": 3}, digest="d1")
    await _write(store, lease, "half, ")
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.steps(lease.task_id) == [step]
    await _write(again, lease, "whole", append=True)
    assert await _text(again, lease) == "half, whole"


async def test_an_artifact_and_a_step_that_a_store_returns_are_the_callers_to_mutate(
    store: Any,
) -> None:
    lease = await leased(store)
    chunk = await _write(store, lease, "x", metadata={"a": [1]})
    step = await store.record_step(lease, FETCH, {"a": [1]})
    for _ in range(2):
        chunk.parts.clear()
        chunk.metadata["a"].append(2)
        step.result["a"].append(2)
        [artifact], [step] = await store.artifacts(lease.task_id), await store.steps(lease.task_id)
        assert (artifact.parts, artifact.metadata) == ([TextBlock("x")], {"a": [1]})
        assert step.result == {"a": [1]}
        artifact.parts.clear()
        artifact.metadata["a"].append(2)
