"""Each broken step of sealing is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.sealing import SEAL_MUTANTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(SEAL_MUTANTS))
def test_a_broken_step_of_sealing_fails_its_tests(name: str) -> None:
    breaks = SEAL_MUTANTS[name].breaks
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE"),
            *("-p", "tests.mutants.sealing", *breaks),
        ],
        cwd=ROOT,
        env={**os.environ, "SEAL_MUTANT": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, f"expected failing tests:\n{run.stdout}{run.stderr}"
    missed = [one for one in breaks if f"FAILED {one}" not in run.stdout]
    assert not missed, f"{missed} passed:\n{run.stdout}"
