"""Kills during the first open of an embedded folder: it opens afterwards, and works."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import holdfast

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(3600)]
COMMAND = "python -m pytest tests/durability/test_embedded_kills.py --long"
RESULT = Path(__file__).parents[2] / "docs" / "faults" / "embedded-open.json"
KILLS = 100
SEED = 13

OPENER = """
import asyncio, sys
import holdfast

async def main():
    async with holdfast.open(sys.argv[1]):
        print("open", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def _any(folder: Path, pattern: str) -> bool:
    return any(True for _ in folder.glob(pattern))


def _migrating(folder: Path) -> bool:
    files = folder.glob("data/base/5/*")
    return sum(name.isdecimal() and int(name) >= 16_384 for name in (one.name for one in files)) > 9


POINTS: dict[str, Callable[[Path], bool]] = {
    "locked": lambda folder: (folder / "server.lock").exists(),
    "initdb begun": lambda folder: _any(folder, "data*/PG_VERSION"),
    "initdb: catalog made": lambda folder: _any(folder, "data*/base/1/1259"),
    "initdb: databases made": lambda folder: _any(folder, "data*/base/5/1259"),
    "data is there": lambda folder: _any(folder, "data/base/5"),
    "server starts": lambda folder: _any(folder, "data/postmaster.pid"),
    "first migration": _migrating,
}
"""How far a first open is, by what can be seen of it in the folder, in order."""


@dataclass
class Watch:
    """Programs of Postgres on a folder, looked at again and again while it is opened."""

    folder: Path
    most_initdb: int = 0
    most_servers: int = 0
    both: int = 0

    def look(self) -> list[str]:
        """What runs now."""
        found = self._found()
        # A process that was just forked looks like the one that it comes from.
        running = [name for name, parent in found.values() if found.get(parent, ("",))[0] != name]
        initdb = sum(one.startswith("initdb") for one in running)
        servers = running.count("postgres")
        self.most_initdb = max(self.most_initdb, initdb)
        self.most_servers = max(self.most_servers, servers)
        self.both += bool(initdb and servers)
        return running

    def _found(self) -> dict[int, tuple[str, int]]:
        """Programs on the folder by process: which, and the process's parent."""
        found = {}
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal():
                continue
            try:
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            name = Path(words[0]).name
            if name in {"initdb", "postgres"} and any(str(self.folder) in one for one in words):
                where = "" if str(self.folder / "data") in words else " elsewhere"
                found[int(process.name)] = (name + where, parent)
        return found

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look for as long as the block lasts."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    @property
    def sound(self) -> bool:
        """Whether never two worked on the folder."""
        return self.most_initdb <= 1 and self.most_servers <= 1 and not self.both


@dataclass
class Tally:
    """What came of all kills."""

    kills: Counter[str] = field(default_factory=Counter)
    found_at: Counter[str] = field(default_factory=Counter)
    ruined: list[str] = field(default_factory=list)
    met: int = 0
    left: int = 0


@asynccontextmanager
async def _opening(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    opener = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OPENER, str(folder)),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield opener
    finally:
        if opener.returncode is None:
            opener.kill()
        await opener.wait()


async def _has_reached(folder: Path, point: str) -> None:
    async with asyncio.timeout(120):
        while not POINTS[point](folder):
            await asyncio.sleep(0.0005)


def _kill(opener: asyncio.subprocess.Process, *, group: bool) -> None:
    if group:
        os.killpg(opener.pid, signal.SIGKILL)
    else:
        os.kill(opener.pid, signal.SIGKILL)


@contextmanager
def _new_folder() -> Iterator[Path]:
    """A place that the server's user can enter."""
    above = Path(tempfile.mkdtemp(prefix="hf-kills-"))
    above.chmod(0o755)
    try:
        yield above / "state"
    finally:
        shutil.rmtree(above, ignore_errors=True)


async def _after(folder: Path, tally: Tally, *, what: str) -> None:
    """Open the folder at once, while whatever the dead left may still run, and use it."""
    watch = Watch(folder)
    try:
        with watch.running():
            async with holdfast.open(str(folder)) as state:
                await state.short_term.set_state("s", {"n": 1})
                assert await state.short_term.get_state("s") == {"n": 1}
    except holdfast.HoldfastError as error:
        tally.ruined.append(f"{what}: {error}")
    tally.met += not watch.sound
    tally.left += bool(watch.look()) + _any(folder, "data.*")


def _reached(folder: Path) -> str:
    return [name for name, reached in POINTS.items() if reached(folder)][-1]


def _is_sound(tally: Tally) -> None:
    assert tally.ruined == []
    assert tally.met == 0, "two programs were at work on one folder"
    assert tally.left == 0, "a server or a folder was left behind"


@pytest.mark.parametrize("group", [False, True], ids=["the opener alone", "its whole group"])
async def test_a_kill_at_any_point_of_the_first_open_leaves_a_folder_that_opens(
    *, group: bool
) -> None:
    tally = Tally()
    for name in list(POINTS)[int(group) :: 2]:
        with _new_folder() as folder:
            async with _opening(folder) as opener:
                await _has_reached(folder, name)
                _kill(opener, group=group)
            await _after(folder, tally, what=name)
    _is_sound(tally)


async def test_kills_at_random_moments_of_the_first_open_ruin_no_folder(
    request: pytest.FixtureRequest,
) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("only in the long run: the short form kills at points")
    dice = random.Random(SEED)  # noqa: S311 - the same moments each time
    with _new_folder() as folder:
        async with _opening(folder) as opener:
            await _has_reached(folder, "locked")
            began = time.monotonic()
            assert opener.stdout is not None
            assert await opener.stdout.readline() == b"open\n"
            seconds = time.monotonic() - began
            opener.terminate()
            await opener.wait()
        await _after(folder, Tally(), what="whole")
    tally = Tally()
    for number in range(KILLS):
        group = number % 2 == 1
        with _new_folder() as folder:
            async with _opening(folder) as opener:
                # Not while its modules are imported, which touches nothing.
                await _has_reached(folder, "locked")
                await asyncio.sleep(dice.uniform(0, seconds))
                _kill(opener, group=group)
                tally.found_at[_reached(folder)] += 1
            tally.kills["group" if group else "opener"] += 1
            await _after(folder, tally, what=f"kill {number}")
    RESULT.write_text(
        json.dumps(
            {
                "command": COMMAND,
                "seed": SEED,
                "first_open_seconds": round(seconds, 2),
                "kills": {
                    "the opener alone": tally.kills["opener"],
                    "its whole process group": tally.kills["group"],
                },
                "found_at": {name: tally.found_at[name] for name in POINTS},
                "ruined_folders": len(tally.ruined),
                "two_programs_on_one_folder": tally.met,
                "servers_or_folders_left_behind": tally.left,
            },
            indent=2,
        )
        + "\n"
    )
    _is_sound(tally)
