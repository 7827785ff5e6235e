"""The server of a folder ends with its last user, also where that one never closed it."""

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

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180)]

USER = """
import asyncio, os, sys
import holdfast

async def main():
    state = await holdfast.open(sys.argv[1])
    await state.short_term.set_state(f"s{os.getpid()}", {"n": 1})
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    if sys.argv[2] == "exit":
        sys.exit(3)
    if sys.argv[2] == "raise":
        raise RuntimeError("by the test")

asyncio.run(main())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that the server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-guard-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "state"


async def _user(folder: Path, how: str = "return") -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", USER, str(folder), how),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def _go_on(process: asyncio.subprocess.Process) -> int:
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    return await process.wait()


def _pid(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def _runs(folder: Path, lock: str = "server.lock") -> bool:
    """Whether the server runs, or the guard: each holds its lock as long as it does."""
    with (folder / lock).open("ab") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    return True


async def _ended(folder: Path) -> None:
    async with asyncio.timeout(60):
        while _runs(folder) or _runs(folder, "guard.lock"):
            await asyncio.sleep(0.02)
    assert not (folder / "data" / "postmaster.pid").exists()


@pytest.mark.parametrize("how", ["return", "exit", "raise"])
async def test_a_process_that_ends_without_closing_leaves_no_server(folder: Path, how: str) -> None:
    user = await _user(folder, how)
    assert _runs(folder)
    await _go_on(user)
    await _ended(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_process_that_a_signal_ends_leaves_no_server(folder: Path, number: int) -> None:
    user = await _user(folder)
    user.send_signal(number)
    assert await user.wait() != 0
    await _ended(folder)


async def test_the_server_runs_until_the_last_of_several_processes_has_ended(folder: Path) -> None:
    first, second = await _user(folder), await _user(folder)
    pid = _pid(folder)
    first.terminate()
    await first.wait()
    # It joins and leaves in order, and is not the last either.
    async with holdfast.open(str(folder)) as state:
        await state.short_term.set_state("s", {"n": 2})
    assert (_pid(folder), _runs(folder)) == (pid, True)
    await _go_on(second)
    await _ended(folder)
    async with holdfast.open(str(folder)) as state:
        assert await state.short_term.get_state("s") == {"n": 2}


async def test_who_opens_the_folder_while_it_is_being_stopped_gets_a_server(folder: Path) -> None:
    for _ in range(5):
        user = await _user(folder)
        user.terminate()
        await user.wait()
        async with holdfast.open(str(folder)) as state:
            assert await state.short_term.get_state(f"s{user.pid}") == {"n": 1}
            assert _runs(folder, "guard.lock")
    await _ended(folder)


async def test_a_server_that_was_started_again_is_stopped_as_well(folder: Path) -> None:
    user = await _user(folder)
    os.kill(_pid(folder), signal.SIGKILL)
    async with holdfast.open(str(folder)) as state:
        await state.short_term.set_state("s", {"n": 1})
    assert _runs(folder)
    await _go_on(user)
    await _ended(folder)


async def test_closing_ends_the_guard_too(folder: Path) -> None:
    async with holdfast.open(str(folder)):
        assert _runs(folder, "guard.lock")
    await _ended(folder)
