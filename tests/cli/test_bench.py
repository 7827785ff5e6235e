"""``holdfast bench all`` goes on when a suite fails, and does not hide it."""

from __future__ import annotations

import json

import pytest

from holdfast.bench import suites
from holdfast.bench.suites import DEFAULT, Found, Options, Progress
from holdfast.values.errors import UnavailableError
from tests.cli.command import Command


async def _fails(_progress: Progress, _options: Options) -> Found:
    raise UnavailableError("valkey", "it went away")


async def _measures(progress: Progress, _options: Options) -> Found:
    progress("something")
    return {"figure": 7}


@pytest.mark.parametrize(("failing", "code"), [([], 0), (["tasks"], 1), (["stores", "peers"], 1)])
def test_bench_all_runs_the_other_suites_and_ends_with_1_when_one_fails(
    command: Command, monkeypatch: pytest.MonkeyPatch, failing: list[str], code: int
) -> None:
    for name in DEFAULT:
        suite = _fails if name in failing else _measures
        monkeypatch.setitem(suites.SUITES, name, suite)
    answer = command("bench", "all", "--json")
    assert answer.code == code, answer.err
    facts = json.loads(answer.out)
    # There is no data for recall, which is not a failure.
    assert [one["name"] for one in facts.pop("missing")] == ["recall", *failing]
    assert facts == {name: {"figure": 7} for name in DEFAULT if name not in ["recall", *failing]}
    assert [line for line in answer.err.splitlines() if "failed" in line] == [
        f"{name} failed: valkey: it went away" for name in failing
    ]
