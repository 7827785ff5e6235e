"""``holdfast bench peers``: our side of every line on real servers, and who is not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from benchmarks.peers import a2a_sdk
from benchmarks.peers.a2a_sdk import A2aTasks
from benchmarks.peers.contest import ADAPTERS, PEERS, Missing, Report, meet, present
from benchmarks.peers.match import Calls, Line, Peer, Row, Stage, _percentiles, absent, play
from benchmarks.peers.servers import Servers, servers
from benchmarks.peers.workload import BODY_BYTES, Workload
from holdfast.values.errors import ConfigError

pytestmark = pytest.mark.asyncio(loop_scope="session")

TRAJECTORY = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "is there a flight?"},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "search"}}]},
    {"role": "tool", "content": "3 flights"},
    {"role": "assistant", "content": "there are three"},
    {"role": "assistant", "content": ""},
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def started() -> AsyncIterator[Servers]:
    async with servers() as found:
        yield found


@pytest.fixture
def short_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a2a_sdk, "LENGTHS", {3: 1, 4: 1, 5: 1})


@pytest.mark.usefixtures("short_tasks")
@pytest.mark.parametrize(
    "peer", [one for one in PEERS if one not in ADAPTERS], ids=lambda peer: peer.name
)
async def test_our_side_of_every_line_of_a_peer_can_be_called(peer: Peer, started: Servers) -> None:
    stage = Stage(started.url, started.redis, Workload.generated(), quick=True, length=25)
    async with peer.ours(stage) as calls:
        assert list(calls) == [line.operation for line in peer.lines]
        for line in peer.lines:
            # A queue is filled by its first line, as often as a batch of its second takes.
            for number in range(1, line.block + 1):
                await calls[line.operation](number)


class _Mirror(A2aTasks):
    """A peer that is ourselves once more."""

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        async with self.ours(stage) as calls:
            yield calls


@pytest.mark.usefixtures("short_tasks")
async def test_a_meeting_gives_a_row_for_each_line_and_the_growth_of_a_task(
    started: Servers,
) -> None:
    stage = Stage(started.url, started.redis, Workload.generated(), quick=True)
    report = Report([], [Missing("x", "y")], await started.versions(), stage.workload.name)
    await meet(_Mirror(), stage, started, report, lambda _text: None)
    found = report.to_json()
    assert [row["operation"] for row in found["rows"]] == [one.operation for one in A2aTasks.lines]
    assert all(row["ours_p50_us"] <= row["ours_p95_us"] for row in found["rows"])
    assert all(row["met"] == (row["ratio"] >= row["bar"]) for row in found["rows"])
    assert found["missing"] == [{"name": "x", "why": "y"}]
    assert found["versions"]["synchronous_commit"] == "on"
    [grown] = found["growth"]
    assert grown["name"] == "a message to a task"
    assert grown["met"] == (grown["ours"] <= grown["bar"])
    assert json.loads(json.dumps(found)) == found


async def test_growth_is_of_the_longest_task_against_the_shortest() -> None:
    called: list[str] = []

    def calls(side: str) -> Calls:
        async def call(name: str) -> None:
            called.append(f"{side} {name}")

        names = [line.operation for line in A2aTasks.lines]
        return {name: lambda _n, name=name: call(name) for name in names}  # type: ignore[misc]

    found = await A2aTasks.growth.measure(calls("ours"), calls("peer"), quick=True)
    assert (found["from"], found["to"]) == (10, 1000)
    short, _, long = (line.operation for line in A2aTasks.lines)
    assert set(called) == {f"{side} {name}" for side in ("ours", "peer") for name in (short, long)}
    for one in set(called):
        assert called.count(one) == A2aTasks.growth.calls_of(quick=True)


async def test_a_peer_that_is_not_installed_is_missing_with_the_command_that_installs_it() -> None:
    class Nobody(A2aTasks):
        name = "nobody"
        packages = ("asyncpg", "no-such-package")
        install = "no-such-package[extra]"

    class There(A2aTasks):
        packages = ("asyncpg",)

    there, missing = present([Nobody(), There()])
    assert [type(one) for one in there] == [There]
    why = "no-such-package not installed: pip install no-such-package[extra]"
    assert missing == [Missing("nobody", why)]


async def test_every_peer_is_either_there_or_missing() -> None:
    there, missing = present(PEERS)
    assert len(there) + len(missing) == len(PEERS)
    for peer in PEERS:
        lacking = absent(peer.packages)
        assert (peer in there) == (not lacking)
        named = {one.name: one.why for one in missing}.get(peer.name, "")
        assert all(package in named for package in lacking)


async def test_operations_are_told_apart_and_say_why_they_are_fair() -> None:
    lines = [line for peer in PEERS for line in peer.lines]
    assert len({line.operation for line in lines}) == len(lines)
    assert all(line.note and line.bar >= 1 for line in lines)


async def test_the_figures_are_for_one_thing_and_the_ratio_is_how_many_times_as_fast_ours_is() -> (
    None
):
    async def nothing(_number: int) -> None:
        pass

    line = Line("op", "ours", "theirs", 2.0, "why", block=3, blocks=2, each=10)
    row = await play(line, nothing, nothing)
    assert row.samples == 6
    assert _percentiles([50.0] * 4 + [100.0], 10)[0] == 5.0
    asked = {"operation": "op", "ours": "a", "peer": "b", "unit": "", "note": "", "samples": 1}
    times = {f"{side}_p{at}_us": 1.0 for side in ("ours", "peer") for at in (50, 95, 99)}
    assert Row(**asked, **times, ratio=2.0, bar=2.0).met  # type: ignore[arg-type]
    assert not Row(**asked, **times, ratio=1.9, bar=2.0).met  # type: ignore[arg-type]


async def test_generated_turns_are_the_same_each_time_and_of_one_size() -> None:
    workload = Workload.generated()
    assert workload == Workload.generated()
    assert {len(one.text.encode()) for one in workload.said} == {BODY_BYTES}
    assert len({one.text for one in workload.said}) == len(workload.said)
    assert workload.turns(1, len(workload.said)) == [workload.said[0]]
    assert all(len(one.split()) == 8 for one in workload.questions(3))
    assert len({message.id for message in workload.messages(3)}) == 3


async def test_turns_are_read_from_the_runs_of_tau_bench(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{"traj": TRAJECTORY}, {"traj": TRAJECTORY[:2]}]))
    said = Workload.read(path).said
    assert [one.role for one in said] == ["user", "assistant", "user", "assistant", "user"]
    assert said[0].text == "is there a flight?"
    assert "search" in said[1].text


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"traj": 3}]', "[]", '[{"traj": []}]'])
async def test_a_file_that_is_no_tau_bench_result_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"tau-bench|no run"):
        Workload.read(path)


async def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        Workload.read(tmp_path / "nowhere.json")
