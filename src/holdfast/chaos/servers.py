"""The servers of a run, each behind a proxy, and the faults that hit servers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from holdfast.chaos.addresses import Given, address_of, by_way_of
from holdfast.chaos.disk import SmallDisk
from holdfast.chaos.plan import Topology
from holdfast.chaos.proxy import Proxy
from holdfast.chaos.replicated import ServerGroup, group_of
from holdfast.chaos.schedule import Fault
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from holdfast.values.errors import BackPressureError, EngineError

DELAY_SECONDS = 0.25
"""The delay of each byte while a connection is slow; a round trip takes twice as long."""

_POSTGRES = ("-c", "max_connections=100", "-c", "max_wal_size=128MB", "-c", "min_wal_size=48MB")


@dataclass(slots=True)
class _Target:
    """One server and its proxy: started by the run, with its disk, or given by the user."""

    url: str
    server: PostgresServer | ValkeyServer | None = None
    disk: SmallDisk | None = None
    group: ServerGroup | None = None
    """The server with its replicas, if it has any."""
    proxies: list[Proxy] = field(default_factory=list)
    no_proxy: str = ""
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a fault stops the server, so that two faults do not stop it at once."""


class Servers:
    """A Postgres and a Valkey, each behind a proxy.

    ``disks``: the servers are started on a separate disk, which can be made full. ``replicated``
    are those that have replicas. ::

        async with Servers(None, ["postgres", "valkey"]).open() as site:
            await site.do(fault)
    """

    def __init__(
        self,
        given: Given | None,
        names: list[str],
        *,
        disks: bool = True,
        replicated: Mapping[str, Topology] | None = None,
    ) -> None:
        self._given = given
        self._replicated = replicated or {}
        self._names = names
        self._disks = disks
        self._targets: dict[str, _Target] = {}
        self.probes: dict[str, Callable[[], Awaitable[object]]] = {}
        """By server name: a write that succeeds when the server works again."""
        self.recoveries: dict[str, list[float]] = {}
        """By server name: seconds from its restart, or from the death of a primary with replicas,
        until a write was acknowledged again."""
        self.holds: dict[str, Callable[[], Awaitable[None]]] = {}
        """By server name: a condition that a long outage of the server waits for before it ends."""

    @property
    def own(self) -> bool:
        """Whether the run started the servers, and so may stop them."""
        return self._given is None

    def url(self, name: str, *, direct: bool = False) -> str:
        """Return the URL of a server, through its proxy or direct; ``""`` if there is none."""
        target = self._targets.get(name)
        if target is None:
            return ""
        if direct or not target.proxies:
            return target.url
        if target.group is not None:
            return target.group.address(tuple(proxy.port for proxy in target.proxies))
        return by_way_of(target.url, target.proxies[0].port)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Servers]:
        """Start the run's own servers and the proxies; stop and delete them afterwards."""
        async with AsyncExitStack() as stack:
            for name in self._names:
                if self._given is not None:
                    url = self._given.url if name == "postgres" else self._given.redis
                    target = _Target(url)
                else:
                    target = await asyncio.to_thread(self._start, name, stack)
                for one in _addresses(target):
                    proxy = await stack.enter_async_context(Proxy(*one).listening())
                    target.proxies.append(proxy)
                self._targets[name] = target
            yield self

    def cannot(self, fault: Fault) -> str:
        """Return why a fault cannot be injected into a server here; ``""`` if it can."""
        target = self._targets[fault.victim]
        match fault.verb:
            case "kill" if not self.own:
                return "this server is not ours to kill"
            case "fill" if not self.own:
                return "this disk is not ours to fill"
            case "failover" if target.group is None:
                return "this server has no replicas of ours"
            case "fill" if target.disk is None:
                return "this process may not mount a tmpfs: run as root"
            case "cut" | "delay" | "silence" | "deafen" if not target.proxies:
                return target.no_proxy
        return ""

    async def do(self, fault: Fault) -> None:
        """Inject a fault into a server. Returns when the fault is over."""
        target = self._targets[fault.victim]
        match fault.verb:
            case "kill":
                await self._kill(fault.victim, target, fault.lasts_seconds)
            case "fill":
                await self._fill(fault.victim, target, fault.lasts_seconds)
            case "failover":
                await self._fail_over(fault.victim, target)
            case verb:
                async with asyncio.TaskGroup() as tasks:
                    for proxy in target.proxies:
                        tasks.create_task(_disturb(proxy, verb, fault.lasts_seconds))

    def _start(self, name: str, stack: AsyncExitStack) -> _Target:
        if name in self._replicated:
            group = group_of(self._replicated[name], *(_POSTGRES if name == "postgres" else ()))
            stack.callback(group.remove)
            group.start()
            return _Target(group.address(), group=group)
        disk = SmallDisk.mount() if self._disks else None
        folder = None
        if disk is not None:
            stack.callback(disk.unmount)
            folder = disk.folder
        server: PostgresServer | ValkeyServer
        if name == "postgres":
            server = PostgresServer(18, *_POSTGRES, folder=folder)
            url = server.url(tcp=True)
        else:
            server = ValkeyServer(folder=folder)
            url = server.url
        stack.callback(server.remove)
        server.start()
        return _Target(url, server, disk)

    async def _kill(self, name: str, target: _Target, away_seconds: float) -> None:
        server = target.server
        assert server is not None, "only servers of our own are killed"
        async with target.busy:
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(away_seconds)
            if away_seconds and name in self.holds:
                await self.holds[name]()
            await self._restart(name, server)

    async def _fail_over(self, name: str, target: _Target) -> None:
        group = target.group
        assert group is not None, "only servers with replicas fail over"
        async with target.busy:
            begun = time.monotonic()
            await asyncio.to_thread(group.fail_over)
            await self._answers(name)
            self.recoveries.setdefault(name, []).append(round(time.monotonic() - begun, 2))
            await asyncio.to_thread(group.repair)

    async def _fill(self, name: str, target: _Target, for_seconds: float) -> None:
        server, disk = target.server, target.disk
        assert server is not None, "only disks of our own are filled"
        assert disk is not None, "only a small disk is filled"
        async with target.busy:
            try:
                await asyncio.to_thread(disk.fill)
                await asyncio.sleep(for_seconds)
            finally:
                await asyncio.to_thread(disk.free)
            if server.process is not None and server.process.poll() is None:
                await self._answers(name)
            else:
                # The server stopped itself rather than acknowledge a write that it cannot store.
                await self._restart(name, server)

    async def _restart(self, name: str, server: PostgresServer | ValkeyServer) -> None:
        begun = time.monotonic()
        await asyncio.to_thread(server.start)
        await self._answers(name)
        self.recoveries.setdefault(name, []).append(round(time.monotonic() - begun, 2))

    async def _answers(self, name: str) -> None:
        while name in self.probes:
            with contextlib.suppress(EngineError, BackPressureError):
                await self.probes[name]()
                return
            await asyncio.sleep(0.02)


def _addresses(target: _Target) -> list[tuple[str, int]]:
    """Return the addresses that need a proxy; if there are none, the target has the reason."""
    if target.group is not None:
        target.no_proxy = "clients find the nodes past a proxy"
        return [("127.0.0.1", port) for port in target.group.ports]
    address = address_of(target.url)
    if isinstance(address, str):
        target.no_proxy = address
        return []
    return [address]


async def _disturb(proxy: Proxy, verb: str, for_seconds: float) -> None:
    match verb:
        case "cut":
            await proxy.cut()
        case "delay":
            await proxy.delay(DELAY_SECONDS, for_seconds=for_seconds)
        case "silence":
            await proxy.silence(for_seconds=for_seconds)
        case "deafen":
            await proxy.deafen(for_seconds=for_seconds)
        case _:
            raise ValueError(f"no fault of a connection is called {verb!r}")
