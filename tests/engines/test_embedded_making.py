"""A data folder is made whole or made again, and one that may hold data is never removed."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engines.postgres.binaries import initialise, program, system_user
from holdfast.engines.postgres.embedded_data import MADE, UNFINISHED
from holdfast.errors import ConfigError

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that the server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-making-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "state"


def _found(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


async def _wrote(folder: Path, **values: Any) -> dict[str, Any]:
    async with holdfast.open(str(folder)) as state:
        await state.short_term.update_state("s", values)
        return await state.short_term.get_state("s")


def _initdb_until(folder: Path, reached: Callable[[Path], bool]) -> None:
    """What an earlier version left when it was killed: ``initdb`` in place, and not to its end."""
    data = folder / "data"
    data.mkdir(parents=True, mode=0o700)
    (folder / "users.lock").touch()
    (folder / "server.lock").touch()
    user = system_user(data)
    if user is not None:
        os.chown(data, pwd.getpwnam(user).pw_uid, -1)
    # With its children, which would go on for a moment.
    with subprocess.Popen(
        [
            *(str(program("initdb")), "-D", str(data), "-U", "postgres"),
            *("--encoding=UTF8", "--locale=C", "--auth=trust"),
        ],
        user=user,
        cwd="/",
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as initdb:
        while not reached(data):
            assert initdb.poll() is None
        os.killpg(initdb.pid, signal.SIGKILL)


@pytest.mark.parametrize("reached", ["PG_VERSION", "global/pg_control", "base/1/1259", "base/5"])
async def test_a_half_made_folder_of_an_earlier_version_is_made_again(
    folder: Path, reached: str
) -> None:
    await asyncio.to_thread(_initdb_until, folder, lambda data: (data / reached).exists())
    assert await _wrote(folder, n=1) == {"n": 1}
    assert await _wrote(folder, m=2) == {"n": 1, "m": 2}
    assert not _found(folder, f"{UNFINISHED}*")


async def test_an_empty_version_file_is_that_of_a_half_made_folder(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "users.lock").touch()
    (folder / "data" / "PG_VERSION").touch()
    assert await _wrote(folder, n=1) == {"n": 1}


@pytest.mark.parametrize("lacks", [{MADE}, {MADE, "log"}, {"log"}])
async def test_a_folder_that_was_used_is_kept_whatever_of_its_files_is_missing(
    folder: Path, lacks: set[str]
) -> None:
    await _wrote(folder, n=1)
    for name in lacks:
        (folder / "log" if name == "log" else folder / "data" / name).unlink()
    assert await _wrote(folder) == {"n": 1}


async def test_a_folder_that_a_server_ran_on_is_kept_also_without_a_table(folder: Path) -> None:
    """As it is between the first start and the first migration, or with roles alone."""
    data = folder / "data"
    await asyncio.to_thread(initialise, data)
    inode = data.stat().st_ino
    (folder / "users.lock").touch()
    (folder / "log").write_text("LOG:  database system is ready to accept connections\n")
    await _wrote(folder, n=1)
    assert data.stat().st_ino == inode


@pytest.mark.parametrize(
    "foreign", ["notes.txt", "base/16384/1", "base/5/16384", "base/5/16385_fsm"]
)
async def test_a_folder_with_one_file_that_initdb_has_not_made_is_kept(
    folder: Path, foreign: str
) -> None:
    data = folder / "data"
    await asyncio.to_thread(initialise, data)
    (folder / "users.lock").touch()
    (data / foreign).parent.mkdir(exist_ok=True)
    (data / foreign).touch()
    inode = data.stat().st_ino
    await _wrote(folder, n=1)
    assert data.stat().st_ino == inode
    assert (data / foreign).exists()


async def test_a_folder_that_is_no_data_folder_is_refused_and_left_as_it_is(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "users.lock").touch()
    (folder / "data" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not a data folder of Postgres"):
        await _wrote(folder, n=1)
    assert (folder / "data" / "notes.txt").read_text() == "mine"


async def test_what_dead_makers_left_is_removed(folder: Path) -> None:
    await _wrote(folder, n=1)
    (folder / f"{UNFINISHED}x" / "base").mkdir(parents=True)
    assert await _wrote(folder) == {"n": 1}
    assert not _found(folder, f"{UNFINISHED}*")


async def test_a_cancelled_first_open_leaves_a_folder_that_opens(folder: Path) -> None:
    opening = asyncio.create_task(_wrote(folder, n=0))
    while not _found(folder, f"{UNFINISHED}*/PG_VERSION"):
        await asyncio.sleep(0.001)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    assert await _wrote(folder, n=1) == {"n": 1}
