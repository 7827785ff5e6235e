"""What another tenant's data does when one condition on a tenant is forgotten, each in its turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = "python -m pytest tests/engines/test_postgres_conditions.py --long"
PUBLISHED = ROOT / "docs/benchmarks/profiles/conditions.json"
SUITE = "src/holdfast/testing"
SOME = ("test_boards.py", "test_episodes.py", "test_graph.py", "test_ledger_list.py")
"""The tests that call the statements in the short form."""

ENGINES = (
    "tests.engines.postgres:PostgresHarness",
    "tests.engines.hybrid:HybridHarness",
    "tests.engines.sealed:SealedPostgresHarness",
)
BESIDE = (
    "tests/archives/test_mixed_archives.py",
    "tests/erasure/test_erase.py",
    "tests/engines/test_postgres_embedding.py",
    "tests/engines/test_postgres_queues.py",
    "tests/engines/test_postgres_vector.py",
    "tests/engines/test_postgres_word_search.py",
    "tests/memory/test_behind.py",
    "tests/memory/test_consolidation.py",
    "tests/memory/test_damaged_hot_data.py",
    "tests/memory/test_state_eviction.py",
    "tests/memory/test_without_redis.py",
    "tests/sealing/test_data_keys.py",
    "tests/wiring/test_hybrid.py",
    "tests/wiring/test_owner_upgrade.py",
)
"""Tests of what the published suite does not call."""


def _left_out(results: Path, *tests: str) -> dict[str, Any]:
    """What came of leaving conditions out in the statements of these tests."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.engines.mutated", *tests, "-q"),
            *("--tb=line", "-p", "no:cacheprovider", "-k", "not machine"),
            *("--ignore", f"{SUITE}/test_hostile_input.py"),
        ],
        cwd=ROOT,
        env={**os.environ, "HOLDFAST_TEST_MUTANTS": str(results)},
        capture_output=True,
        text=True,
        check=False,
    )
    # A few tests fail, since their statements also ran for a second tenant: they only call.
    assert run.returncode in {0, 1}, run.stdout[-5000:]
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def test_no_tenant_sees_another_though_a_condition_is_forgotten(tmp_path: Path) -> None:
    tests = [f"{SUITE}/{one}" for one in SOME]
    found = _left_out(tmp_path / "found.json", *tests, "--engine", ENGINES[0])
    assert found["leaks"] == {}
    assert found["left_out"] > 100
    # Without the policies, many of them show or change something of the other tenant.
    assert found["leaks_without_policies"] > 30


def test_no_tenant_sees_another_whichever_condition_is_forgotten(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("minutes of forgotten conditions: --long")
    engines = [part for one in ENGINES for part in ("--engine", one)]
    found = _left_out(tmp_path / "found.json", SUITE, *BESIDE, *engines)
    PUBLISHED.write_text(json.dumps({"command": COMMAND, **found}, indent=2) + "\n")
    assert found["leaks"] == {}
    assert found["left_out"] > 0.98 * found["conditions"]
    assert found["leaks_without_policies"] > 200
