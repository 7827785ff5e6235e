"""What every ``ShortTerm`` promises about versions and expiry."""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import Any

import pytest

from holdfast.contracts.short_term import ShortTerm
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, VersionConflictError
from holdfast.values.states import StateSnapshot

CONTRACT = "short_term"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_snapshot_has_the_state_and_its_version(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1, "b": 2})
    whole = await store.snapshot("s1")
    assert whole.state == {"a": 1, "b": 2}
    assert whole.version > 0
    assert await store.snapshot("s1", keys=["a"]) == StateSnapshot({"a": 1}, whole.version)


async def test_the_version_of_an_absent_state_is_zero(store: ShortTerm) -> None:
    assert await store.snapshot("s1") == StateSnapshot({}, version=0, expires_at=None)
    await store.set_state("s1", {"a": 1})
    await store.clear("s1")
    assert (await store.snapshot("s1")).version == 0


async def test_each_write_gives_a_higher_version(store: ShortTerm) -> None:
    versions = [0]
    for n in range(3):
        await store.set_state("s1", {"n": n})
        versions.append((await store.snapshot("s1")).version)
        await store.update_state("s1", {"n": n})
        versions.append((await store.snapshot("s1")).version)
    assert versions == sorted(set(versions))


async def test_set_state_and_update_state_return_the_new_version(store: ShortTerm) -> None:
    first = await store.set_state("s1", {"a": 1})
    assert first == (await store.snapshot("s1")).version
    second = await store.update_state("s1", {"b": 2}, expected_version=first)
    assert second == (await store.snapshot("s1")).version
    third = await store.set_state("s1", {"c": 3}, expected_version=second)
    assert third == (await store.snapshot("s1")).version
    assert first < second < third
    created = await store.update_state("s2", {"a": 1}, expected_version=0)
    assert created == (await store.snapshot("s2")).version


async def test_a_version_is_never_used_again_after_a_clear(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    old = (await store.snapshot("s1")).version
    await store.clear("s1")
    await store.set_state("s1", {"a": 2})
    assert (await store.snapshot("s1")).version > old


async def test_a_version_is_never_used_again_after_expiry(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    old = (await store.snapshot("s1")).version
    await harness.elapse(61)
    await store.set_state("s1", {"a": 2})
    assert (await store.snapshot("s1")).version > old


async def test_a_write_with_the_expected_version_is_done(store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    await store.update_state("s1", {"b": 2}, expected_version=(await store.snapshot("s1")).version)
    await store.set_state("other", {"x": 0})
    seen = await store.snapshot("s1", keys=[])
    await store.set_state("s1", {"c": 3}, expected_version=seen.version)
    assert await store.get_state("s1") == {"c": 3}


async def test_a_write_with_another_expected_version_is_a_version_conflict_and_writes_nothing(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"a": 1})
    old = (await store.snapshot("s1")).version
    await store.set_state("s1", {"a": 2})
    now = await store.snapshot("s1")
    with pytest.raises(VersionConflictError) as caught:
        await store.set_state("s1", {"a": 3}, expected_version=old)
    assert (caught.value.expected, caught.value.actual) == (old, now.version)
    with pytest.raises(VersionConflictError):
        await store.update_state("s1", {"b": 3}, expected_version=old)
    with pytest.raises(VersionConflictError) as caught:
        await store.update_state("absent", {"b": 3}, expected_version=old)
    assert caught.value.actual == 0
    assert await store.snapshot("s1") == now
    assert await store.snapshot("absent") == StateSnapshot({})


async def test_an_expected_version_of_zero_means_that_there_must_be_no_state_yet(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"a": 1}, expected_version=0)
    with pytest.raises(VersionConflictError):
        await store.set_state("s1", {"a": 2}, expected_version=0)
    await store.clear("s1")
    await store.update_state("s1", {"a": 3}, expected_version=0)
    assert await store.get_state("s1") == {"a": 3}


async def test_of_many_writers_who_expect_the_same_version_one_wins(
    store: ShortTerm,
) -> None:
    await store.set_state("s1", {"winner": None})
    version = (await store.snapshot("s1")).version
    outcomes = await asyncio.gather(
        *(
            (store.set_state if n % 2 else store.update_state)(
                "s1", {"winner": n}, expected_version=version
            )
            for n in range(20)
        ),
        return_exceptions=True,
    )
    won = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, int)]
    assert await store.get_state("s1") == {"winner": won[0]}
    lost = [type(outcome) for outcome in outcomes if not isinstance(outcome, int)]
    assert lost == [VersionConflictError] * 19


async def test_a_negative_expected_version_is_refused(store: ShortTerm) -> None:
    for call in (
        store.set_state("s1", {}, expected_version=-1),
        store.update_state("s1", {}, expected_version=-1),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == "expected_version"
    assert await store.snapshot("s1") == StateSnapshot({})


async def test_a_state_without_ttl_seconds_never_expires(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("s1", {"a": 1})
    await harness.elapse(365 * 86400)
    assert await store.get_state("s1") == {"a": 1}


async def test_a_state_expires_when_its_ttl_seconds_have_passed(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("set", {"a": 1}, ttl_seconds=60)
    await store.update_state("updated", {"a": 1}, ttl_seconds=60)
    await store.set_state("early", {"a": 1}, ttl_seconds=60)
    await harness.elapse(30)
    assert await store.get_state("early") == {"a": 1}
    await harness.elapse(31)
    assert await store.get_state("set") == await store.get_state("updated") == {}
    assert await store.snapshot("set") == StateSnapshot({})


async def test_every_write_starts_the_window_again(harness: Harness, store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    await harness.elapse(40)
    await store.update_state("s1", {"b": 2}, ttl_seconds=60)
    await harness.elapse(40)
    await store.set_state("s1", {"c": 3}, ttl_seconds=60)
    await harness.elapse(40)
    assert await store.get_state("s1") == {"c": 3}


async def test_a_read_does_not_start_the_window_again(harness: Harness, store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    await harness.elapse(40)
    assert await store.get_state("s1") == {"a": 1}
    assert (await store.snapshot("s1")).state == {"a": 1}
    await harness.elapse(40)
    assert await store.get_state("s1") == {}


async def test_a_write_without_ttl_seconds_keeps_the_window(
    harness: Harness, store: ShortTerm
) -> None:
    for session in ("s1", "s2", "s3", "s4"):
        await store.set_state(session, {"a": 1}, ttl_seconds=60)
    await harness.elapse(40)
    for session in ("s1", "s3"):
        await store.update_state(session, {"b": 2})
    for session in ("s2", "s4"):
        await store.set_state(session, {"b": 2})
    await harness.elapse(40)
    assert await store.get_state("s1") == {"a": 1, "b": 2}
    assert await store.get_state("s2") == {"b": 2}
    await harness.elapse(21)
    assert await store.get_state("s3") == await store.get_state("s4") == {}


async def test_a_write_with_ttl_seconds_sets_a_new_window(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    await store.update_state("s1", {}, ttl_seconds=600)
    await harness.elapse(500)
    await store.set_state("s1", {"a": 2}, ttl_seconds=10)
    await harness.elapse(11)
    assert await store.get_state("s1") == {}


async def test_a_snapshot_says_when_the_state_expires(harness: Harness, store: ShortTerm) -> None:
    await store.set_state("s1", {"a": 1})
    assert (await store.snapshot("s1")).expires_at is None
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    first = (await store.snapshot("s1")).expires_at
    await harness.elapse(30)
    assert (await store.snapshot("s1")).expires_at == first
    await store.update_state("s1", {})
    later = (await store.snapshot("s1")).expires_at
    assert first is not None
    assert later is not None
    assert first.tzinfo is UTC
    assert first < later


async def test_a_state_written_after_expiry_has_neither_the_old_keys_nor_the_old_window(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("s1", {"old": 1}, ttl_seconds=60)
    await harness.elapse(61)
    await store.update_state("s1", {"new": 2}, expected_version=0)
    await harness.elapse(86400)
    assert await store.get_state("s1") == {"new": 2}


@pytest.mark.parametrize("bad", [0, -1, float("nan"), "60"])
async def test_a_ttl_seconds_of_zero_or_less_is_refused(store: ShortTerm, bad: Any) -> None:
    for call in (
        store.set_state("s1", {}, ttl_seconds=bad),
        store.update_state("s1", {}, ttl_seconds=bad),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await call
        assert caught.value.field == "ttl_seconds"
    assert await store.snapshot("s1") == StateSnapshot({})


async def test_a_state_written_after_a_clear_does_not_expire_by_the_old_window(
    harness: Harness, store: ShortTerm
) -> None:
    await store.set_state("s1", {"a": 1}, ttl_seconds=60)
    await store.clear("s1")
    await store.set_state("s1", {"a": 2})
    await harness.elapse(61)
    assert await store.get_state("s1") == {"a": 2}
