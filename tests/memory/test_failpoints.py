"""Whoever appends, consolidates, clears or refills may die between any two durable steps."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import holdfast
from holdfast.engines.hybrid.consolidation import Consolidator
from holdfast.engines.hybrid.log import HybridLog
from holdfast.values.content import ChatMessage
from holdfast.values.failpoints import FAILPOINTS, failpoint, hit
from tests.engines.hybrid import HybridHarness, valkey
from tests.erasure import test_resume
from tests.memory.scenes import ANA, event, flush, gaps, notes, stored
from tests.sealing import test_data_keys

pytestmark = pytest.mark.asyncio(loop_scope="session")
CODE = "".join(path.read_text() for path in Path(holdfast.__file__).parent.rglob("*.py"))
TESTED = "".join(
    Path(one).read_text() for one in (__file__, test_resume.__file__, test_data_keys.__file__)
)


class DiedError(BaseException):
    """What the process would have felt."""


def die() -> None:
    raise DiedError


def restart(hybrid: HybridHarness) -> None:
    """Another process: it remembers nothing."""
    hybrid.die()


async def test_every_failpoint_stands_between_two_steps_and_is_tested() -> None:
    for name in FAILPOINTS:
        assert len(re.findall(rf'(?m)^\s+hit\("{re.escape(name)}"\)', CODE)) == 1, name
        assert f'"{name}"' in TESTED, name


async def test_a_failpoint_that_is_not_there_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="no failpoint"), failpoint("nowhere", die):
        pass
    hit("append.after_hot")


async def _append_is_safe_to_repeat(hybrid: HybridHarness, name: str) -> None:
    store = hybrid.store("episodes")
    await store.append([event("first")])
    second = event("second")
    with failpoint(name, die), pytest.raises(DiedError):
        await store.append([second])
    restart(hybrid)
    again = hybrid.store("episodes")
    await again.append([second, event("third")])
    await flush(hybrid)
    found = await stored(hybrid)
    assert notes(found) == ["first", "second", "third"]
    assert len({(one.epoch, one.seq) for one in found}) == 3


async def test_an_append_that_dies_after_the_hot_log_has_it(hybrid: HybridHarness) -> None:
    await _append_is_safe_to_repeat(hybrid, "append.after_hot")
    assert [one.seq for one in await stored(hybrid)] == [1, 2, 3]
    assert await gaps(hybrid) == 0


async def test_an_append_that_dies_after_it_went_aside(
    hybrid: HybridHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("first")])
    log = hybrid.log(hybrid._prefix + "default")
    second = event("second")
    with monkeypatch.context() as patched:
        patched.setattr(log._breaker, "down_until", float("inf"))
        with failpoint("append.after_fallback", die), pytest.raises(DiedError):
            await store.append([second])
    restart(hybrid)
    await flush(hybrid)
    again = hybrid.store("episodes")
    await again.append([second, event("third")])
    await flush(hybrid)
    found = await stored(hybrid)
    assert notes(found) == ["first", "second", "third"]
    assert len({one.seq for one in found}) == 3
    assert await gaps(hybrid) == 0


async def test_a_committed_append_that_dies_after_it_wrote_what_redis_lost(
    hybrid: HybridHarness,
) -> None:
    store, tenant = hybrid.store("episodes"), hybrid._prefix + "default"
    hybrid.log(tenant)._level = "committed"
    await store.append([event("first")])
    second = event("second")

    def empty() -> None:
        assert valkey().ask("FLUSHALL") == "+OK"

    with (
        failpoint("append.after_hot", empty),
        failpoint("append.after_rewrite", die),
        pytest.raises(DiedError),
    ):
        await store.append([second])
    restart(hybrid)
    again = hybrid.store("episodes")
    await again.append([second, event("third")])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["first", "second", "third"]


@pytest.mark.parametrize(
    "name",
    [
        "consolidate.after_claim",
        "consolidate.before_commit",
        "consolidate.after_commit",
        "consolidate.after_acknowledge",
    ],
)
async def test_a_consolidator_that_dies_is_followed_by_the_next(
    hybrid: HybridHarness, name: str
) -> None:
    store = hybrid.store("episodes")
    sent = await store.append([event(f"{at}") for at in range(10)])
    with failpoint(name, die), pytest.raises(DiedError):
        await hybrid.consolidator.run_once()
    await store.append([event("10")])
    assert notes(await store.recent(ANA, session_id="s1")) == [f"{at}" for at in range(11)]
    other = Consolidator(hybrid.queue, hybrid.durable, advance_epoch=hybrid._advance_epoch)
    assert await other.drain(limit_seconds=30)
    found = await stored(hybrid)
    assert found[:10] == sent
    assert [one.seq for one in found] == list(range(1, 12))
    assert notes(await store.recent(ANA, session_id="s1")) == [f"{at}" for at in range(11)]
    assert await gaps(hybrid) == 0


@pytest.mark.parametrize("name", ["unload.after_mark", "unload.after_durable"])
async def test_a_consolidator_that_dies_while_it_cools_a_session(
    hybrid: HybridHarness, name: str
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("first")])
    await flush(hybrid)
    await hybrid.elapse(120)
    with failpoint(name, die), pytest.raises(DiedError):
        await hybrid.consolidator.run_once()
    [second] = await store.append([event("second")])
    assert (second.epoch, second.seq) == (1, 2)
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    [third] = await store.append([event("third")])
    assert (third.epoch, third.seq) == (1, 3)
    assert await gaps(hybrid) == 0


@pytest.mark.parametrize("name", ["clear.after_place", "clear.after_durable"])
async def test_a_clear_that_dies_is_done_again_and_nothing_comes_back(
    hybrid: HybridHarness, name: str
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("flushed"), event("mine", run_id="r1")])
    await flush(hybrid)
    await store.append([event("waiting"), event("mine too", run_id="r1")])
    with failpoint(name, die), pytest.raises(DiedError):
        await store.clear("s1", run_id="r1")
    await store.clear("s1", run_id="r1")
    assert notes(await store.recent(ANA, session_id="s1")) == ["flushed", "waiting"]
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["flushed", "waiting"]
    assert notes(await store.recent(ANA, session_id="s1")) == ["flushed", "waiting"]


async def test_a_clear_whose_writer_died_is_finished_by_the_flush(hybrid: HybridHarness) -> None:
    store = hybrid.store("episodes")
    await store.append([event("gone"), event("gone too")])
    with failpoint("clear.after_durable", die), pytest.raises(DiedError):
        await store.clear("s1")
    await flush(hybrid)
    assert await stored(hybrid) == []
    assert await store.recent(ANA, session_id="s1") == []


@pytest.mark.parametrize(
    ("name", "left"),
    [("edit.after_unload", ["first", "second"]), ("edit.after_durable", ["first"])],
)
async def test_a_pop_that_dies_is_done_or_not_and_the_session_goes_on(
    hybrid: HybridHarness, name: str, left: list[str]
) -> None:
    said = [ChatMessage.user("first"), ChatMessage.user("second")]
    await hybrid.store("history").append_many(ANA, said, session_id="s1")
    with failpoint(name, die), pytest.raises(DiedError):
        await hybrid.store("history").pop(ANA, session_id="s1")
    restart(hybrid)
    store = hybrid.store("history")
    texts = [one.text for one in await store.get_messages(ANA, session_id="s1")]
    assert texts == left
    await store.append(ANA, ChatMessage.user("third"), session_id="s1")
    await flush(hybrid)
    found = [one.to_message().text for one in await stored(hybrid)]
    assert found == [*left, "third"]
    assert await gaps(hybrid) == 0


@pytest.mark.parametrize(
    "name",
    ["refill.after_lock", "refill.after_grant", "refill.after_window", "append.after_reserve"],
)
async def test_whoever_refills_a_session_and_dies_is_followed_by_the_next(
    hybrid: HybridHarness, name: str
) -> None:
    store = hybrid.store("episodes")
    await store.append([event("first")])
    await flush(hybrid)
    await hybrid.elapse(120)
    await hybrid.consolidator.run_once()
    await hybrid.elapse(7200)
    with failpoint(name, die), pytest.raises(DiedError):
        await store.append([event("lost with its writer")])
    restart(hybrid)
    again = hybrid.store("episodes")
    [second] = await again.append([event("second")])
    assert second.seq > 1
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["first", "second"]
    assert await gaps(hybrid) == 0


@pytest.mark.parametrize(
    ("name", "lost"), [("refill.after_window", 0), ("append.after_reserve", 1)]
)
async def test_a_grant_that_redis_loses_is_a_gap_once_it_has_numbers(
    hybrid: HybridHarness, name: str, lost: int
) -> None:
    store = hybrid.store("episodes")
    with failpoint(name, die), pytest.raises(DiedError):
        await store.append([event("lost with its writer")])
    assert valkey().ask("FLUSHALL") == "+OK"
    restart(hybrid)
    await hybrid.store("episodes").append([event("first")])
    await flush(hybrid)
    assert notes(await stored(hybrid)) == ["first"]
    assert await gaps(hybrid) == lost


@pytest.mark.parametrize("name", ["state.after_read", "state.after_save"])
async def test_a_state_whose_saver_died_is_saved_by_the_next(
    hybrid: HybridHarness, name: str
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    with failpoint(name, die), pytest.raises(DiedError):
        await hybrid.consolidator.run_once()
    await states.update_state("s1", {"more": True})
    await flush(hybrid)
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {"step": 1, "more": True}


@pytest.mark.parametrize("name", ["state_commit.after_read", "state_commit.after_save"])
async def test_a_write_to_a_state_whose_writer_died_before_its_commit_is_saved_by_the_next(
    hybrid: HybridHarness, name: str
) -> None:
    states = hybrid.store("short_term")
    states._storage._committed = True
    with failpoint(name, die), pytest.raises(DiedError):
        await states.set_state("s1", {"step": 1})
    await states.update_state("s1", {"more": True})
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {"step": 1, "more": True}


async def test_a_clear_of_a_state_that_dies_is_done_again(hybrid: HybridHarness) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    await flush(hybrid)
    with failpoint("state_clear.after_durable", die), pytest.raises(DiedError):
        await states.clear("s1")
    await states.clear("s1")
    await flush(hybrid)
    assert valkey().ask("FLUSHALL") == "+OK"
    assert await states.get_state("s1") == {}


@pytest.mark.parametrize("name", ["state_evict.after_begin", "state_evict.after_durable"])
async def test_an_eviction_whose_consolidator_died_is_finished_by_the_next(
    hybrid: HybridHarness, name: str
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    before = await states.snapshot("s1")
    await flush(hybrid)
    await hybrid.elapse(1)
    with failpoint(name, die), pytest.raises(DiedError):
        await hybrid.consolidator.run_once()
    assert await states.snapshot("s1") == before
    await hybrid.consolidator.run_once()
    assert hybrid.consolidator.metrics.evicted == 1
    restart(hybrid)
    states = hybrid.store("short_term")
    assert await states.snapshot("s1") == before
    await states.update_state("s1", {"step": 2})
    await flush(hybrid)
    await hybrid.elapse(1)
    with failpoint(name, die), pytest.raises(DiedError):
        await hybrid.consolidator.run_once()
    # A write after that is not saved, and its writer dies with Redis: it is reported.
    await states.update_state("s1", {"step": 3})
    restart(hybrid)
    assert (await hybrid.store("short_term").get_state("s1")) == {"step": 3}
    assert valkey().ask("FLUSHALL") == "+OK"
    found = await hybrid.store("short_term").snapshot("s1")
    assert (found.state, found.as_of is not None) == ({"step": 2}, True)


@pytest.mark.parametrize("name", ["state_write.after_register", "state_restore.after_load"])
async def test_a_write_to_an_evicted_state_that_dies_leaves_it_as_it_was(
    hybrid: HybridHarness, name: str
) -> None:
    states = hybrid.store("short_term")
    await states.set_state("s1", {"step": 1})
    before = await states.snapshot("s1")
    await flush(hybrid)
    await hybrid.elapse(1)
    await hybrid.consolidator.run_once()
    assert hybrid.consolidator.metrics.evicted == 1
    with failpoint(name, die), pytest.raises(DiedError):
        await states.update_state("s1", {"step": 2})
    restart(hybrid)
    assert await hybrid.store("short_term").snapshot("s1") == before
    await hybrid.store("short_term").update_state("s1", {"step": 2})
    await flush(hybrid)
    await hybrid.elapse(1)
    await hybrid.consolidator.run_once()
    assert hybrid.consolidator.metrics.evicted == 2
    assert await hybrid.store("short_term").get_state("s1") == {"step": 2}


@pytest.mark.parametrize(
    "name",
    ["state_fallback.after_write", "state_fallback.after_read", "state_fallback.after_merge"],
)
async def test_a_fallback_write_of_a_state_is_merged_once_whoever_dies(
    hybrid: HybridHarness, name: str
) -> None:
    states = hybrid.store("short_term")

    async def fall_back_and_merge() -> None:
        hybrid.breaker.down_until = float("inf")
        await states.update_state("s1", {"step": 1})
        hybrid.breaker.down_until = 0.0
        await states.get_state("s1")

    with failpoint(name, die), pytest.raises(DiedError):
        await fall_back_and_merge()
    await hybrid.reopen()
    states = hybrid.store("short_term")
    done = name == "state_fallback.after_merge"
    if done:
        await states.update_state("s1", {"step": 2})
    await flush(hybrid)
    # What was written after it was done is not undone by doing it again.
    assert await states.get_state("s1") == {"step": 2 if done else 1}
    assert await hybrid.fallback_writes.read(hybrid._prefix + "default", "s1") is None


async def test_many_writers_to_a_cold_session_get_one_grant(hybrid: HybridHarness) -> None:
    logs = [hybrid.store("episodes") for _ in range(4)]
    tenant = hybrid._prefix + "default"
    others = [
        HybridLog(
            hybrid.log(tenant).hot,
            hybrid.log(tenant).durable,
            hybrid.consolidator,
            tenant=tenant,
            level="fsync",
        )
        for _ in logs
    ]
    for store, log in zip(logs, others, strict=True):
        store._log = log
    await asyncio.gather(
        *(store.append([event(f"{who}.{at}")]) for who, store in enumerate(logs) for at in range(5))
    )
    await flush(hybrid)
    found = await stored(hybrid)
    assert [(one.epoch, one.seq) for one in found] == [(1, at) for at in range(1, 21)]
    assert await gaps(hybrid) == 0
