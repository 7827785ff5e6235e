"""Postgres in a folder: who starts it, who stops it, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.contracts.history import History
from holdfast.engines.postgres import binaries
from holdfast.engines.postgres.embedded import EmbeddedPostgres, socket_folder
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConfigError
from holdfast.values.identity import AgentId

pytestmark = pytest.mark.asyncio

ANA = AgentId.parse("ana")

WRITER = """
import asyncio, os, signal, sys
from holdfast import AgentId, ChatMessage
from holdfast.engines.postgres import binaries
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.contracts.history import History

async def main():
    embedded = await EmbeddedPostgres.open(sys.argv[1])
    engine = await Postgres.open(embedded.url, auto_migrate=True)
    history = History(PostgresTranscripts(engine))
    for at in range(20):
        await history.append(AgentId.parse("ana"), ChatMessage.user(sys.argv[2]), session_id="s1")
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    await engine.aclose()
    await embedded.aclose()

asyncio.run(main())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that the server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-embedded-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "state"


def _server_pid(folder: Path) -> int | None:
    try:
        return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    except FileNotFoundError:
        return None


def _kill_server(folder: Path) -> None:
    """Kill it, and wait for its own children, which answer for a moment longer."""
    pid = _server_pid(folder)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with (folder / "server.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def _looks(folder: Path) -> tuple[int, int, list[str]]:
    found = folder.stat()
    return found.st_uid, found.st_mode, sorted(entry.name for entry in folder.iterdir())


async def _count(folder: Path) -> int:
    embedded = await EmbeddedPostgres.open(folder)
    engine = await Postgres.open(embedded.url, auto_migrate=True)
    try:
        return await History(PostgresTranscripts(engine)).count_messages(ANA, session_id="s1")
    finally:
        await engine.aclose()
        await embedded.aclose()


async def test_what_was_written_is_there_when_the_folder_is_opened_again(folder: Path) -> None:
    embedded = await EmbeddedPostgres.open(folder)
    engine = await Postgres.open(embedded.url, auto_migrate=True)
    await History(PostgresTranscripts(engine)).append(ANA, ChatMessage.user("x"), session_id="s1")
    await engine.aclose()
    await embedded.aclose()
    assert _server_pid(folder) is None
    assert await _count(folder) == 1


async def test_the_last_user_stops_the_server_and_nobody_else_does(folder: Path) -> None:
    first = await EmbeddedPostgres.open(folder)
    second = await EmbeddedPostgres.open(folder)
    pid = _server_pid(folder)
    await first.aclose()
    await first.aclose()
    assert _server_pid(folder) == pid
    engine = await Postgres.open(second.url, auto_migrate=True)
    await engine.ping()
    await engine.aclose()
    await second.aclose()
    assert _server_pid(folder) is None


async def test_several_processes_share_one_folder(folder: Path) -> None:
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(folder), f"p{at}")
        for at in range(4)
    ]
    assert [await process.wait() for process in processes] == [0] * 4
    assert await _count(folder) == 80


async def test_kill_9_of_a_process_loses_nothing_and_leaves_the_folder_usable(folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(folder), "killed"
    )
    assert await process.wait() == -signal.SIGKILL
    # The folder's guard stops the server, or the next user joins it, and stops it on leaving.
    assert await _count(folder) == 20
    assert _server_pid(folder) is None


async def test_kill_9_of_the_server_loses_nothing(folder: Path) -> None:
    embedded = await EmbeddedPostgres.open(folder)
    engine = await Postgres.open(embedded.url, auto_migrate=True)
    await History(PostgresTranscripts(engine)).append(ANA, ChatMessage.user("x"), session_id="s1")
    pid = _server_pid(folder)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    again = await EmbeddedPostgres.open(folder)
    assert await History(PostgresTranscripts(engine)).count_messages(ANA, session_id="s1") == 1
    await engine.aclose()
    await embedded.aclose()
    await again.aclose()
    assert _server_pid(folder) is None


async def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        await EmbeddedPostgres.open(tmp_path / "file" / "state")


async def test_a_folder_of_another_version_says_so(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "PG_VERSION").write_text("12\n")
    with pytest.raises(ConfigError, match="made by Postgres 12"):
        await EmbeddedPostgres.open(folder)


async def test_a_folder_with_files_of_others_is_refused_and_left_as_it_was(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    before = _looks(folder)
    with pytest.raises(ConfigError, match=r"such as 'data': choose a new or an empty folder"):
        await EmbeddedPostgres.open(folder)
    assert _looks(folder) == before


async def test_an_empty_volume_is_taken_and_files_that_come_later_do_not_matter(
    folder: Path,
) -> None:
    (folder / "lost+found").mkdir(parents=True)
    assert await _count(folder) == 0
    (folder / "notes.txt").write_text("mine")
    assert await _count(folder) == 0
    (folder / "users.lock").unlink()
    assert await _count(folder) == 0


async def test_root_opens_a_folder_that_is_closed_to_other_users(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as another user")
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    before = _looks(folder)[:2]
    for expected in (0, 1):
        embedded = await EmbeddedPostgres.open(folder / "state")
        engine = await Postgres.open(embedded.url, auto_migrate=True, revive=embedded.revive)
        history = History(PostgresTranscripts(engine))
        assert await history.count_messages(ANA, session_id="s1") == expected
        await asyncio.to_thread(_kill_server, folder / "state")
        # It is started again in the same place.
        assert await history.count_messages(ANA, session_id="s1") == expected
        await history.append(ANA, ChatMessage.user("x"), session_id="s1")
        await engine.aclose()
        await embedded.aclose()
        assert _server_pid(folder / "state") is None
    assert (folder / "state" / "data" / "PG_VERSION").exists()
    assert _looks(folder)[:2] == before


async def test_a_folder_that_the_server_cannot_reach_is_told_with_the_command_that_helps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as another user")
    monkeypatch.setattr(binaries, "_OPEN_FILES", folder / "no such kernel")
    await asyncio.to_thread((folder / "it's").mkdir, mode=0o700, parents=True)
    with pytest.raises(ConfigError, match="cannot reach") as caught:
        await EmbeddedPostgres.open(folder / "it's" / "state")
    assert "initdb" not in str(caught.value)
    said = re.search("run `(.*)`", str(caught.value))
    assert said is not None
    subprocess.run(["/bin/sh", "-c", said[1]], check=True)  # noqa: ASYNC221 - it is the test
    assert await _count(folder / "it's" / "state") == 0


async def test_a_path_too_long_for_a_socket_works_all_the_same(folder: Path) -> None:
    deep = folder / ("long-name-" * 12) / "state"
    assert socket_folder(deep) != deep
    assert await _count(deep) == 0


async def _fails(*command: str) -> bool:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    return await process.wait() != 0


async def test_another_container_is_refused_with_a_clear_error(folder: Path) -> None:
    alone = ["--pid", "--fork", "--mount-proc", sys.executable]
    unshare = shutil.which("unshare")
    if not unshare or await _fails(unshare, *alone, "-c", "pass"):
        pytest.skip("a process namespace of its own cannot be made here: needs unshare and root")
    embedded = await EmbeddedPostgres.open(folder)
    other = await asyncio.create_subprocess_exec(
        *(unshare, *alone, "-c", WRITER, str(folder), "other"), stderr=asyncio.subprocess.PIPE
    )
    _, said = await other.communicate()
    assert other.returncode == 1
    assert b"in use by another container" in said
    await embedded.aclose()


async def test_programs_in_a_closed_folder_are_copied_to_where_the_server_can_run_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as another user")
    monkeypatch.setattr(binaries, "_others_may_enter", lambda _folder: False)
    copied = binaries.program("postgres")
    assert copied.is_relative_to(tempfile.gettempdir())
    # It runs, with its libraries, as somebody who may not enter root's folders.
    binaries.run([str(copied), "--version"], user="nobody")
