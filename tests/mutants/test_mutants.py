from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from holdfast.testing.harness import NOUNS
from tests.mutants.catalog import MUTANTS

ROOT = Path(__file__).parents[2]


def _failures(contract: str, names: list[str], report: Path) -> dict[str, set[str]]:
    """Which tests of a contract fail on which mutant."""
    engines = [f"--engine=tests.mutants.catalog:{name}" for name in names]
    files = sorted((ROOT / "src/holdfast/testing").glob(f"test_{NOUNS[contract]}*.py"))
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no"),
            *(*map(str, files), *engines, f"--junitxml={report}"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, f"expected failing tests:\n{run.stdout}{run.stderr}"
    failed: dict[str, set[str]] = defaultdict(set)
    for case in ET.parse(report).iter("testcase"):
        found = re.fullmatch(r"(\w+)\[(\w+).*\]", case.get("name", ""))
        assert found, case.attrib
        if case.find("failure") is not None or case.find("error") is not None:
            failed[found[2]].add(found[1])
    return failed


@pytest.mark.parametrize("contract", sorted({one.contract for one in MUTANTS.values()}))
def test_each_mutant_fails_at_least_the_tests_of_the_promise_it_breaks(
    contract: str, tmp_path: Path
) -> None:
    mutants = [one for one in MUTANTS.values() if one.contract == contract]
    failed = _failures(contract, [one.name for one in mutants], tmp_path / "report.xml")
    missed = {one.name: set(one.breaks) - failed[one.name] for one in mutants}
    assert not any(missed.values()), missed


def test_there_are_at_least_thirty_mutants() -> None:
    assert len(MUTANTS) >= 30
