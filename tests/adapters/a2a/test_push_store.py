"""``HoldfastPushStore`` beside the SDK's own store."""

from __future__ import annotations

import pytest
from a2a.server.tasks.inmemory_push_notification_config_store import (
    InMemoryPushNotificationConfigStore,
)
from a2a.types import a2a_pb2 as pb

from holdfast import State
from holdfast.adapters.a2a import HoldfastPushStore
from tests.adapters.a2a import random_tasks
from tests.adapters.a2a.users import ANA, BO, call_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _sorted(configs: list[pb.TaskPushNotificationConfig]) -> list[str]:
    return sorted(map(str, configs))


@pytest.mark.parametrize("seed", range(6))
async def test_random_calls_are_answered_like_the_sdks_store(state: State, seed: int) -> None:
    ours, theirs = HoldfastPushStore(state), InMemoryPushNotificationConfigStore()
    random = random_tasks.seeded(seed)
    for _ in range(60):
        task, call = random.choice(["t1", "t2", ""]), random.choice([ANA, BO, call_of("")])
        name = random.choice(["", "p1", "p2", "a/b"])
        if random.random() < 0.5:
            config = pb.TaskPushNotificationConfig(id=name, url="https://e.org", token=f"{random}")
            stored = await ours.set_info(task, config, call)
            assert stored == await theirs.set_info(task, config, call)
        elif random.random() < 0.5:
            which = random.choice([None, name])
            await ours.delete_info(task, call, which)
            await theirs.delete_info(task, call, which)
        mine, other = await ours.get_info(task, call), await theirs.get_info(task, call)
        assert _sorted(mine) == _sorted(other)
        everybody = await ours.get_info_for_dispatch(task)
        assert _sorted(everybody) == _sorted(await theirs.get_info_for_dispatch(task))


async def test_configs_are_each_owners_and_each_tenants_own(state: State) -> None:
    store = HoldfastPushStore(state)
    other = HoldfastPushStore(state.for_tenant("other " + state.tenant))
    config = pb.TaskPushNotificationConfig(id="p1", url="https://e.org")
    await store.set_info("t1", config, ANA)
    assert await store.get_info("t1", BO) == []
    assert await other.get_info_for_dispatch("t1") == []
    await store.delete_info("t1", BO)
    await store.delete_info("t1", BO, "p1")
    await other.delete_info("t1", ANA)
    assert len(await store.get_info("t1", ANA)) == 1
    await store.delete_info("t1", ANA)
    assert await store.get_info_for_dispatch("t1") == []
