"""One database for the tests of commands, each test in a tenant of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

import holdfast
from holdfast import Settings
from holdfast.cli import contexts, tasks
from holdfast.values.ids import new_ref
from tests.cli.command import Command
from tests.engines.postgres_database import empty_database


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """A database with the schema."""

    async def make() -> tuple[AsyncExitStack, str]:
        stack = AsyncExitStack()
        url = await stack.enter_async_context(empty_database())
        async with holdfast.open(url, settings=Settings(auto_migrate=True)):
            return stack, url

    with asyncio.Runner() as runner:
        stack, url = runner.run(make())
        yield url
        runner.run(stack.aclose())


@pytest.fixture
def tenant(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tenant of its own, in an environment that names the database."""
    name = new_ref()
    for other in ("STORAGE_TYPE", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("HOLDFAST_TENANT", name)
    for group in (tasks, contexts):
        # Made when they were imported, as wide as the terminal was then.
        monkeypatch.setattr(group._out, "_width", 200)
    return name


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, run in this process."""
    return Command(monkeypatch, capsys)
