"""``holdfast export``, ``import`` and ``copy`` as an operator runs them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import holdfast
from tests.cli.command import Command


def _record(url: str, tenant: str) -> None:
    async def work() -> None:
        async with holdfast.open(url, tenant=tenant, background=False) as state:
            await state.memory("writer/ana", session_id="s1").record("note", {"note": "low tide"})
            await state.blobs.store(b"low tide")

    asyncio.run(work())


def test_a_tenant_is_exported_and_imported(
    command: Command, database: str, tenant: str, tmp_path: Path
) -> None:
    _record(database, tenant)
    done = command("export", str(tmp_path / "a"))
    assert done.code == 0, done.err
    assert done.out.startswith(f"exported to {tmp_path / 'a'}: 3 records and 1 blobs")
    facts = command("export", str(tmp_path / "a"), "--json").json
    assert facts["kinds"]["events"]["records"] == 1
    other = f"{tenant}-2"
    refused = command("import", str(tmp_path / "a"), "--tenant", other)
    assert refused.code == 1
    assert "--rename" in refused.err
    loaded = command("import", str(tmp_path / "a"), "--tenant", other, "--rename", "--json").json
    assert loaded["kinds"] == facts["kinds"]
    again = command("import", str(tmp_path / "a"), "--tenant", other, "--rename")
    assert again.code == 0, again.err


def test_what_is_no_archive_is_refused_in_one_line(command: Command, tmp_path: Path) -> None:
    refused = command("import", str(tmp_path))
    assert refused.code == 1
    assert "it has no manifest.json" in refused.err
    assert "Traceback" not in refused.err


def test_a_tenant_is_copied_to_another_database(
    command: Command, database: str, tenant: str, tmp_path: Path
) -> None:
    _record(database, tenant)
    to = ("--from", database, "--to", str(tmp_path / "there"), "--tenant", tenant)
    copied = command("copy", *to, "--json").json
    assert copied["kinds"]["events"]["records"] == 1
    assert copied["blobs"] == 1
    again = command("copy", *to)
    assert again.code == 0, again.err
