"""Adds encryption between the contracts and the engines of an opened state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.contracts.channel import Channel
from holdfast.contracts.front import Layered
from holdfast.engines.key_providers.key_ring import ring_of_file, ring_of_text
from holdfast.sealing.blobs import SealedBlobs
from holdfast.sealing.boards import SealedBoards
from holdfast.sealing.channels import SealedChannels
from holdfast.sealing.checkpoints import SealedCheckpoints
from holdfast.sealing.cipher import check_cipher
from holdfast.sealing.documents import SealedDocuments
from holdfast.sealing.facts import SealedFacts
from holdfast.sealing.graph import SealedGraph
from holdfast.sealing.items import SealedItems
from holdfast.sealing.log import SealedEpisodes, SealedTranscripts, Stored
from holdfast.sealing.schedules import SealedSchedules
from holdfast.sealing.seal import Seal
from holdfast.sealing.states import SealedStates
from holdfast.sealing.tasks.ledger import SealedLedger
from holdfast.sealing.wake import SealedWake
from holdfast.spi.episodes import EpisodeStorage
from holdfast.spi.key_provider import KeyProvider
from holdfast.values.errors import ConfigError, InvalidInputError, NotSupportedError
from holdfast.wiring.settings import Settings
from holdfast.wiring.stores import Stores

Layer = Callable[[Any, Seal], Any]

LAYERS: Mapping[str, Layer] = {
    "wakes": SealedWake,
    "blobs": SealedBlobs,
    "short_term": SealedStates,
    "boards": SealedBoards,
    "checkpoints": SealedCheckpoints,
    "graph": SealedGraph,
    "items": SealedItems,
    "long_term": SealedFacts,
    "vectors": SealedDocuments,
    "tasks": SealedLedger,
    "schedules": SealedSchedules,
}
"""The class that encrypts the values of a contract; ``seal_stores`` handles some others itself."""

SEALED = frozenset({*LAYERS, "episodes", "history", "channel"})

OPEN = frozenset({"keys"})
"""Attributes that need no encryption: API keys are stored as digests."""


def provider_named(settings: Settings) -> KeyProvider | None:
    """Return the key provider that the settings name; ``None`` if nothing is encrypted.

    >>> provider_named(Settings(seal="env:", keys="k1:" + "11" * 32)).current
    'k1'
    """
    scheme, colon, rest = settings.seal.partition(":")
    if not settings.seal:
        return None
    if scheme == "env" and colon and not rest:
        if not settings.keys:
            raise ConfigError(
                "HOLDFAST_SEAL is env:, but HOLDFAST_KEYS is not set: "
                "set it to ID:KEY, with a key from openssl rand -hex 32"
            )
        return ring_of_text(settings.keys, name="HOLDFAST_KEYS")
    if scheme == "file" and rest:
        return ring_of_file(rest.removeprefix("//"))
    raise ConfigError(
        "HOLDFAST_SEAL must be env: (with HOLDFAST_KEYS) or file:/path/of/keys; "
        "for a key management service pass a KeyProvider to holdfast.open(seal=…)"
    )


def check_provider(seal: object) -> None:
    """Raise if this object is not a key provider, before anything is opened.

    >>> check_provider(None)
    """
    if seal is not None and (isinstance(seal, type) or not isinstance(seal, KeyProvider)):
        raise InvalidInputError(
            "seal",
            "must be env:, file:/path/of/keys, or an object with name, current, wrap and unwrap, "
            f"not {seal if isinstance(seal, type) else type(seal).__name__}",
        )


def check_sealable(settings: Settings, *, has_keys: bool, embeds: bool) -> None:
    """Raise if a state with these settings and parts cannot be encrypted.

    ::

        check_sealable(settings, has_keys=True, embeds=False)
    """
    check_cipher()
    if not has_keys:
        raise ConfigError(
            "sealed mode needs memory:, a folder or postgresql://, where data keys are stored: "
            "open one of them, with redis= beside it"
        )
    if embeds:
        raise ConfigError(
            "sealed mode has no embedder: it would read digests instead of words; "
            "unset HOLDFAST_EMBEDDER, or HOLDFAST_SEAL"
        )
    if settings.seal_vectors not in ("", "plain"):
        raise ConfigError(
            f"HOLDFAST_SEAL_VECTORS must be plain or not set, not {settings.seal_vectors!r}"
        )


def is_refused(attribute: str) -> bool:
    """Return whether sealed mode refuses this attribute of ``State``: it cannot encrypt it.

    >>> is_refused("scratchpad"), is_refused("history")
    (True, False)
    """
    return attribute not in SEALED | OPEN | {"memory"}


def refused(attribute: str) -> NotSupportedError:
    """Return the error for an attribute that sealed mode refuses.

    >>> refused("scratchpad").capability
    'scratchpad'
    """
    sealed = ", ".join(sorted(SEALED - {"wakes"}))
    return NotSupportedError(
        "sealed",
        attribute,
        why=f"its content would be stored unsealed. Sealed are: {sealed}; for the others open a "
        "second state without seal=, with another tenant",
    )


def seal_stores(stores: Stores, seal: Seal) -> Stores:
    """Return the stores with their values encrypted and decrypted by ``seal``.

    ::

        stores = seal_stores(stores, Seal("acme"))
    """
    stored: list[Stored] = []

    def seal_log(inner: EpisodeStorage) -> SealedEpisodes:
        stored.append(inner.get)
        return SealedEpisodes(inner, seal)

    if stores.episodes is not None:
        stores.episodes.add_layer(seal_log)
    for attribute, layer in LAYERS.items():
        store = getattr(stores, attribute)
        if store is not None:
            _add(store, layer, seal)
    if stores.history is not None:
        stores.history.add_layer(lambda inner: SealedTranscripts(inner, seal, *stored))
    make = stores.channel
    if make is None:
        return stores

    def channel(name: str) -> Channel:
        found = make(name)
        _add(found, SealedChannels, seal)
        return found

    return dataclasses.replace(stores, channel=channel)


def _add(store: Layered, layer: Layer, seal: Seal) -> None:
    store.add_layer(lambda inner: layer(inner, seal))
