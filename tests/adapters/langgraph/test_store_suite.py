"""The framework's own tests of a store, from its source distribution, on ``HoldfastStore``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "build/suites/langgraph"
PINS = ROOT / "requirements/langgraph-suite.txt"


def test_the_suite_has_the_version_that_is_installed() -> None:
    assert f"langgraph-checkpoint=={version('langgraph-checkpoint')} " in PINS.read_text()


@pytest.mark.skipif(not SUITE.exists(), reason="the suite is not there: make test-adapters")
@pytest.mark.parametrize("engine", ["memory", "postgres"])
@pytest.mark.asyncio(loop_scope="session")
async def test_all_114_tests_of_the_framework_pass(engine: str, database: str) -> None:
    url = database if engine == "postgres" else "memory:"
    run = subprocess.run(  # noqa: ASYNC221 - nothing else runs on this loop
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "tests/test_store.py",
                "-q",
                "-p",
                "no:cacheprovider",
            ),
            *("-p", "holdfast_in_place_of_inmemory"),
        ],
        cwd=SUITE,
        env=os.environ | {"SUITE_URL": url, "PYTHONPATH": str(Path(__file__).parent / "suite")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"=+ 114 passed in ", run.stdout), run.stdout
    made = re.search(r"holdfast stores: (\d+)", run.stdout)
    assert made is not None
    assert int(made[1]) > 80
