"""The adapters beside the frameworks' own stores: every line runs, and both sides do the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from benchmarks.peers import adk_adapter, openai_adapter
from benchmarks.peers import langgraph_adapters as langgraph
from benchmarks.peers.contest import ADAPTERS, Report, meet
from benchmarks.peers.match import Peer, Stage
from benchmarks.peers.servers import Servers, servers
from benchmarks.peers.workload import Workload

pytestmark = pytest.mark.asyncio(loop_scope="session")

READS: dict[str, Callable[[Any], Any]] = {
    langgraph.GET: lambda found: (
        found.checkpoint["channel_values"],
        found.metadata["step"],
        [write[1:] for write in found.pending_writes],
    ),
    langgraph.GET_ITEM: lambda found: (found.namespace, found.key, found.value),
    langgraph.SEARCH: lambda found: (found[0].key, round(found[0].score, 4)),
    openai_adapter.GET: lambda found: found,
    adk_adapter.GET: lambda found: [(one.author, one.content) for one in found.events],
}
"""What both sides return alike; an index of theirs may leave out all but the first."""


@pytest_asyncio.fixture(loop_scope="session")
async def started(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    monkeypatch.setattr(langgraph, "LENGTHS", {2: 4, 3: 1})
    monkeypatch.setattr(langgraph, "MEMORIES", 12)
    async with servers() as found:
        yield found


def _stage(started: Servers) -> Stage:
    return Stage(started.url, started.redis, Workload.generated(), quick=True, length=25)


@pytest.mark.parametrize("peer", ADAPTERS, ids=lambda peer: peer.name)
async def test_every_line_gives_a_row(peer: Peer, started: Servers) -> None:
    stage = _stage(started)
    report = Report([], [], {}, stage.workload.name)
    await meet(peer, stage, started, report, lambda _text: None)
    assert [row.operation for row in report.rows] == [line.operation for line in peer.lines]
    assert all(row.ours_p50_us > 0 and row.peer_p50_us > 0 for row in report.rows)
    grown = [peer.growth.name] if peer.growth else []
    assert [one["name"] for one in report.growth] == grown


@pytest.mark.parametrize("peer", ADAPTERS, ids=lambda peer: peer.name)
async def test_both_sides_do_the_same(peer: Peer, started: Servers) -> None:
    stage = _stage(started)
    async with peer.ours(stage) as ours, peer.theirs(stage) as theirs:
        for line in peer.lines:
            for number in range(1, line.block + 1):
                mine = await ours[line.operation](number)
                other = await theirs[line.operation](number)
                if found := READS.get(line.operation):
                    assert found(mine) == found(other)
