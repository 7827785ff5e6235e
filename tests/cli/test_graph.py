"""``holdfast graph`` as an operator runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from holdfast.values.ids import new_ref
from holdfast_age.engine import graph_name
from tests.engines.age import server

COMMAND = Path(sys.executable).with_name("holdfast")


def _run(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [str(COMMAND), "graph", *arguments],
        cwd=place,
        env={**kept, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tenants_graph_is_created_once_and_listed(tmp_path: Path) -> None:
    tenant = f"acme's {new_ref()}"
    on_age = {"DATABASE_URL": server().url, "HOLDFAST_ALLOW_UNSAFE": "1"}
    first = _run(tmp_path, "create", tenant, "--json", **on_age)
    assert json.loads(first.stdout) == {"tenant": tenant, "created": True}, first.stderr
    again = _run(tmp_path, "create", tenant, **on_age)
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True), again.stderr
    listed = _run(tmp_path, "list", "--json", **on_age)
    assert {"tenant": tenant, "graph": graph_name(tenant)} in json.loads(listed.stdout)
    assert tenant in _run(tmp_path, "list", **on_age).stdout


def test_a_name_that_is_no_tenant_is_one_line(tmp_path: Path) -> None:
    run = _run(tmp_path, "create", "a\nb")
    assert run.returncode == 1
    assert run.stderr.startswith("holdfast: tenant:")
    assert len(run.stderr.splitlines()) == 1


def test_without_a_server_it_says_what_to_set(tmp_path: Path) -> None:
    for arguments in (("create", "acme"), ("list",)):
        run = _run(tmp_path, *arguments)
        assert run.returncode == 1
        assert "DATABASE_URL" in run.stderr
        assert "Traceback" not in run.stderr


def test_every_command_teaches_in_its_help(tmp_path: Path) -> None:
    shown = _run(tmp_path, "--help").stdout
    for command in ("create", "list"):
        assert command in shown
        help_text = _run(tmp_path, command, "--help")
        assert help_text.returncode == 0
        assert len(help_text.stdout.splitlines()) > 5
