"""Which key seals what of a task, and what an erasure does to it."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import ANY_OWNER
from holdfast.errors import SealedError
from holdfast.sealing.data_keys import INDEX
from holdfast.spi import StepKey
from tests.engines.postgres_database import connected, migrated_database
from tests.sealing.conftest import RING, Place
from tests.sealing.test_sealed_tasks import CANARY, fill, said

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_owner_has_a_key_of_its_own(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    ana = await state.tasks.submit("writer", said(), owner="ana")
    ben = await state.tasks.submit("writer", said(), owner="ben")
    before = await place.dump()
    await state.erase(subject="ana")
    assert await state.tasks.get(ana.id, owner=ANY_OWNER) is None
    assert ana.id in before
    found = await state.tasks.get(ben.id, owner="ben")
    assert found is not None
    assert found.messages[0].text == CANARY


async def test_everything_of_a_task_has_the_key_of_its_owner(place: Place) -> None:
    state = await place.open()
    await fill(state, "ana")
    # A process that has not claimed the task asks whose it is.
    await state.tasks.submit("writer", said(), owner="ana")
    [claimed] = await state.tasks.claim("w1")
    other = (await place.open()).tasks
    await other.record_step(claimed.lease, StepKey("s"), CANARY)
    await other.transition(claimed.lease, "failed", note=CANARY)
    storage = state._connections.data_keys
    assert storage is not None
    subjects = {one.subject for one in await storage("default").page(0, 100)}
    assert subjects == {"ana", INDEX}


async def test_rows_of_tasks_that_were_moved_by_hand_do_not_open() -> None:
    async with (
        migrated_database() as url,
        holdfast.open(url, seal=RING) as state,
        connected(url) as connection,
    ):
        ledger = state.tasks
        hers = await ledger.submit("writer", said("hers"), owner="ana")
        his = await ledger.submit("writer", said("his"), owner="ben")
        leases = {one.task.id: one.lease for one in await ledger.claim("w1", limit=2)}
        for at in (1, 2):
            await ledger.append_message(leases[hers.id], said(f"m{at}", id=f"m{at}"))

        async def move(task_id: str, seq: int, to_task: str, to_seq: int) -> None:
            await connection.execute(
                "UPDATE holdfast.task_events SET body = (SELECT body FROM holdfast.task_events "
                "WHERE task_id = $1 AND seq = $2) WHERE task_id = $3 AND seq = $4",
                *(task_id, seq, to_task, to_seq),
            )

        await move(hers.id, 2, his.id, 2)
        with pytest.raises(SealedError, match="another owner"):
            await ledger.get(his.id, owner="ben")
        await move(hers.id, 4, hers.id, 5)
        with pytest.raises(SealedError, match="another record"):
            await ledger.get(hers.id, owner="ana")


async def test_a_process_without_keys_can_erase_what_is_sealed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    await fill(state, "ana")
    await state.for_owner("ana").blobs.store(CANARY)
    plain = await place.open(None)
    report = await plain.erase(subject="ana")
    assert report.counts == {"blobs": 1, "schedules": 1, "tasks": 3}
    assert report.receipt is not None
    assert len(report.receipt["data_keys"]) == 1
    assert (await state.tasks.list(owner="ana")).tasks == []
