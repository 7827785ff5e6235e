"""The promises of ``PushLedger`` about what one owner and one task may take."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from holdfast.testing.ledger_scenes import submitted
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.tasks.push import PushConfig

CONTRACT = "tasks"
pytestmark = pytest.mark.asyncio(loop_scope="session")


def _config(at: int) -> PushConfig:
    return PushConfig(f"p{at}", f"https://example.org/{at}")


async def test_one_push_config_more_than_allowed_is_refused_and_a_known_one_is_replaced(
    store: Any,
) -> None:
    task = await submitted(store, owner="ana", push=[_config(0)])
    for at in (1, 2):
        await store.upsert_push_config(task.id, _config(at), owner="ana", max_configs=3)
    with pytest.raises(
        InvalidInputError, match=r"push: the task has 3 push configs, .* delete one"
    ):
        await store.upsert_push_config(task.id, _config(3), owner="ana", max_configs=3)
    again = PushConfig("p1", "https://example.org/other")
    await store.upsert_push_config(task.id, again, owner="ana", max_configs=3)
    found = await store.list_push_configs(task.id, owner="ana")
    assert found == [_config(0), again, _config(2)]
    await store.delete_push_config(task.id, "p0", owner="ana")
    await store.upsert_push_config(task.id, _config(3), owner="ana", max_configs=3)
    with pytest.raises(NotFoundError):
        await store.upsert_push_config(task.id, _config(9), owner="bob", max_configs=3)
    with pytest.raises(InvalidInputError, match="max_configs"):
        await store.upsert_push_config(task.id, _config(9), owner="ana", max_configs=-1)


async def test_10_concurrent_push_configs_are_no_more_than_allowed(store: Any) -> None:
    task = await submitted(store)
    done = await asyncio.gather(
        *(store.upsert_push_config(task.id, _config(at), max_configs=3) for at in range(10)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, InvalidInputError) for one in done) == 7
    assert len(await store.list_push_configs(task.id)) == 3


async def _waiting(store: Any, **counts: int) -> None:
    """So many entries of each owner that are due, the first owner's first."""
    for owner, count in counts.items():
        for at in range(count):
            await submitted(store, owner=owner, push=[_config(at)])


async def test_of_each_owner_at_most_per_owner_entries_are_claimed_those_that_are_busy_counted(
    store: Any,
) -> None:
    await _waiting(store, ana=10, bob=2, eve=10)
    claimed = await store.claim_outbox(limit=20, per_owner=4, busy={"eve": 3, "zoe": 9})
    assert Counter(one.owner for one in claimed) == {"ana": 4, "bob": 2, "eve": 1}
    assert len({one.id for one in claimed}) == 7
    busy = {"ana": 4, "bob": 2, "eve": 4}
    assert await store.claim_outbox(limit=20, per_owner=4, busy=busy) == []
    more = await store.claim_outbox(limit=20, per_owner=4, busy={"ana": 3, "eve": 5})
    assert [one.owner for one in more] == ["ana"]
    assert Counter(one.owner for one in await store.claim_outbox(limit=100)) == {
        "ana": 5,
        "eve": 9,
    }
    with pytest.raises(InvalidInputError, match="per_owner"):
        await store.claim_outbox(per_owner=-1)
    with pytest.raises(InvalidInputError, match="busy"):
        await store.claim_outbox(per_owner=1, busy={"ana": -1})


async def test_owners_take_turns_first_those_with_the_fewest_entries_that_are_busy(
    store: Any,
) -> None:
    await _waiting(store, ana=5, bob=2, eve=2)
    claimed = await store.claim_outbox(limit=4, per_owner=10, busy={"bob": 2})
    assert [one.owner for one in claimed] == ["ana", "eve", "ana", "eve"]
    claimed = await store.claim_outbox(limit=1, per_owner=10, busy={"ana": 2, "eve": 2})
    assert [one.owner for one in claimed] == ["bob"]
    rest = await store.claim_outbox(limit=10, per_owner=10)
    assert [one.owner for one in rest] == ["ana", "bob", "ana", "ana"]
