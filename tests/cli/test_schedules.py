"""``holdfast schedules`` as an operator uses it."""

from __future__ import annotations

from tests.cli.command import Command


def test_a_schedule_is_made_shown_paused_and_deleted(command: Command, tenant: str) -> None:
    assert tenant
    made = command(
        *("schedules", "create", "daily", "0 9 * * mon-fri", "reporter", "The report."),
        *("--timezone", "Europe/Paris", "--missed", "all", "--owner", "ana", "--json"),
    ).json
    assert (made["id"], made["agent"], made["missed"]) == ("daily", "reporter", "all")
    shown = command("schedules", "show", "daily", "--owner", "ana", "--json").json
    assert len(shown["next_runs"]) == 5
    assert shown["next_runs"][0][10:16] == "T09:00"
    [listed] = command("schedules", "list", "--json").json
    assert listed == made
    assert command("schedules", "list", "--owner", "bob", "--json").json == []
    paused = command("schedules", "pause", "daily", "--owner", "ana", "--json").json
    assert (paused["paused"], paused["next_run_at"]) == (True, None)
    assert "paused" in command("schedules", "list").out
    assert not command("schedules", "resume", "daily", "--owner", "ana", "--json").json["paused"]
    arguments = ("schedules", "create", "daily", "0 8 * * *", "reporter", "x", "--owner", "ana")
    assert "upsert" in command(*arguments).err
    assert command(*arguments, "--replace", "--json").json["cron"] == "0 8 * * *"
    assert "deleted daily" in command("schedules", "delete", "daily", "--owner", "ana").out
    for lacking in ("delete", "pause", "show"):
        assert "holdfast schedules list" in command("schedules", lacking, "daily").err
