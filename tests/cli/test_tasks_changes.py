"""``holdfast tasks changes`` as an operator uses it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.cli.command import Command, start, wait_until


def _submitted(command: Command, owner: str) -> str:
    found: str = command("tasks", "submit", "writer", "Tides?", "--owner", owner, "--json").json[
        "id"
    ]
    return found


def test_a_page_of_changes_is_printed_with_the_cursor_of_the_next(command: Command) -> None:
    first, second = _submitted(command, "ana"), _submitted(command, "ben")
    shown = command("tasks", "changes")
    assert (shown.code, first in shown.out, second in shown.out) == (0, True, True)
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
