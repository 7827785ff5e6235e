"""Mutants of the fence of promoted replicas: without it in one script, a promise breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from holdfast import ChatMessage, State
from holdfast.engines.redis import scripts
from holdfast.errors import HoldfastError
from holdfast.testing.valkey_server import ValkeyServer
from tests.durability.promotions import ANA, promoted_behind, said

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

Scene = Callable[[State], Awaitable[None]]
LIMIT_SECONDS = 120.0
MUTANT_SECONDS = 10.0
"""A mutant may also ask the server again and again."""


async def committed_events_are_read(state: State) -> None:
    """The events that the replica lacks are in the window."""
    assert await said(state, 2) == ["3", "4"]


async def committed_patches_are_read(state: State) -> None:
    """The patches that the replica lacks are in the state."""
    assert set(await state.short_term.get_state("s1")) == {"k1", "k2", "k3", "k4"}


async def an_event_follows_the_committed_ones(state: State) -> None:
    """An append before any read."""
    await state.history.append(ANA, ChatMessage.user("5"), session_id="s1")
    assert await said(state, 10) == ["1", "2", "3", "4", "5"]


async def a_batch_follows_the_committed_events(state: State) -> None:
    """An append of several before any read."""
    batch = [ChatMessage.user("5"), ChatMessage.user("6")]
    await state.history.append_many(ANA, batch, session_id="s1")
    assert await said(state, 10) == ["1", "2", "3", "4", "5", "6"]


async def a_patch_undoes_no_committed_one(state: State) -> None:
    """A patch before any read."""
    await state.short_term.update_state("s1", {"k5": 5})
    assert set(await state.short_term.get_state("s1")) == {"k1", "k2", "k3", "k4", "k5"}


async def a_cleared_state_stays_cleared(state: State) -> None:
    """A clear before any read."""
    await state.short_term.clear("s1")
    assert await state.short_term.get_state("s1") == {}


FENCED = {
    "hot_window": committed_events_are_read,
    "state_forget": a_cleared_state_stays_cleared,
    "state_get": committed_patches_are_read,
    "state_restore": committed_patches_are_read,
    "state_write": a_patch_undoes_no_committed_one,
}
"""Scripts, and what breaks when one of them does not look whether a session or state is stale.

Those that append are not among them: a flush finds out too that a position is taken.
"""
HOLDING = (
    committed_events_are_read,
    committed_patches_are_read,
    a_patch_undoes_no_committed_one,
    a_cleared_state_stays_cleared,
    an_event_follows_the_committed_ones,
    a_batch_follows_the_committed_events,
)


@pytest.fixture
def pair() -> Iterator[tuple[ValkeyServer, ValkeyServer]]:
    """A primary and its replica."""
    primary = ValkeyServer(fsync="no")
    primary.start()
    replica = ValkeyServer("--replicaof", f"127.0.0.1 {primary.port}", fsync="no")
    replica.start()
    yield primary, replica
    primary.remove()
    replica.remove()


async def _play(
    pair: tuple[ValkeyServer, ValkeyServer], scene: Scene, *, limit: float = LIMIT_SECONDS
) -> None:
    async with promoted_behind(pair) as (_, state), asyncio.timeout(limit):
        await scene(state)


@pytest.mark.parametrize("scene", HOLDING)
async def test_with_its_fence_a_replica_that_was_behind_hides_and_undoes_nothing(
    pair: tuple[ValkeyServer, ValkeyServer], scene: Scene
) -> None:
    await _play(pair, scene)


@pytest.mark.parametrize("script", sorted(FENCED))
async def test_without_the_fence_in_one_script_a_promise_breaks(
    pair: tuple[ValkeyServer, ValkeyServer], script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = dict(scripts._sources())
    unfenced = sources[script].replace("-- include promotion\n", sources["promotion"])
    assert unfenced != sources[script]
    monkeypatch.setattr(scripts, "_sources", lambda: sources | {script: unfenced})
    with pytest.raises((AssertionError, HoldfastError, TimeoutError)):
        await _play(pair, FENCED[script], limit=MUTANT_SECONDS)
