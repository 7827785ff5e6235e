"""``holdfast erase`` as an operator uses it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.command import Command

KEY = "3b" * 32


def _schedule(command: Command, owner: str) -> None:
    arguments = ("schedules", "create", "daily", "0 9 * * *", "reporter", "x", "--owner", owner)
    assert command(*arguments).code == 0


def test_a_subject_is_counted_erased_and_the_receipt_verified(
    command: Command, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_RECEIPT_KEY", KEY)
    _schedule(command, "ana")
    _schedule(command, "bob")
    scope = ("--subject", "ana")
    assert command("erase", "run", *scope, "--dry-run", "--json").json == {"schedules": 1}
    assert "schedules" in command("erase", "run", *scope, "--dry-run").out
    # Without an answer nothing is deleted.
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert command("erase", "run", *scope).code != 0
    assert len(command("schedules", "list", "--json").json) == 2
    receipt = command("erase", "run", *scope, "--yes", "--json").json
    assert [one["owner"] for one in command("schedules", "list", "--json").json] == ["bob"]
    [listed] = command("erase", "list", "--json").json
    assert (listed["receipt"], listed["scope_id"]) == (receipt, "")
    assert "finished" in command("erase", "list").out
    assert "nothing" in command("erase", "run", *scope, "--dry-run").out
    file = tmp_path / "receipts.jsonl"
    file.write_text(json.dumps(receipt) + "\n")
    verify = ("erase", "verify", str(file), "--tenant", tenant)
    assert "1 receipts are valid" in command(*verify, *scope).out
    assert "none of the receipts" in command(*verify, "--subject", "bob").err
    file.write_text(json.dumps(receipt | {"erased": {}}) + "\n")
    wrong = command(*verify)
    assert wrong.code == 1
    assert "the signature does not fit" in wrong.err
    monkeypatch.setenv("HOLDFAST_RECEIPT_KEY", "4c" * 32)
    assert "another key" in command(*verify).err


def test_a_scope_and_a_tenant_must_be_named(command: Command, tenant: str, tmp_path: Path) -> None:
    assert "subject" in command("erase", "run", "--dry-run").err
    assert command("erase", "run", "--whole-tenant", "--dry-run", "--json").json == {}
    assert "no erasures" in command("erase", "list").out
    file = tmp_path / "receipts.jsonl"
    file.write_text("nonsense\n")
    assert command("erase", "verify", str(file), "--tenant", tenant).code == 1
