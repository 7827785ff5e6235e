"""Conversations that tasks share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from holdfast.kernel.storage.ledger_records import ContextPage, ContextRecord


@runtime_checkable
class ContextLedger(Protocol):
    """The contexts of tasks: made on first use, with the messages of all their tasks in order.

    A context belongs to the owner of its first task, and its id is the owner's: what another
    owner calls ``c1`` is another context, so that nobody learns which ids others use. Where the
    owner is left out, it is ``""``.

    Promises:

    - a context is made on first use
    - a task without a context id gets a context of its own
    - a context has the messages of all its tasks in the order they were stored
    - 20 concurrent tasks of one context lose no message
    - the last messages of a context are given on request
    - max_bytes gives the newest messages of a context that fit, and always the newest
    - an unknown context is none
    - a follow-up with only a task id finds its context
    - contexts are listed newest first and without messages
    - pages of contexts follow each other without a gap or a repeat
    - a limit of zero is an empty page of contexts
    - a cursor that no listing of contexts gave is refused
    - the same context id of another owner is another context
    - the operator lists the contexts of all owners
    - one tenant never sees another's contexts
    - clear_context removes the context with its tasks and all they hold
    - clear_context leaves other contexts as they were
    - clear_context of an unknown context is zero
    - after clear_context no late write of a worker takes effect
    - after clear_context a submit key is free again
    - after clear_context nothing more is delivered
    - after clear_context the context id begins anew
    - a context is still there after a reopen
    - a context that a store returns is the caller's to mutate
    """

    @abstractmethod
    async def list_contexts(
        self, *, owner: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> ContextPage:
        """Contexts, the newest first (those of one moment by id, descending), without messages.

        ::

            page = await ledger.list_contexts(owner="ana")
        """
        ...

    @abstractmethod
    async def get_context(
        self,
        context_id: str,
        *,
        owner: str = "",
        history_length: int | None = None,
        max_bytes: int | None = None,
    ) -> ContextRecord | None:
        """A context with its last ``history_length`` messages (all, unless told), or ``None``.

        With ``max_bytes`` only the newest that fit as JSON text, but always the newest one; then
        the record is ``truncated``.

        ::

            context = await ledger.get_context(task.context_id)
        """
        ...

    @abstractmethod
    async def clear_context(self, context_id: str, *, owner: str = "") -> int:
        """Remove a context with its tasks, and return how many those were.

        Live ones go too: their workers' leases are lost, and whoever follows them is at the end.

        ::

            removed = await ledger.clear_context("c1", owner="ana")
        """
        ...
