"""Servers whose files are searched for words that were written through every contract."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from holdfast import AgentId, ChatMessage, Document, Entity, Event, Settings, State
from holdfast.bench.seaweedfs import SeaweedFS
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.content import TextBlock
from holdfast.items import ItemPut
from holdfast.testing.postgres_server import PostgresServer
from holdfast.testing.valkey_server import ValkeyServer
from tests.engines.postgres_database import connected

WRITER = AgentId.parse("writer")
STORES = (
    *("history", "event", "state", "fact", "document", "entity", "item", "checkpoint", "task"),
    *("board", "blob", "channel", "schedule", "session metadata", "api key"),
)


class Servers:
    """Servers of their own, whose files nobody else writes."""

    def __init__(self, kept: ExitStack, *, hybrid: bool = False, s3: bool = False) -> None:
        self.postgres = PostgresServer(18, "-c", "max_wal_size=64MB", "-c", "min_wal_size=32MB")
        kept.callback(self.postgres.remove)
        self.postgres.start()
        self.blobs = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="hf-residue-")))
        self.s3: SeaweedFS | None = None
        if s3:
            self.s3 = SeaweedFS()
            kept.callback(self.s3.remove)
            self.s3.start()
        self.valkey: ValkeyServer | None = None
        if hybrid:
            self.valkey = ValkeyServer("--save", "3600 1")
            kept.callback(self.valkey.remove)
            self.valkey.start()

    @property
    def settings(self) -> Settings:
        """Of all of them."""
        return Settings(
            database_url=self.postgres.url(),
            redis_url=self.valkey.url if self.valkey else "",
            blob_url=self.s3.url("residue/here") if self.s3 else self.blobs.as_uri(),
        )

    def files(self) -> Iterator[Path]:
        """Every file that one of them keeps."""
        places = [self.postgres.data, self.blobs]
        if self.valkey is not None:
            places.append(self.valkey.folder)
        if self.s3 is not None:
            places.append(self.s3.folder / "data")
        for place in places:
            yield from (one for one in place.rglob("*") if one.is_file())

    async def found(self, canaries: dict[str, str]) -> dict[str, set[str]]:
        """Return which of them are in which files, once all that is in memory is written."""
        async with connected(self.postgres.url()) as connection:
            await connection.execute("CHECKPOINT")
        names: dict[str, set[str]] = {}
        for file in self.files():
            content = file.read_bytes()
            for store, canary in canaries.items():
                if canary.encode() in content:
                    names.setdefault(store, set()).add(str(file.parent.name))
        return names


def canary() -> str:
    """A word that no compression shortens and nobody else writes."""
    return base64.b32encode(os.urandom(20)).decode().lower()


async def fill_content(state: State, words: dict[str, str]) -> None:
    """Write a word of its own through every contract that has content."""
    await state.history.append(WRITER, ChatMessage.user(words["history"]), session_id="s1")
    await state.episodes.append([Event(WRITER, "s1", "note", {"of": words["event"]})])
    await state.episodes.start_session(WRITER, "s2", metadata={"m": words["session metadata"]})
    await state.episodes.recall(WRITER, words["event"])
    await state.short_term.set_state("s1", {"who": words["state"]})
    await state.long_term.save(WRITER, f"{words['fact']} likes tea")
    document = Document([TextBlock(words["document"])], id="d1", embedding=[1.0, 0.5])
    await state.vectors.add([document])
    await state.graph.add_entities([Entity("person", {"name": words["entity"]}, id="e1")])
    await state.items.put_many([ItemPut(("notes",), "k1", {"by": words["item"]})])
    empty = TypedBytes("json", b"{}")
    checkpoint = Checkpoint("t1", "", "1", None, empty, empty, versions={"x": "1"})
    value = TypedBytes("text", words["checkpoint"].encode())
    await state.checkpoints.put(checkpoint, new_values={"x": value})
    await state.tasks.submit(WRITER, ChatMessage.user(words["task"]))
    await state.boards.create_task_list("c1", [words["board"]], agent_id="writer")
    await state.blobs.store(words["blob"].encode() * 10)
    await state.channel("news").publish({"by": words["channel"]})
    await state.schedules.create("daily", "0 9 * * *", agent=WRITER, message=words["schedule"])
