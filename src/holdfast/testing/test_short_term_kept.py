"""What every ``ShortTerm`` promises about the versions of a state that are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC
from itertools import pairwise
from typing import Any

import pytest

from holdfast.contracts.short_term import ShortTerm
from holdfast.testing.harness import STATE_VERSIONS, Harness
from holdfast.values.errors import InvalidInputError, NotFoundError, VersionConflictError

CONTRACT = "short_term"
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.needs(STATE_VERSIONS)]


@pytest.fixture
def opened(harness: Harness) -> Callable[..., ShortTerm]:
    """Opens a store that keeps as many versions as the harness says."""

    def open_store(**options: Any) -> ShortTerm:
        store = harness.store("short_term", **{"kept_versions": harness.state_versions, **options})
        assert isinstance(store, ShortTerm)
        return store

    return open_store


@pytest.fixture
def kept(opened: Callable[..., ShortTerm]) -> ShortTerm:
    """A store that keeps versions."""
    return opened()


async def test_versions_lists_the_kept_versions_of_a_state_newest_first(kept: ShortTerm) -> None:
    first = await kept.set_state("s1", {"a": 1})
    second = await kept.update_state("s1", {"b": 2})
    third = await kept.update_state("s1", {}, expected_version=second)
    found = await kept.versions("s1")
    assert [one.version for one in found] == [third, second, first]
    times = [one.written_at for one in found]
    assert times == sorted(times, reverse=True)
    assert times[0].tzinfo is UTC
    assert await kept.versions("absent") == []


async def test_a_snapshot_at_a_version_has_the_state_that_was_written_with_it(
    kept: ShortTerm,
) -> None:
    first = await kept.set_state("s1", {"a": 1, "": {"z": [None], "y": "\x00\u2028"}})
    second = await kept.update_state("s1", {"b": 2.0}, delete_keys=["a"])
    third = await kept.set_state("s1", {"c": 3})
    seen = await kept.snapshot("s1", at=first)
    assert seen.state == {"a": 1, "": {"z": [None], "y": "\x00\u2028"}}
    assert (seen.version, seen.expires_at) == (first, None)
    assert (await kept.snapshot("s1", at=second)).state == {
        "": {"z": [None], "y": "\x00\u2028"},
        "b": 2.0,
    }
    assert await kept.snapshot("s1", at=third) == await kept.snapshot("s1")


async def test_a_snapshot_at_a_version_may_be_of_some_keys(kept: ShortTerm) -> None:
    first = await kept.set_state("s1", {"a": 1, "b": 2})
    await kept.set_state("s1", {})
    assert (await kept.snapshot("s1", at=first, keys=["b", "c"])).state == {"b": 2}


async def test_as_many_versions_are_kept_as_the_store_was_opened_for(
    harness: Harness, kept: ShortTerm
) -> None:
    written = [await kept.update_state("s1", {"n": n}) for n in range(harness.state_versions + 2)]
    found = [one.version for one in await kept.versions("s1")]
    assert found == written[: -harness.state_versions - 1 : -1]
    assert [(await kept.snapshot("s1", at=one)).state["n"] for one in found] == [4, 3, 2]


async def test_without_kept_versions_the_list_is_empty_and_only_the_newest_can_be_read(
    opened: Callable[..., ShortTerm],
) -> None:
    store = opened(kept_versions=0)
    first = await store.set_state("s1", {"a": 1})
    second = await store.set_state("s1", {"a": 2})
    assert await store.versions("s1") == []
    assert (await store.snapshot("s1", at=second)).state == {"a": 2}
    with pytest.raises(NotFoundError):
        await store.snapshot("s1", at=first)


async def test_a_page_of_versions_goes_on_before_the_last_one(kept: ShortTerm) -> None:
    first = await kept.set_state("s1", {"a": 1})
    second = await kept.set_state("s1", {"a": 2})
    third = await kept.set_state("s1", {"a": 3})
    page = await kept.versions("s1", limit=2)
    assert [one.version for one in page] == [third, second]
    rest = await kept.versions("s1", before=second, limit=2)
    assert [one.version for one in rest] == [first]
    assert await kept.versions("s1", before=first) == await kept.versions("s1", limit=0) == []
    assert await kept.versions("s1", before=0) == []


async def test_a_version_that_is_not_kept_is_not_found(kept: ShortTerm) -> None:
    version = await kept.set_state("s1", {"a": 1})
    for at in (0, version - 1, version + 1, (1 << 63) - 1):
        with pytest.raises(NotFoundError) as caught:
            await kept.snapshot("s1", at=at)
        assert caught.value.key == f"s1@{at}"
    with pytest.raises(NotFoundError):
        await kept.snapshot("absent", at=0)
    with pytest.raises(NotFoundError):
        await kept.snapshot("absent", at=version)


async def test_a_refused_write_makes_no_version(kept: ShortTerm) -> None:
    first = await kept.set_state("s1", {"a": 1})
    second = await kept.set_state("s1", {"a": 2}, expected_version=first)
    with pytest.raises(VersionConflictError):
        await kept.set_state("s1", {"a": 3}, expected_version=first)
    with pytest.raises(InvalidInputError):
        await kept.set_state("s1", {"a": object()})
    assert [one.version for one in await kept.versions("s1")] == [second, first]


async def test_concurrent_writes_leave_versions_that_were_states(kept: ShortTerm) -> None:
    await asyncio.gather(*(kept.update_state("s1", {str(n): n}) for n in range(8)))
    whole = await kept.snapshot("s1")
    assert len(whole.state) == 8
    found = await kept.versions("s1")
    states = [(await kept.snapshot("s1", at=one.version)).state for one in found]
    assert states[0] == whole.state
    for newer, older in pairwise(states):
        assert older.items() < newer.items()


async def test_a_clear_deletes_all_versions_of_a_state(kept: ShortTerm) -> None:
    first = await kept.set_state("s1", {"a": 1})
    await kept.set_state("s1", {"a": 2})
    await kept.set_state("s2", {"b": 1})
    await kept.clear("s1")
    assert await kept.versions("s1") == []
    with pytest.raises(NotFoundError):
        await kept.snapshot("s1", at=first)
    assert len(await kept.versions("s2")) == 1


async def test_an_expired_state_has_no_versions(harness: Harness, kept: ShortTerm) -> None:
    first = await kept.set_state("s1", {"a": 1}, ttl_seconds=60)
    second = await kept.update_state("s1", {"a": 2})
    seen = await kept.snapshot("s1", at=first)
    assert seen.expires_at == (await kept.snapshot("s1")).expires_at
    await harness.elapse(61)
    assert await kept.versions("s1") == []
    for at in (first, second):
        with pytest.raises(NotFoundError):
            await kept.snapshot("s1", at=at)


async def test_a_state_that_begins_again_has_only_versions_of_its_own(
    harness: Harness, kept: ShortTerm
) -> None:
    await kept.set_state("cleared", {"a": 1})
    await kept.clear("cleared")
    for session in ("expired", "compared"):
        await kept.set_state(session, {"a": 1}, ttl_seconds=60)
    await harness.elapse(61)
    for session in ("cleared", "expired"):
        again = await kept.update_state(session, {"b": 2})
        assert [one.version for one in await kept.versions(session)] == [again]
        assert (await kept.snapshot(session, at=again)).state == {"b": 2}
    again = await kept.update_state("compared", {"b": 2}, expected_version=0)
    assert [one.version for one in await kept.versions("compared")] == [again]


async def test_versions_of_one_session_are_not_found_in_another(kept: ShortTerm) -> None:
    version = await kept.set_state("s1", {"a": 1})
    await kept.set_state("s2", {"b": 2})
    await kept.set_state("s1", {"a": 2})
    with pytest.raises(NotFoundError):
        await kept.snapshot("s2", at=version)
    assert len(await kept.versions("s2")) == 1


async def test_versions_of_one_tenant_are_not_found_in_another(
    opened: Callable[..., ShortTerm],
) -> None:
    ours, theirs = opened(tenant="one"), opened(tenant="two")
    await ours.set_state("s1", {"a": 1})
    version = await ours.set_state("s1", {"a": 2})
    assert await theirs.versions("s1") == []
    await theirs.set_state("s1", {"b": 1})
    with pytest.raises(NotFoundError):
        await theirs.snapshot("s1", at=version)
    await theirs.clear("s1")
    assert len(await ours.versions("s1")) == 2


async def test_versions_are_still_there_after_a_reopen(
    harness: Harness, opened: Callable[..., ShortTerm]
) -> None:
    store = opened()
    first = await store.set_state("s1", {"a": 1})
    await store.set_state("s1", {"a": 2})
    before = await store.versions("s1")
    await harness.reopen()
    again = opened()
    assert await again.versions("s1") == before
    assert (await again.snapshot("s1", at=first)).state == {"a": 1}


@pytest.mark.parametrize("bad", [-1, 1.5, "7", True])
async def test_a_version_that_is_no_number_or_negative_is_refused(
    kept: ShortTerm, bad: Any
) -> None:
    await kept.set_state("s1", {"a": 1})
    with pytest.raises(InvalidInputError) as caught:
        await kept.snapshot("s1", at=bad)
    assert caught.value.field == "at"
    with pytest.raises(InvalidInputError) as caught:
        await kept.versions("s1", before=bad)
    assert caught.value.field == "before"
    with pytest.raises(InvalidInputError) as caught:
        await kept.versions("s1", limit=bad)
    assert caught.value.field == "limit"
