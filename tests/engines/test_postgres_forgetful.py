"""What the published suite says of an engine that has forgotten every condition on a tenant."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from holdfast.engines.postgres import migrate
from holdfast.engines.postgres.queries import load
from tests.engines.forgetful import CONDITION, KEPT

ROOT = Path(__file__).parents[2]


def _suite(harness: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "src/holdfast/testing", "-q", "--tb=line", "--fast"),
            *("-p", "no:cacheprovider", "-k", "tenant", "--machine-steps=5"),
            *("--engine", f"tests.engines.forgetful:{harness}"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_tenant_sees_another_though_every_condition_is_forgotten() -> None:
    folder = files("holdfast.engines.postgres").joinpath("sql")
    names = [file.name.removesuffix(".sql") for file in folder.iterdir()]
    texts: list[str] = [sql for name in names for sql in load(name).values()]
    texts += [file.sql for file in migrate.function_files() if file.name not in KEPT]
    conditions = sum(len(CONDITION.findall(sql)) for sql in texts)
    assert conditions > 400
    guarded = _suite("ForgetfulHarness")
    assert guarded.returncode == 0, guarded.stdout[-5000:]
    passed = re.search(r"(\d+) passed", guarded.stdout)
    assert passed
    assert int(passed[1]) > 30
    # The same without policies: the conditions do matter.
    unguarded = _suite("UnguardedHarness")
    failed = re.search(r"(\d+) failed", unguarded.stdout)
    assert failed, unguarded.stdout[-5000:]
    assert int(failed[1]) > 15
