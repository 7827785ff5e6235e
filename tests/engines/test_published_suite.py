"""A broken engine fails the published suite for the right reasons."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(tmp_path: Path, engine: str, *more: str) -> subprocess.CompletedProcess[str]:
    """As a stranger would: in a folder of their own, with the package and a module of theirs."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--pyargs", "holdfast.testing", "-q", "-rf"),
            *("-p", "no:cacheprovider", "--engine", engine, *more),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_broken_engine_fails_the_published_suite_for_the_right_reasons(tmp_path: Path) -> None:
    run = _run(
        tmp_path, "tests.engines.broken_sqlite:BrokenHarness", "--machine-steps=200", "--tb=no"
    )
    assert run.returncode == 1, run.stdout + run.stderr
    failed = set(re.findall(r"^FAILED \S+::(\w+)\[", run.stdout, re.MULTILINE))
    assert failed == {
        # reads, then writes
        "test_100_concurrent_patches_of_different_keys_all_survive",
        # forgets what was to be deleted
        "test_delete_keys_removes_keys_in_the_same_step_as_the_patch",
        "test_a_key_is_any_text_the_empty_one_included",
        "test_hostile_input_is_kept_exactly_or_refused_with_nothing_written",
        # mixes up the tenants
        "test_one_tenant_never_sees_anothers_state",
        "test_get_many_of_an_unknown_session_is_an_empty_snapshot",
        # and the reference answers differently
        "test_the_engine_and_its_reference_give_the_same_answers_step_by_step",
    }


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("sqlite", "write it as module:HarnessClass"),
        ("tests.engines.broken_sqlite:Nothing", "has no attribute 'Nothing'"),
        ("nowhere.at_all:Harness", "No module named 'nowhere'"),
        ("tests.engines.broken_sqlite:BrokenStates", "not a subclass of holdfast.testing.Harness"),
    ],
)
def test_a_wrong_engine_option_says_what_to_change(
    tmp_path: Path, engine: str, reason: str
) -> None:
    run = _run(tmp_path, engine)
    assert run.returncode != 0
    assert reason in run.stdout + run.stderr
