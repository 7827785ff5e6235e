"""Commands that only read make no folder where there is none, and say what makes one."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.cli.commands import app
from holdfast.values.errors import ConfigError

READING = (
    ["doctor"],
    ["tasks", "list"],
    ["tasks", "show", "0"],
    ["tasks", "cancel", "0"],
    ["contexts", "list"],
    ["keys", "list"],
    ["schedules", "list"],
    ["dead-letters", "list"],
    ["export", "archive"],
    ["erase", "list"],
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_only_reads_makes_no_folder(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "STORAGE_TYPE", "HOLDFAST_DIR"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, ConfigError), (result.output, result.exception)
    reason = str(result.exception)
    assert "there is no state in '.holdfast' yet: `holdfast worker`, `holdfast serve`" in reason
    assert "`holdfast tasks submit` or holdfast.open('./.holdfast') makes one" in reason
    # It runs in a temporary folder.
    assert "demo" not in reason
    assert list(tmp_path.iterdir()) == []
