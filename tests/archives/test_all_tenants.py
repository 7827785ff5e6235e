"""Archives of all tenants in one call, whatever their names are."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast.cli.commands import app
from holdfast.errors import CodecError, InvalidInputError
from holdfast.wiring.archive_tenants import archived_tenants, tenant_folder
from tests.engines.postgres_database import migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
NAMES = ("acme", "../up", ".", "a/b", "ü" * 100, "x" * 300, "TENANT", "tenant")


async def test_all_tenants_are_exported_imported_and_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "all"
    monkeypatch.delenv("STORAGE_TYPE", raising=False)
    async with migrated_database() as url, migrated_database() as two, migrated_database() as three:
        async with holdfast.open(url) as state:
            for name in NAMES:
                await state.for_tenant(name).short_term.set_state("s1", {"of": name})
        monkeypatch.setenv("DATABASE_URL", url)
        shown = await _run("export", str(folder), "--all-tenants")
        assert len(shown.splitlines()) == len(NAMES)
        # Nothing is outside of the folder.
        assert _inside(tmp_path) == {folder}
        places = {tenant_folder(folder, one) for one in NAMES}
        assert _inside(folder) == {*places, folder / "tenants.json"}
        monkeypatch.setenv("DATABASE_URL", two)
        for _ in range(2):  # again: it is there already
            await _run("import", str(folder), "--all-tenants")
        monkeypatch.delenv("DATABASE_URL")
        await _run("copy", "--from", url, "--to", three, "--all-tenants")
        for place in (two, three):
            async with holdfast.open(place) as state:
                assert await state.ops.tenants() == sorted(NAMES)
                for name in NAMES:
                    found = await state.for_tenant(name).short_term.get_state("s1")
                    assert found == {"of": name}


async def test_an_archive_of_all_tenants_that_is_not_whole_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "all"
    names = ["acme", "x" * 300, f"sha256-{hashlib.sha256(b'x' * 300).hexdigest()}"]
    monkeypatch.delenv("STORAGE_TYPE", raising=False)
    async with migrated_database() as url:
        async with holdfast.open(url) as state:
            for name in names:
                await state.for_tenant(name).short_term.set_state("s1", {"of": name})
        monkeypatch.setenv("DATABASE_URL", url)
        await _run("export", str(folder), "--all-tenants")
        assert [name for name, _ in archived_tenants(folder)] == sorted(names)
        manifest = tenant_folder(folder, "acme") / "manifest.json"
        text = manifest.read_bytes()
        manifest.unlink()
        with pytest.raises(CodecError, match="was lost"):
            archived_tenants(folder)
        # An export that fails on the way leaves no list.
        again = ("export", str(folder), "--all-tenants")
        failed = await asyncio.to_thread(CliRunner().invoke, app, again)
        assert "files that are not an archive" in str(failed.exception)
        with pytest.raises(InvalidInputError, match=r"no tenants\.json"):
            archived_tenants(folder)
        manifest.write_bytes(text)
        await _run(*again)
        assert len(archived_tenants(folder)) == len(names)
        manifest.write_bytes(text.replace(b'"acme"', b'"evil"'))
        with pytest.raises(CodecError, match="another tenant"):
            archived_tenants(folder)


async def test_what_does_not_fit_all_tenants_is_refused(tmp_path: Path) -> None:
    for args in (
        ("export", str(tmp_path), "--all-tenants", "--tenant", "x"),
        ("import", str(tmp_path), "--all-tenants", "--tenant", "x"),
        ("import", str(tmp_path), "--all-tenants", "--rename"),
        ("copy", "--from", "a", "--to", "b", "--all-tenants", "--tenant", "x"),
    ):
        found = await asyncio.to_thread(CliRunner().invoke, app, args)
        assert found.exit_code == 2, args
        assert "--all-tenants" in found.output


def _inside(folder: Path) -> set[Path]:
    return set(folder.iterdir())


async def _run(*args: str) -> str:
    # The command has an event loop of its own.
    found = await asyncio.to_thread(CliRunner().invoke, app, args)
    assert found.exit_code == 0, found.output
    return found.stdout
