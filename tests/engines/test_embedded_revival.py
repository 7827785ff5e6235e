"""A server in a folder that is killed under its users runs again at their next calls."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import holdfast

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

USER = """
import asyncio, sys
import holdfast

async def main():
    async with holdfast.open(sys.argv[1]) as state:
        print("ready", flush=True)
        sys.stdin.readline()
        # A read may be repeated; a write whose answer is lost may not.
        await asyncio.gather(*(state.short_term.get_state("s") for _ in range(5)))
        await state.short_term.set_state(sys.argv[2], {"wrote": True})
        print("done", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that the server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-revival-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "state"


def _kill_server(folder: Path) -> None:
    """Kill it, and wait for its own children, which answer for a moment longer."""
    starts = _starts(folder)
    pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)
    while _starts(folder) == starts:
        with (folder / "server.lock").open("ab") as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return


def _starts(folder: Path) -> int:
    return (folder / "log").read_text().count("starting PostgreSQL")


async def test_kill_9_of_the_server_under_an_open_state_is_mended_by_the_next_call(
    folder: Path,
) -> None:
    async with holdfast.open(str(folder)) as state:
        await state.short_term.set_state("s", {"n": 1})
        for n in (2, 3):
            _kill_server(folder)
            many = await asyncio.gather(*(state.short_term.get_state("s") for _ in range(30)))
            assert many == [{"n": n - 1}] * 30
            await state.short_term.set_state("s", {"n": n})
            assert _starts(folder) == n
        assert await state.short_term.get_state("s") == {"n": 3}
    assert not (folder / "data" / "postmaster.pid").exists()


async def test_of_several_processes_on_a_folder_one_starts_its_server_again(folder: Path) -> None:
    async with holdfast.open(str(folder)) as state:
        users = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", USER, str(folder), f"user{at}"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for at in range(3)
        ]
        for said in (b"ready\n", b"done\n"):
            for user in users:
                assert user.stdout is not None
                assert await user.stdout.readline() == said
            if said == b"ready\n":
                _kill_server(folder)
            for user in users:
                assert user.stdin is not None
                user.stdin.write(b"go\n")
        assert [await user.wait() for user in users] == [0] * 3
        assert _starts(folder) == 2
        for at in range(3):
            assert await state.short_term.get_state(f"user{at}") == {"wrote": True}


async def test_a_server_that_cannot_run_again_is_told_with_its_folder_and_its_log(
    folder: Path,
) -> None:
    async with holdfast.open(str(folder)) as state:
        (folder / "data" / "postgresql.conf").write_text("no such setting")
        _kill_server(folder)
        with pytest.raises(holdfast.errors.UnavailableError) as caught:
            await state.short_term.get_state("s")
    assert f"the server of {str(folder)!r} does not start" in str(caught.value)
    assert "postgresql.conf" in str(caught.value)


async def test_data_that_is_gone_is_not_replaced_by_an_empty_database(folder: Path) -> None:
    async with holdfast.open(str(folder)) as state:
        _kill_server(folder)
        (folder / "data").rename(folder / "moved")
        with pytest.raises(holdfast.errors.UnavailableError, match="is gone"):
            await state.short_term.get_state("s")
        (folder / "moved").rename(folder / "data")
        assert await state.short_term.get_state("s") == {}
