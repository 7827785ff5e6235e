"""Sealing with one step broken, and the tests that must fail then.

This is a plugin of pytest, which breaks what ``SEAL_MUTANT`` names before any test runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.engines.inmemory.erasure import InMemoryErasures
from holdfast.erasure.eraser import Eraser
from holdfast.sealing import blind, blobs, cipher, data_keys, seal, session_subjects
from holdfast.sealing.tasks import calls, opener, sealer
from holdfast.values.owners import split_owned

_STATE = "tests/sealing/test_sealed_state.py::"
_TASKS = "tests/sealing/test_sealed_tasks.py::"
_TASK_KEYS = "tests/sealing/test_sealed_task_keys.py::"
_BLOBS = "tests/sealing/test_sealed_blobs.py::"
_KEYS = "tests/sealing/test_data_keys.py::"
_SUBJECTS = "tests/sealing/test_sealed_subjects.py::"
_MEMORY = "[inmemory]"


@dataclass(frozen=True)
class SealMutant:
    """What breaks a step, and the tests that notice."""

    apply: Callable[[], None]
    breaks: tuple[str, ...]


SEAL_MUTANTS: dict[str, SealMutant] = {}


def seal_mutant(*breaks: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register what breaks a step."""

    def register(apply: Callable[[], None]) -> Callable[[], None]:
        assert apply.__doc__, f"{apply.__name__} does not say what is broken"
        SEAL_MUTANTS[apply.__name__] = SealMutant(apply, breaks)
        return apply

    return register


def pytest_configure() -> None:
    """Break one step, in a process that runs the tests of sealing."""
    name = os.environ.get("SEAL_MUTANT")
    if name:
        SEAL_MUTANTS[name].apply()


def _put(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


@seal_mutant(
    f"{_KEYS}test_a_sealed_value_opens_at_its_place_only",
    f"{_TASK_KEYS}test_rows_of_tasks_that_were_moved_by_hand_do_not_open",
)
def associated_data_is_ignored() -> None:
    """A sealed value opens at any place."""
    encrypt, decrypt = cipher.seal, cipher.Box.open

    def sealed(key: Any, data: bytes, _: bytes, *, again: bool) -> bytes:
        return encrypt(key, data, b"", again=again)

    _put(seal, "seal", sealed)
    _put(cipher.Box, "open", lambda self, key, _: decrypt(self, key, b""))


@seal_mutant(
    f"{_STATE}test_owners_and_tenants_have_keys_of_their_own{_MEMORY}",
    f"{_BLOBS}test_a_blob_has_the_key_of_its_owner{_MEMORY}",
    f"{_TASK_KEYS}test_everything_of_a_task_has_the_key_of_its_owner{_MEMORY}",
)
def owners_share_a_key() -> None:
    """Everything but the index is sealed with the key of nobody."""
    found = data_keys.DataKeys.of_subject

    async def of_subject(self: data_keys.DataKeys, subject: str) -> data_keys.OpenKey:
        return await found(self, subject if subject == data_keys.INDEX else "")

    _put(data_keys.DataKeys, "of_subject", of_subject)


_ROTATES = f"{_KEYS}test_new_keys_encrypt_what_is_new_and_what_is_old_stays_readable{_MEMORY}"


@seal_mutant(_ROTATES)
def a_rotation_replaces_the_key_of_digests() -> None:
    """The key of the index is replaced too, so that no old word is found."""
    _put(data_keys, "INDEX", "another name")


@seal_mutant(_ROTATES)
def what_is_compared_has_the_current_key() -> None:
    """A retry from before a rotation, and an old topic, are not found again."""
    _put(seal.Sealer, "bytes", lambda self, place, data, *, again=False: cipher.seal(
        self.key, data, cipher.bound_to(self.tenant, place, *self.owner), again=again))  # fmt: skip


@seal_mutant(
    f"{_SUBJECTS}test_a_session_about_a_person_does_not_open_without_the_key_of_that_person{_MEMORY}"
)
def sessions_have_the_key_of_their_owner() -> None:
    """Whom a session is about is not looked at."""

    async def of(_: Any, session: str) -> str:
        return split_owned(session)[0]

    _put(session_subjects.SessionSubjects, "of", of)


@seal_mutant(f"{_SUBJECTS}test_a_sealed_event_about_a_person_opens_only_for_its_owner{_MEMORY}")
def what_is_about_others_is_bound_to_no_owner() -> None:
    """A value about a person opens in the record of any owner."""
    _put(seal, "bound_to", lambda tenant, place, *_: cipher.bound_to(tenant, place))


@seal_mutant(
    f"{_KEYS}test_a_row_that_was_moved_by_hand_does_not_open",
    f"{_TASK_KEYS}test_rows_of_tasks_that_were_moved_by_hand_do_not_open",
)
def keys_of_other_owners_open() -> None:
    """The key of a value may be that of any owner."""

    def opened(self: Any, _: str, place: Any, box: Any) -> bytes:
        plain: bytes = box.open(self._keys[box.number], cipher.bound_to(self.tenant, place))
        return plain

    _put(seal.Opener, "bytes", opened)


@seal_mutant(
    f"{_STATE}test_nothing_of_the_content_is_in_any_table{_MEMORY}",
    f"{_TASKS}test_nothing_of_a_task_or_a_schedule_is_in_any_table{_MEMORY}",
    f"{_BLOBS}test_neither_bytes_nor_type_nor_digest_are_stored{_MEMORY}",
)
def content_is_stored_plain() -> None:
    """Nothing is sealed, though there are keys."""

    async def nothing(*_: Any) -> None:
        return None

    _put(seal.Seal, "sealer", nothing)


@seal_mutant(f"{_TASKS}test_nothing_of_a_task_or_a_schedule_is_in_any_table{_MEMORY}")
def notes_are_stored_plain() -> None:
    """A note of a task is stored as it is."""
    _put(sealer.TaskSealer, "note", lambda _, note: note)


@seal_mutant(f"{_TASKS}test_nothing_of_a_task_or_a_schedule_is_in_any_table{_MEMORY}")
def names_of_artifacts_are_stored_plain() -> None:
    """The name of an artifact is stored as it is."""
    sealed = sealer.TaskSealer.chunk

    def chunk(self: Any, one: Any) -> Any:
        found = sealed(self, one)
        return type(one)(
            **{name: getattr(found, name) for name in one.__slots__} | {"name": one.name}
        )

    _put(sealer.TaskSealer, "chunk", chunk)


@seal_mutant(f"{_TASKS}test_digests_of_appended_content_are_no_names_of_steps{_MEMORY}")
def names_of_appends_are_stored_plain() -> None:
    """The digest of an appended message, which has no key, is the name of a step."""
    _put(sealer, "HISTORY", "")


@seal_mutant(f"{_TASK_KEYS}test_everything_of_a_task_has_the_key_of_its_owner{_MEMORY}")
def a_task_that_was_not_seen_is_nobodys() -> None:
    """A worker that does not know the owner of a task seals with the key of nobody."""

    async def owner(_: Any, __: str, owner: str | None = None) -> str:
        return owner or ""

    _put(calls.SealedCalls, "_owner", owner)


@seal_mutant(f"{_KEYS}test_an_erasure_destroys_the_keys_first_and_its_receipt_names_them{_MEMORY}")
def data_keys_are_not_destroyed() -> None:
    """An erasure deletes rows only."""

    async def shred(*_: Any) -> tuple[int, ...]:
        return ()

    _put(InMemoryErasures, "shred", shred)


@seal_mutant(f"{_KEYS}test_an_erasure_destroys_the_keys_first_and_its_receipt_names_them{_MEMORY}")
def data_keys_are_destroyed_last() -> None:
    """An erasure deletes rows, and then destroys the keys."""
    erased = Eraser._erase_scope

    async def late(self: Any, scope: Any, progress: Any) -> None:
        await erased(self, scope, progress)
        self._storage.late = True

    shred = InMemoryErasures.shred

    async def shredded(self: Any, erasure_id: str, scope: Any) -> Any:
        return await shred(self, erasure_id, scope) if getattr(self, "late", False) else ()

    _put(Eraser, "_erase_scope", late)
    _put(InMemoryErasures, "shred", shredded)


@seal_mutant(f"{_BLOBS}test_a_blob_has_the_key_of_its_owner{_MEMORY}")
def a_process_keeps_destroyed_keys() -> None:
    """A destroyed key stays in the memory of the process that destroyed it."""
    _put(data_keys.DataKeys, "forget", lambda *_: None)


@seal_mutant(f"{_KEYS}test_a_key_is_kept_for_a_minute_and_no_longer")
def keys_are_kept_forever() -> None:
    """A process never asks again whether a key still exists."""

    def kept(self: Any, number: int) -> Any:
        found = self._kept.get(number)
        return found and found[1]

    _put(data_keys.DataKeys, "_get", kept)


@seal_mutant(
    "tests/sealing/test_blind.py::test_another_key_gives_other_digests_and_kinds_do_not_meet"
)
def digests_have_no_key() -> None:
    """Whoever reads the tables can guess words."""
    made = blind.Blind.digest
    _put(blind.Blind, "digest", lambda _, *parts: made(blind.Blind(bytes(32)), *parts))


@seal_mutant(f"{_TASKS}test_retries_of_sealed_writes_have_no_further_effect{_MEMORY}")
def a_retry_has_other_bytes() -> None:
    """Every nonce is random, so that no retry equals what is stored."""
    sealed = cipher.seal
    _put(seal, "seal", lambda *what, **_: sealed(*what, again=False))


@seal_mutant(f"{_TASKS}test_what_was_begun_unsealed_goes_on_sealed{_MEMORY}")
def plain_digests_are_not_tried() -> None:
    """A retry of what was stored before the tenant was sealed is a conflict."""

    async def compared(_: Any, call: Any) -> Any:
        return await call(as_before=False)

    _put(calls.SealedCalls, "_compared", compared)


@seal_mutant(f"{_TASKS}test_nobody_can_store_what_looks_sealed{_MEMORY}")
def forged_messages_are_stored() -> None:
    """A message may have the form of a sealed one."""
    for module in (sealer, calls, opener):
        if hasattr(module, "check_parts"):
            _put(module, "check_parts", lambda _, text: text)


@seal_mutant(f"{_BLOBS}test_bytes_that_were_changed_moved_or_cut_off_are_refused")
def parts_of_blobs_have_no_number() -> None:
    """Parts of a blob can be exchanged."""
    _put(blobs, "_nonce", lambda _: bytes(12))
