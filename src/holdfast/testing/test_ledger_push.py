"""The promises of ``PushLedger``: push configs and the outbox."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.testing.harness import Harness
from holdfast.testing.ledger_scenes import claimed, leased, submitted
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.errors import NotFoundError
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.push import OutboxEntry, PushConfig

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")

ONE = PushConfig("p1", "https://example.org/one", "secret", {"schemes": ["Bearer"], "n": -0.0})
TWO = PushConfig("p2", "https://example.org/two")


async def _drained(store: Any) -> list[OutboxEntry]:
    """Deliver all that can be delivered now."""
    delivered = []
    while entries := await store.claim_outbox():
        for entry in entries:
            assert await store.mark_delivered(entry)
        delivered += entries
    return delivered


def _places(entries: list[OutboxEntry]) -> list[tuple[str, int]]:
    return sorted((entry.config.id, entry.event.seq) for entry in entries)


async def test_a_push_config_comes_back_as_it_was_stored(store: Any) -> None:
    task = await submitted(store)
    await store.upsert_push_config(task.id, ONE)
    back = await store.get_push_config(task.id, "p1")
    assert back == ONE
    assert repr(back.authentication) == repr(ONE.authentication)
    back.authentication.clear()
    assert await store.get_push_config(task.id, "p1") == ONE
    assert await store.get_push_config(task.id, "p2") is None


async def test_a_task_has_several_push_configs_listed_by_id(store: Any) -> None:
    task = await submitted(store, push=[TWO])
    await store.upsert_push_config(task.id, ONE)
    assert await store.list_push_configs(task.id) == [ONE, TWO]


async def test_a_push_config_with_a_known_id_is_replaced(store: Any) -> None:
    task = await submitted(store, push=[ONE])
    other = PushConfig("p1", "https://example.org/other")
    await store.upsert_push_config(task.id, other)
    assert await store.list_push_configs(task.id) == [other]
    [entry] = await store.claim_outbox()
    assert entry.config == other


async def test_a_deleted_push_config_is_gone(store: Any) -> None:
    task = await submitted(store, push=[ONE, TWO])
    assert await store.delete_push_config(task.id, "p1") is True
    assert await store.get_push_config(task.id, "p1") is None
    assert await store.list_push_configs(task.id) == [TWO]


async def test_deleting_a_push_config_that_is_not_there_is_false(store: Any) -> None:
    task = await submitted(store, push=[ONE])
    assert await store.delete_push_config(task.id, "p2") is False
    assert await store.delete_push_config("no such task", "p1") is False


async def test_push_configs_of_an_unknown_task_are_none_and_cannot_be_stored(store: Any) -> None:
    with pytest.raises(NotFoundError):
        await store.upsert_push_config("no such task", ONE)
    assert await store.get_push_config("no such task", "p1") is None
    assert await store.list_push_configs("no such task") == []
    assert await store.list_outbox("no such task") == []


async def test_another_owners_push_configs_are_not_found(store: Any) -> None:
    task = await submitted(store, owner="ana", push=[ONE])
    for owner in ("ben", ""):
        with pytest.raises(NotFoundError):
            await store.upsert_push_config(task.id, TWO, owner=owner)
        assert await store.get_push_config(task.id, "p1", owner=owner) is None
        assert await store.list_push_configs(task.id, owner=owner) == []
        assert await store.delete_push_config(task.id, "p1", owner=owner) is False
        assert await store.list_outbox(task.id, owner=owner) == []
    assert await store.list_push_configs(task.id, owner="ana") == [ONE]
    assert await store.list_push_configs(task.id, owner=None) == [ONE]


async def test_a_push_configs_secrets_are_not_in_its_repr(store: Any) -> None:
    task = await submitted(store, push=[ONE])
    back = await store.get_push_config(task.id, "p1")
    assert "secret" not in repr(back)
    assert "Bearer" not in repr(back)
    assert "secret" not in repr(await store.claim_outbox())


async def test_push_configs_are_still_there_after_a_reopen(harness: Harness, store: Any) -> None:
    task = await submitted(store, push=[ONE, TWO])
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.list_push_configs(task.id) == [ONE, TWO]


async def test_a_push_config_given_at_submit_hears_of_the_submit_itself(store: Any) -> None:
    await submitted(store, push=[ONE])
    assert [entry.event.kind for entry in await _drained(store)] == ["transition", "message"]


async def test_every_message_transition_and_artifact_chunk_is_announced_to_every_push_config(
    store: Any,
) -> None:
    lease = await leased(store, push=[ONE])
    await store.upsert_push_config(lease.task_id, TWO)
    await store.append_message(lease, ChatMessage.assistant("on it"))
    await store.append_artifact(lease, "a1", [TextBlock("x")])
    await store.transition(lease, "input-required", message=ChatMessage.assistant("which?"))
    await store.respond(lease.task_id, ChatMessage.user("this"))
    events = await store.events(lease.task_id)
    expected = [("p1", event.seq) for event in events]
    expected += [("p2", event.seq) for event in events[3:]]
    assert _places(await _drained(store)) == sorted(expected)


async def test_steps_and_requests_are_not_announced(store: Any) -> None:
    lease = await leased(store, push=[ONE])
    await _drained(store)
    await store.record_step(lease, StepKey("fetch"), 1)
    await store.pause(lease.task_id)
    assert await store.claim_outbox() == []


async def test_a_task_without_push_configs_announces_nothing(store: Any) -> None:
    lease = await leased(store)
    await store.transition(lease, "completed")
    assert await store.claim_outbox() == []
    await store.upsert_push_config(lease.task_id, ONE)
    assert await store.claim_outbox() == []


async def test_an_entry_carries_the_event_and_the_push_config(store: Any) -> None:
    task = await submitted(store, push=[ONE])
    [entry] = await store.claim_outbox()
    [event, _] = await store.events(task.id)
    assert (entry.event, entry.config) == (event, ONE)
    assert (entry.attempts, entry.last_error, entry.dead) == (1, "", False)


async def test_claimed_entries_are_not_claimed_again_while_their_lease_lasts(
    harness: Harness, store: Any
) -> None:
    await submitted(store, push=[ONE])
    assert len(await store.claim_outbox(lease_seconds=30)) == 1
    await harness.elapse(29)
    assert await store.claim_outbox() == []


async def test_an_entry_whose_claimer_died_is_claimed_again(harness: Harness, store: Any) -> None:
    await submitted(store, push=[ONE])
    [first] = await store.claim_outbox(lease_seconds=30)
    await harness.elapse(30)
    [again] = await store.claim_outbox()
    assert (again.id, again.event, again.attempts) == (first.id, first.event, 2)


async def test_a_delivered_entry_is_gone(harness: Harness, store: Any) -> None:
    task = await submitted(store, push=[ONE])
    delivered = await _drained(store)
    assert len(delivered) == 2
    await harness.elapse(1000)
    assert await store.claim_outbox() == []
    assert await store.list_outbox(task.id) == []


async def test_entries_of_one_push_config_are_claimed_one_after_the_other_in_order(
    store: Any,
) -> None:
    lease = await leased(store, push=[ONE, TWO])
    await store.transition(lease, "completed")
    order: dict[str, list[int]] = {"p1": [], "p2": []}
    while entries := await store.claim_outbox():
        assert len({entry.config.id for entry in entries}) == len(entries)
        for entry in entries:
            order[entry.config.id].append(entry.event.seq)
            await store.mark_delivered(entry)
    assert order == {"p1": [1, 2, 3, 4], "p2": [1, 2, 3, 4]}


async def test_a_failing_entry_does_not_hold_up_other_push_configs(store: Any) -> None:
    await submitted(store, push=[ONE, TWO])
    failing, _ = sorted(await store.claim_outbox(), key=lambda entry: entry.config.id)
    assert failing.config == ONE
    assert await store.mark_failed(failing, "503")
    other = await submitted(store, push=[ONE])
    moved = await store.claim_outbox()
    assert [(one.event.task_id, one.config.id) for one in moved] == [(other.id, "p1")]


async def test_a_failed_delivery_waits_longer_each_time(harness: Harness, store: Any) -> None:
    task = await submitted(store, push=[ONE])
    for seconds in (1, 2, 4, 8):
        [entry] = await store.claim_outbox()
        assert await store.mark_failed(entry, f"no answer in {seconds} s")
        [waiting, _] = await store.list_outbox(task.id)
        assert waiting.last_error == f"no answer in {seconds} s"
        await harness.elapse(seconds - 0.5)
        assert await store.claim_outbox() == []
        await harness.elapse(0.5)
    [entry] = await store.claim_outbox()
    assert entry.attempts == 5


async def test_a_delivery_that_fails_too_often_is_given_up_and_kept(
    harness: Harness, store: Any
) -> None:
    task = await submitted(store, push=[ONE])
    for _ in range(3):
        [entry] = await store.claim_outbox()
        assert await store.mark_failed(entry, "410 Gone", max_attempts=3)
        await harness.elapse(10)
    given_up, waiting = await store.list_outbox(task.id)
    assert (given_up.dead, given_up.attempts, given_up.last_error) == (True, 3, "410 Gone")
    assert not waiting.dead
    assert not await store.mark_failed(given_up, "again")


async def test_after_a_given_up_delivery_the_next_ones_go_on(store: Any) -> None:
    await submitted(store, push=[ONE])
    [entry] = await store.claim_outbox()
    await store.mark_failed(entry, "410 Gone", max_attempts=1)
    [following] = await store.claim_outbox()
    assert following.event.seq == entry.event.seq + 1


async def test_a_late_failure_report_does_not_disturb_the_next_claimer(
    harness: Harness, store: Any
) -> None:
    task = await submitted(store, push=[ONE])
    [late] = await store.claim_outbox(lease_seconds=30)
    await harness.elapse(30)
    [current] = await store.claim_outbox(lease_seconds=30)
    assert not await store.mark_failed(late, "too late")
    [stored, _] = await store.list_outbox(task.id)
    assert (stored.due_at, stored.last_error) == (current.due_at, "")
    assert await store.mark_delivered(current)


async def test_marking_an_entry_that_is_gone_is_false(store: Any) -> None:
    await submitted(store, push=[ONE])
    [entry] = await store.claim_outbox()
    assert await store.mark_delivered(entry)
    assert not await store.mark_delivered(entry)
    assert not await store.mark_failed(entry, "503")


async def test_deleting_a_push_config_removes_its_deliveries(harness: Harness, store: Any) -> None:
    task = await submitted(store, push=[ONE])
    [entry] = await store.claim_outbox()
    await store.delete_push_config(task.id, "p1")
    assert not await store.mark_failed(entry, "503")
    await store.upsert_push_config(task.id, ONE)
    await harness.elapse(1000)
    assert await store.claim_outbox() == []
    await store.cancel(task.id)
    assert [one.event.kind for one in await _drained(store)] == ["transition"]


async def test_20_concurrent_claims_of_the_outbox_give_each_entry_once(store: Any) -> None:
    for _ in range(10):
        await submitted(store, push=[ONE])
    batches = await asyncio.gather(*(store.claim_outbox(limit=2) for _ in range(20)))
    ids = [entry.id for batch in batches for entry in batch]
    assert len(ids) == len(set(ids)) == 10
    assert all(entry.attempts == 1 for batch in batches for entry in batch)


async def test_a_limit_of_zero_claims_no_entry(store: Any) -> None:
    await submitted(store, push=[ONE])
    assert await store.claim_outbox(limit=0) == []


async def test_one_tenant_never_claims_anothers_entries(harness: Harness, store: Any) -> None:
    await submitted(store, push=[ONE])
    other = harness.store(CONTRACT, tenant="other")
    assert await other.claim_outbox() == []
    [entry] = await store.claim_outbox()
    assert not await other.mark_delivered(entry)
    assert await store.mark_delivered(entry)


async def test_undelivered_entries_are_still_there_after_a_reopen(
    harness: Harness, store: Any
) -> None:
    await submitted(store, push=[ONE])
    await claimed(store)
    await harness.reopen()
    delivered = await _drained(harness.store(CONTRACT))
    assert [entry.event.seq for entry in delivered] == [1, 2, 3]
