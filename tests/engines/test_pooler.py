"""The contract suite through a transaction pooler."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.pgbouncer import PROGRAM

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed: apt-get install pgbouncer")
def test_the_contract_suite_passes_through_a_transaction_pooler() -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "src/holdfast/testing", "-q", "--tb=short"),
            *("-p", "no:cacheprovider", "--ignore", "src/holdfast/testing/test_hostile_input.py"),
            *("--engine", "tests.engines.pgbouncer:PgBouncerHarness", "--machine-steps=100"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed
    assert int(passed[1]) > 500
