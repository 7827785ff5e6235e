"""The SDK's own tests of sessions, with ``HoldfastSession`` in the place of ``SQLiteSession``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SUITE = HERE.parents[2] / "build" / "suites" / "openai_agents"
FILES = ("tests/memory/test_session.py", "tests/memory/test_session_limit.py")

SQLITE = {
    *("close_closes_worker_thread_connections", "reaps_connections_from_exited_worker_threads"),
    "closes_retired_connections_before_the_next_allocation",
    *("keeps_connections_of_live_worker_threads", "closed_rejects_empty_add_items"),
    *("pop_item_skips_corrupt_most_recent", "get_items_limit_skips_corrupt_newest_rows"),
    "pop_item_returns_none_after_dropping_only_corrupt_rows",
    "get_items_session_settings_limit_skips_corrupt_rows",
    *("file_lock_is_shared_across_instances", "failed_add_items_releases_write_lock"),
    *("failed_clear_session_rolls_back", "failed_pop_item_releases_write_lock"),
    *("rollback_failure_evicts_connection", "close_retries_quarantined_connection"),
    "post_commit_cancellation_propagates_after_known_outcome[add]",
    "post_commit_cancellation_propagates_after_known_outcome[pop]",
    "post_commit_cancellation_propagates_after_known_outcome[clear]",
}
"""Tests that look into SQLite: its connections, locks, rows and ``close``."""


@pytest.mark.skipif(not SUITE.exists(), reason="the suite is not there: make test-adapters")
def test_all_tests_of_sessions_pass_that_do_not_open_sqlite() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "sqlite_replaced", "-q", "-rA", *FILES],
        cwd=SUITE,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\S+)", done.stdout, re.MULTILINE)
    outcomes = {name: outcome for outcome, name in lines}
    passed = {name for name, outcome in outcomes.items() if outcome == "PASSED"}
    failed = {name.removeprefix("test_sqlite_session_") for name in outcomes.keys() - passed}
    assert failed == SQLITE, done.stdout[-3000:]
    assert len(passed) == 53
