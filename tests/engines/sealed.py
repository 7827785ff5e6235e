"""Harnesses of sealed mode: the contracts that it seals, on two engines, with real keys."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.contracts.wakes import Wakes
from holdfast.engines.inmemory.data_keys import InMemoryDataKeys
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.engines.postgres.data_keys import PostgresDataKeys
from holdfast.sealing.channels import SealedChannels
from holdfast.sealing.data_keys import DataKeys
from holdfast.sealing.log import SealedEpisodes, SealedTranscripts, Stored
from holdfast.sealing.seal import Seal
from holdfast.sealing.wake import SealedWake
from holdfast.spi.data_keys import DataKeyStorage
from holdfast.testing.inmemory import InMemoryHarness
from holdfast.wiring.sealing import LAYERS, Layer
from tests.engines.postgres import PostgresHarness

RING = KeyRing({"k1": bytes(range(32))}, name="tests")
SEALED = frozenset({*LAYERS, "channels", "episodes", "history", "memory"} - {"wakes"})


WITHOUT = frozenset(
    {
        # Digests have no order, and no whole lists: tests/sealing/test_blind.py has the rest.
        "test_where_keeps_only_the_events_whose_payload_passes_the_filter",
        "test_where_sees_the_scalars_at_the_top_level_of_a_payload_and_nothing_else",
        "test_sessions_are_filtered_by_their_metadata",
        "test_a_filter_of_a_search_looks_at_the_values",
        "test_where_narrows_recent_between_and_recall_to_payloads_that_pass",
        "test_several_conditions_in_a_filter_must_all_hold",
        "test_equals_in_a_filter_asks_for_the_whole_value",
        "test_a_negation_in_a_filter_holds_exactly_where_its_opposite_does_not",
        "test_a_filter_distinguishes_true_from_1_and_not_1_from_a_float",
        "test_a_filter_distinguishes_a_missing_key_from_a_null",
        "test_a_filter_orders_text_by_code_points",
        "test_a_filter_orders_numbers_with_numbers_and_text_with_text_only",
        "test_a_filter_on_a_list_asks_whether_an_element_fits",
        "test_a_dot_or_a_dollar_in_a_filters_key_is_escaped_by_a_backslash",
        # An embedder would read digests.
        "test_recall_with_an_embedder_finds_by_meaning_what_shares_no_word",
        "test_recall_of_all_agents_with_an_embedder_finds_by_meaning_what_shares_no_word",
        "test_an_embedder_that_reads_context_reads_nothing_that_was_cleared",
        "test_a_vector_search_returns_the_nearest_by_meaning_first",
        "test_a_text_that_the_embedder_cannot_take_never_blocks_its_neighbours",
        "test_a_memory_is_embedded_once",
        "test_a_hybrid_search_fuses_words_and_meaning",
        "test_a_change_of_embedder_embeds_again",
        # The text of a sealed message is not searched.
        "test_list_filters_by_a_part_of_the_first_message_in_any_case_of_ascii_letters",
        "test_counts_takes_the_filters_of_list",
        "test_pause_many_pauses_the_tasks_that_match_and_no_others",
        # Bytes are counted as they are stored: tests/sealing/test_sealed_tasks.py has the bounds.
        "test_max_bytes_gives_the_newest_messages_that_fit_beside_the_artifacts",
        "test_artifacts_that_do_not_fit_max_bytes_are_left_out_all_of_them",
        "test_a_task_of_which_something_was_left_out_says_so",
        "test_message_bytes_counts_what_all_messages_of_a_task_take",
        "test_a_page_ends_before_the_task_that_does_not_fit_max_bytes",
        "test_max_bytes_gives_the_newest_messages_of_a_context_that_fit_and_always_the_newest",
        # Words are stemmed when a fact is sealed; a state has one language.
        "test_the_language_decides_how_words_are_stemmed",
    }
)


def _sealed(contract: str, store: Any, keys: DataKeyStorage, tenant: str, stored: Stored) -> Any:
    history: Layer = partial(SealedTranscripts, stored=stored)
    own: dict[str, Layer] = {
        "channels": SealedChannels,
        "episodes": SealedEpisodes,
        "history": history,
    }
    layer = {**LAYERS, **own}[contract]
    seal = Seal(tenant, DataKeys(keys, RING, tenant=tenant), plain_vectors=True)
    store.add_layer(lambda inner: layer(inner, seal))
    return store


def _woken(wakes: Wakes, keys: DataKeyStorage, tenant: str) -> Wakes:
    seal = Seal(tenant, DataKeys(keys, RING, tenant=tenant))
    wakes.add_layer(lambda inner: SealedWake(inner, seal))
    return wakes


class SealedInMemoryHarness(InMemoryHarness):
    """The in-memory engine behind sealing; vectors of callers are stored plain."""

    name = "sealed-inmemory"
    contracts = SEALED
    without = WITHOUT
    refuses = "sealed"

    @classmethod
    def reference(cls) -> type[InMemoryHarness]:
        """The same engine, unsealed: sealing must change nothing."""
        return InMemoryHarness

    async def raw(self, contract: str) -> list[str | bytes]:
        """All but the data keys, which a read of a store may make."""
        return [one for one in await super().raw(contract) if "wrapped=" not in str(one)]

    def wakes(self, *, tenant: str = "default") -> Wakes:
        """How sessions are found."""
        found = super().wakes(tenant=tenant)
        return _woken(found, InMemoryDataKeys(self.engine, tenant=tenant), tenant)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store whose values are sealed."""
        store = super().store(contract, tenant=tenant, **options)
        keys = InMemoryDataKeys(self.engine, tenant=tenant)
        stored = super().store("episodes", tenant=tenant)._storage.get
        return _sealed(contract, store, keys, tenant, stored)


class SealedPostgresHarness(PostgresHarness):
    """Postgres 18 behind sealing."""

    name = "sealed-postgres18"
    database = "holdfast_sealed"
    contracts = SEALED
    without = WITHOUT
    refuses = "sealed"

    async def raw(self, contract: str) -> list[str | bytes]:
        """All but the data keys, which a read of a store may make."""
        found = await super().raw(contract)
        return [one for one in found if not str(one).startswith("data_keys ")]

    def wakes(self, *, tenant: str = "default") -> Wakes:
        """How sessions are found."""
        found = super().wakes(tenant=tenant)
        return _woken(found, PostgresDataKeys(self.engine, tenant=self._prefix + tenant), tenant)

    def store(self, contract: str, *, tenant: str = "default", **options: Any) -> Any:
        """A store whose values are sealed."""
        store = super().store(contract, tenant=tenant, **options)
        keys = PostgresDataKeys(self.engine, tenant=self._prefix + tenant)
        stored = super().store("episodes", tenant=tenant)._storage.get
        return _sealed(contract, store, keys, tenant, stored)
