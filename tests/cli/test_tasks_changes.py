"""``holdfast tasks changes`` as an operator uses it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from tests.cli.command import LIMIT_SECONDS, Answer, Command, start, wait_until


def _submitted(command: Command, owner: str) -> str:
    found: str = command("tasks", "submit", "writer", "Tides?", "--owner", owner, "--json").json[
        "id"
    ]
    return found


def _listed(command: Command, *task_ids: str) -> Answer:
    """The feed, once it has these tasks: any open transaction of the server delays it."""
    limit = time.monotonic() + LIMIT_SECONDS
    while True:
        shown = command("tasks", "changes")
        assert shown.code == 0, shown.err
        if all(one in shown.out for one in task_ids):
            return shown
        assert time.monotonic() < limit, f"not within {LIMIT_SECONDS} seconds: {shown.out}"


def test_a_page_of_changes_is_printed_with_the_cursor_of_the_next(
    command: Command, tenant: str
) -> None:
    assert tenant
    first, second = _submitted(command, "ana"), _submitted(command, "ben")
    shown = _listed(command, first, second)
    lines = [json.loads(one) for one in command("tasks", "changes", "--json").out.splitlines()]
    assert [one["task_id"] for one in lines[:-1]] == [first, second]
    cursor = lines[-1]["cursor"]
    assert f"cursor {cursor}" in shown.err
    assert command("tasks", "changes", "--after", cursor).out == ""
    only = command("tasks", "changes", "--owner", "ben", "--json").out
    assert (first in only, second in only) == (False, True)
    wrong = command("tasks", "changes", "--after", "nonsense")
    assert (wrong.code, "after" in wrong.err) == (1, True)


def test_the_feed_is_followed_until_ctrl_c(
    command: Command, database: str, tenant: str, tmp_path: Path
) -> None:
    before = _submitted(command, "ana")
    _listed(command, before)
    environment = {"DATABASE_URL": database, "HOLDFAST_TENANT": tenant}
    out, err = tmp_path / "out", tmp_path / "err"
    following = start(
        tmp_path, "tasks", "changes", "--follow", "--poll-seconds", "0.05", "--json", **environment
    )
    try:
        wait_until(lambda: "cursor" in out.read_text(), "the first page", following, err)
        later = _submitted(command, "ana")
        wait_until(lambda: later in out.read_text(), "the new task", following, err)
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0
    finally:
        following.kill()
        following.wait()
    assert (before in out.read_text(), out.read_text().count(later)) == (False, 1)
