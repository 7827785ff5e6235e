"""``holdfast bench peers``: the same operations by Holdfast and by others, on the same servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.a2a_sdk import A2aTasks
from benchmarks.peers.adk_adapter import AdkAdapter
from benchmarks.peers.dbos_queue import DbosWorkflows
from benchmarks.peers.google_adk import AdkSessions
from benchmarks.peers.langgraph import LanggraphSaver, LanggraphStore
from benchmarks.peers.langgraph_adapters import SaverAdapter, StoreAdapter
from benchmarks.peers.match import Peer, Row, Stage, absent, play, version_of
from benchmarks.peers.mem0ai import Mem0
from benchmarks.peers.openai_adapter import OpenAiAdapter
from benchmarks.peers.openai_agents import RedisSessions, SqlAlchemySessions
from benchmarks.peers.queues import PgQueuerJobs, ProcrastinateJobs
from benchmarks.peers.servers import Servers, servers
from benchmarks.peers.workload import Workload
from holdfast.bench.servers import settle

ADAPTERS: tuple[Peer, ...] = (SaverAdapter(), StoreAdapter(), OpenAiAdapter(), AdkAdapter())
"""Those with an adapter of ours: our side needs the framework too."""

PEERS: tuple[Peer, ...] = (
    SqlAlchemySessions(),
    AdkSessions(),
    RedisSessions(),
    LanggraphStore(),
    LanggraphSaver(),
    A2aTasks(),
    Mem0(),
    PgQueuerJobs(),
    ProcrastinateJobs(),
    DbosWorkflows(),
    *ADAPTERS,
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A peer that did not take part, and how to have it."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """All rows, who did not take part, and what was compared.

    Where no bar was set for a row it is 1: not slower than the peer.
    """

    rows: list[Row]
    missing: list[Missing]
    versions: dict[str, str]
    workload: str
    growth: list[dict[str, Any]] = field(default_factory=list)
    """What a call costs on something long against something short, on both sides."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "missing": [{"name": one.name, "why": one.why} for one in self.missing],
            "versions": self.versions,
            "workload": self.workload,
            "growth": self.growth,
        }


async def run(
    progress: Callable[[str], None], *, quick: bool = False, data: Path | None = None
) -> Report:
    """Start servers of our own, and let each installed peer do its lines beside us.

    ``data`` is a tau-bench result file; without it the messages are generated. ::

        report = await run(print, quick=True)
    """
    workload = Workload.generated() if data is None else Workload.read(data)
    there, missing = present(PEERS)
    async with servers() as started:
        stage = Stage(started.url, started.redis, workload, quick, 100 if quick else 500)
        versions = await started.versions() | _versions(there)
        report = Report([], missing, versions, workload.name)
        for peer in there:
            await meet(peer, stage, started, report, progress)
    return report


def present(peers: Sequence[Peer]) -> tuple[list[Peer], list[Missing]]:
    """Those that are installed, and those that are not, with what would install them.

    ::

        there, missing = present(PEERS)
    """
    there: list[Peer] = []
    missing = []
    for peer in peers:
        if lacking := absent(peer.packages):
            why = f"{', '.join(lacking)} not installed: pip install {peer.install}"
            missing.append(Missing(peer.name, why))
        else:
            there.append(peer)
    return there, missing


async def meet(
    peer: Peer, stage: Stage, started: Servers, report: Report, progress: Callable[[str], None]
) -> None:
    """Let a peer do all its lines beside us, and report them.

    ::

        await meet(PEERS[0], stage, started, report, print)
    """
    progress(f"{peer.name}: filling")
    async with peer.ours(stage) as ours, peer.theirs(stage) as theirs:
        for line in peer.lines:
            progress(f"{peer.name}: {line.operation}")
            await settle(started.url)
            name = line.operation
            report.rows.append(await play(line, ours[name], theirs[name], quick=stage.quick))
        if peer.growth:
            progress(f"{peer.name}: {peer.growth.name}, a long one beside a short one")
            report.growth.append(await peer.growth.measure(ours, theirs, quick=stage.quick))


def _versions(there: Sequence[Peer]) -> dict[str, str]:
    packages = sorted({package for peer in there for package in peer.packages})
    return {"holdfast": version_of("holdfast")} | {name: version_of(name) for name in packages}
