"""The example agent, restarted, recalls by meaning what was said two sessions earlier."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "remembering_agent.py"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that an embedded server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-example-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _session(place: Path, said: str) -> list[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    run = subprocess.run(
        [sys.executable, str(EXAMPLE), str(place / "memory"), said],
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_restarted_agent_recalls_by_meaning_what_was_said_two_sessions_earlier(
    place: Path,
) -> None:
    assert _session(place, "My sister keeps bees near Lyon.")[:2] == [
        "woke up: new",
        "says: Good to know.",
    ]
    _session(place, "The train leaves at nine.")
    third = _session(place, "Who could give me some honey?")
    assert third[1] == "remembers: My sister keeps bees near Lyon. (by semantic)"
    assert third[2] == "says: I remember something about that."


@pytest.mark.parametrize("arguments", [[], ["./memory"], ["./memory", "hello", "there"]])
def test_the_example_says_what_it_wants(arguments: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.startswith("usage: python ")
    assert 'FOLDER "what you say"' in run.stderr
