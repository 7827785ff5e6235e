from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.contracts.checkpoints import Checkpoints
from holdfast.engines.inmemory.checkpoints import InMemoryCheckpoints
from holdfast.spi.checkpoints import CheckpointPut, CheckpointQuery
from holdfast.values.checkpoints import Checkpoint, Write
from tests.mutants.registry import mutant


@mutant("checkpoints", "test_a_put_with_another_expected_parent_is_a_conflict_and_writes_nothing")
class ForksAreTaken(InMemoryCheckpoints):
    """The expected parent is not compared with the newest checkpoint."""

    async def put(self, put: CheckpointPut) -> None:
        await super().put(replace(put, expected=None))


@mutant("checkpoints", "test_a_put_that_is_retried_with_its_expected_parent_is_done")
class RetriesAreForks(InMemoryCheckpoints):
    """A put whose answer was lost cannot be repeated."""

    async def put(self, put: CheckpointPut) -> None:
        one = put.checkpoint
        there = await self.get(one.thread, one.namespace, one.id)
        expected = "\x00" if there and put.expected is not None else put.expected
        await super().put(replace(put, expected=expected))


@mutant("checkpoints", "test_without_an_id_get_returns_the_checkpoint_with_the_greatest_id")
class TheLastPutIsTheNewest(InMemoryCheckpoints):
    """The newest is the one that was put last."""

    async def get(self, thread: str, namespace: str, id: str | None) -> Checkpoint | None:
        space = self._namespace(thread, namespace)
        last = next(reversed(space.rows), None) if space and id is None else id
        return await super().get(thread, namespace, last)


@mutant("checkpoints", "test_a_write_at_an_index_of_zero_or_more_is_stored_once")
class EveryWriteReplaces(InMemoryCheckpoints):
    """A write of a task that ran again replaces the one that was read already."""

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        await super().put_writes(thread, namespace, id, writes)
        space = self._namespace(thread, namespace)
        assert space is not None
        space.writes[id] |= {(one.task, one.index): one for one in writes}


@mutant("checkpoints", "test_a_write_at_an_index_below_zero_replaces_the_earlier_one")
class NoWriteReplaces(InMemoryCheckpoints):
    """An answer to an interrupt stays as it was first."""

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        space = self._namespace(thread, namespace)
        stored = space.writes.get(id, {}) if space else {}
        new = [one for one in writes if (one.task, one.index) not in stored]
        await super().put_writes(thread, namespace, id, new)


@mutant("checkpoints", "test_prune_keeps_the_ancestors_that_a_channel_without_a_value_needs")
class PruneLooksAtNoWrites(InMemoryCheckpoints):
    """A channel whose state is in the writes of ancestors loses it."""

    async def prune(self, threads: Sequence[str], keep: int) -> int:
        return sum(
            space.drop(space.ids[:-keep]) for thread in threads for space in self._spaces(thread)
        )


@mutant(
    "checkpoints",
    "test_delete_runs_deletes_the_checkpoints_of_runs_and_keeps_values_that_others_name",
)
class RunsTakeTheirValuesAlong(InMemoryCheckpoints):
    """A value goes with the first checkpoint that named it."""

    async def delete_runs(self, runs: Sequence[str], begins: str, begins_not: str) -> int:
        for thread in self._data.threads.values():
            for space in thread.namespaces.values():
                for row in space.rows.values():
                    if row.run in runs:
                        for pair in row.checkpoint.versions.items():
                            space.values.pop(pair, None)
        return await super().delete_runs(runs, begins, begins_not)


@mutant("checkpoints", "test_list_reads_any_number_of_checkpoints")
class PagesGoByIdAlone(InMemoryCheckpoints):
    """Of the checkpoints with one id, the next page has none."""

    async def list(self, query: CheckpointQuery) -> Sequence[Checkpoint]:
        if query.after:
            query = replace(query, before=min(query.after[0], query.before or query.after[0]))
        return await super().list(query)


@mutant("checkpoints", "test_every_write_starts_the_window_again")
class WritesDoNotCount(InMemoryCheckpoints):
    """Only a checkpoint starts the window again."""

    async def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[Write]
    ) -> None:
        stored = self._present(thread)
        until = stored.expires_at if stored else None
        await super().put_writes(thread, namespace, id, writes)
        if until:
            self._data.threads[thread].expires_at = until


@mutant("checkpoints", "test_an_ancestor_has_only_the_channels_that_are_still_without_a_value")
class AncestorsHaveEverything(InMemoryCheckpoints):
    """Every ancestor comes with all values and writes."""

    async def ancestors(
        self, thread: str, namespace: str, id: str | None, channels: Sequence[str]
    ) -> Sequence[Checkpoint]:
        space = self._namespace(thread, namespace)
        found = await super().ancestors(thread, namespace, id, channels)
        return [space.view(thread, space.rows[one.id]) for one in found] if space else []


@mutant("checkpoints", "test_values_and_writes_on_a_checkpoint_that_is_put_are_refused")
class ValuesAreIgnored(Checkpoints):
    """What the checkpoint carries is dropped without a word."""

    async def put(self, checkpoint: Checkpoint, **how: object) -> None:
        bare = replace(checkpoint, values={}, writes=())
        await super().put(bare, **how)  # type: ignore[arg-type]
