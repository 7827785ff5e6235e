"""Make the fixtures with an earlier version: ``python -m tests.upgrade.making TREE``.

``TREE`` is a checkout of that version; ``README.md`` says which one it was.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from holdfast.engines.postgres.binaries import program
from holdfast.testing.valkey_server import ValkeyServer
from tests.engines.postgres_database import connected, empty_database

FOLDER = Path(__file__).parent
ROWS, KEYS, ANSWERS = (FOLDER / name for name in ("rows.sql", "redis.json", "answers.json"))
STATEMENTS = FOLDER / "statements.sql"
SIGNATURES = """
SELECT format('%s(%s) -> %s', p.proname, pg_get_function_arguments(p.oid),
              pg_get_function_result(p.oid))
FROM pg_proc p WHERE p.pronamespace = 'holdfast'::regnamespace ORDER BY 1
"""
"""The functions of a database, one a line."""


async def make(tree: Path) -> None:
    """Fill a database and a Valkey with the code in ``tree``, and write them down."""
    server = ValkeyServer(fsync="no")
    server.start()
    async with empty_database() as url:
        path = os.pathsep.join((str(tree / "src"), str(FOLDER.parent.parent)))
        await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "tests.upgrade.filling", url, server.url, str(ANSWERS)],
            check=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        await asyncio.to_thread(_dump_rows, url)
        async with connected(url) as connection:
            version = await connection.fetchval("SELECT max(version) FROM holdfast.migrations")
            lines = [row[0] for row in await connection.fetch(SIGNATURES)]
    (FOLDER / f"functions_{version:04}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    await _dump_keys(server.url)
    server.remove()
    files = sorted((tree / "src/holdfast").glob("*/postgres/sql/*.sql"))
    STATEMENTS.write_text("".join(map(_statements, files)), encoding="utf-8")


def _statements(file: Path) -> str:
    """The statements of a file under their names, without what is said about them."""
    kept = [
        line.replace("-- name: ", f"-- name: {file.stem}.")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("-- name: ") or (line and not line.lstrip().startswith("--"))
    ]
    return "\n".join(kept) + "\n"


def _dump_rows(url: str) -> None:
    """As INSERTs, which any driver runs; the migrations record themselves."""
    dumped = subprocess.run(
        [
            *(str(program("pg_dump", major=18)), "--dbname", url, "--data-only"),
            *("--rows-per-insert=100", "--schema=holdfast"),
            "--exclude-table=holdfast.migrations",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    kept = [
        line
        for line in dumped.splitlines()
        # Comments of pg_dump, commands of psql and settings of the session are not rows.
        if line and not line.startswith(("--", "\\", "SET ", "SELECT pg_catalog.set_config"))
    ]
    ROWS.write_text("\n".join(kept) + "\n", encoding="utf-8")


async def _dump_keys(url: str) -> None:
    """Every key with the milliseconds it has left and its value, as RESTORE takes it."""
    redis: Any = Redis.from_url(url)
    found = {}
    for key in sorted(await redis.keys()):
        found[key.decode()] = [max(await redis.pttl(key), 0), (await redis.dump(key)).hex()]
    await redis.aclose()
    KEYS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1]).resolve()))
