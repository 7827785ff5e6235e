"""Backups of an embedded folder: taken while it is written to, and restored elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast import AgentId, Event
from holdfast.engines.postgres.embedded_backup import back_up, restore
from holdfast.values.errors import CodecError, InvalidInputError

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")


async def test_a_backup_under_writes_holds_all_that_was_acknowledged_before_it(
    tmp_path: Path,
) -> None:
    done = asyncio.Event()
    acknowledged = 0

    async def write(state: holdfast.State) -> None:
        nonlocal acknowledged
        while not done.is_set():
            event = Event(ANA, "s1", "note", {"n": acknowledged + 1})
            await state.episodes.append([event])
            acknowledged += 1

    async with holdfast.open(tmp_path / "here", tenant="acme") as state:
        await state.blobs.store(b"low tide")
        writing = asyncio.create_task(write(state))
        before = acknowledged
        assert await back_up(tmp_path / "here", tmp_path / "backup") > 1_000_000
        done.set()
        await writing
    await restore(tmp_path / "backup", tmp_path / "there")
    async with holdfast.open(tmp_path / "there", tenant="acme") as state:
        found = await state.episodes.recent(ANA, session_id="s1", limit=1_000_000)
        numbers = [one.payload["n"] for one in found]
        assert numbers == list(range(1, len(numbers) + 1))
        assert before <= len(numbers) <= acknowledged
        await state.episodes.append([Event(ANA, "s1", "note", {"n": 0})])
    await restore(tmp_path / "backup", tmp_path / "again")  # the backup is as it was


async def test_nothing_is_overwritten(tmp_path: Path) -> None:
    async with holdfast.open(tmp_path / "here"):
        await back_up(tmp_path / "here", tmp_path / "backup")
        with pytest.raises(InvalidInputError, match="has data already"):
            await back_up(tmp_path / "here", tmp_path / "backup")
        with pytest.raises(InvalidInputError, match="has data already"):
            await restore(tmp_path / "backup", tmp_path / "here")
        other = tmp_path / "other"
        other.mkdir()
        (other / "thesis.txt").write_text("mine")
        with pytest.raises(InvalidInputError, match=r"thesis\.txt"):
            await back_up(tmp_path / "here", other)


async def test_what_is_no_backup_or_was_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="not an embedded folder"):
        await back_up(tmp_path / "nothing", tmp_path / "backup")
    with pytest.raises(InvalidInputError, match="not a backup"):
        await restore(tmp_path, tmp_path / "there")
    async with holdfast.open(tmp_path / "here"):
        await back_up(tmp_path / "here", tmp_path / "backup")
    for name, error in (("base/5/1259", "1259 is damaged"), ("backup_manifest", "manifest is dam")):
        _flip(tmp_path / "backup" / "data" / name)
        with pytest.raises(CodecError, match=error):
            await restore(tmp_path / "backup", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def _flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
