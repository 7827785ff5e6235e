"""The promises of the ledger about the size of what clients write beside their messages."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.contracts.tasks.checks import MAX_METADATA_BYTES, MAX_NOTE_BYTES
from holdfast.testing.ledger_scenes import found, submitted
from holdfast.values.errors import InvalidInputError
from holdfast.values.tasks.trace import TRACE_KEY

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_metadata_with_the_key_of_a_stored_trace_is_refused_and_nothing_is_written(
    store: Any,
) -> None:
    for value in (f"00-{'a' * 32}-{'b' * 16}-01", "", None, {"x": 1}):
        with pytest.raises(InvalidInputError) as refused:
            await submitted(store, metadata={"x": 1, TRACE_KEY: value})
        assert refused.value.field == f"metadata.{TRACE_KEY}"
    assert (await store.list()).tasks == []
    kept = await submitted(store, metadata={"x": {TRACE_KEY: "below"}})
    assert (await found(store, kept.id)).metadata == {"x": {TRACE_KEY: "below"}}


async def test_metadata_of_more_than_1_mib_is_refused_and_nothing_is_written(store: Any) -> None:
    frame = len('{"x":""}')
    kept = await submitted(store, metadata={"x": "é" * ((MAX_METADATA_BYTES - frame) // 2)})
    assert len((await found(store, kept.id)).metadata["x"]) > 1
    with pytest.raises(InvalidInputError) as refused:
        await submitted(store, metadata={"x": "x" * MAX_METADATA_BYTES}, submit_key="k1")
    assert refused.value.field == "metadata"
    with pytest.raises(InvalidInputError) as refused:
        await store.append_feedback(kept.id, "good", metadata={"x": "x" * MAX_METADATA_BYTES})
    assert refused.value.field == "metadata"
    assert await store.list_feedback(kept.id) == []
    assert len((await store.list()).tasks) == 1


async def test_a_note_of_more_than_64_kib_is_refused_and_nothing_is_written(store: Any) -> None:
    task = await submitted(store)
    for call in (store.cancel, store.pause, store.resume):
        with pytest.raises(InvalidInputError) as refused:
            await call(task.id, note="x" * (MAX_NOTE_BYTES + 1))
        assert refused.value.field == "note"
    with pytest.raises(InvalidInputError) as refused:
        await store.append_feedback(task.id, "é" * (MAX_NOTE_BYTES // 2 + 1))
    assert refused.value.field == "text"
    assert (await found(store, task.id)).version == task.version
    paused = await store.pause(task.id, note="x" * MAX_NOTE_BYTES)
    assert len(paused.note) == MAX_NOTE_BYTES
