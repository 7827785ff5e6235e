"""Adopted tasks, which another system runs: store them, record their reports, delete them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from holdfast.contracts.tasks.progress import check_chunk
from holdfast.contracts.tasks.scope import LedgerCalls, task_key
from holdfast.spi.tasks.adopted import Adoption, StoredReport, StoredStatus
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.checks import (
    check_absent_id,
    check_count,
    check_id,
    check_list,
    check_text,
    check_time,
    check_unreserved,
)
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TaskState, check_state
from holdfast.values.owners import Owner
from holdfast.values.tasks.events import ArtifactChunk
from holdfast.values.tasks.records import TaskRecord
from holdfast.values.tasks.reports import Report, StatusReport
from holdfast.values.tasks.trace import encode_untraced

_FIRST = datetime(1, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 1, 1, tzinfo=UTC)


@runtime_checkable
class AdoptedLedger(Protocol):
    """Tasks that another system runs, in the same ledger as the tasks of Holdfast's workers.

    The other system chooses the task's id and reports what happens. A report is stored only if the
    task still has the version that the report was derived from. Reads, timelines, pages, contexts,
    feedback and push configs work as for any task.

    Promises:

    - an adopted task comes back as it was reported
    - an adopted task is never claimed
    - an adopted task is never recovered
    - an adopted task at work holds up no other task of its context
    - no lease on an adopted task is good
    - the id of an adopted task is taken once
    - of 10 concurrent adoptions of one id one is taken
    - the timeline of an adopted task has every report in order
    - replay of an adopted task is the task as it is
    - an adopted task goes to any state until it has ended
    - an adopted task that has ended takes no report
    - a report at another version is a conflict and nothing is written
    - of 10 concurrent reports at one version one is taken
    - a cancel needs no version unless the task has ended
    - a report without a version that is no cancel is refused
    - reports are taken all or none
    - a reported message is stored once
    - chunks of an adopted task follow each other after the last one too
    - a status report replaces the metadata if it has any
    - pages sort an adopted task by the time that was reported
    - a follower sees the reports of an adopted task
    - a report on a task of workers is refused
    - an adopted task is neither answered nor paused nor resumed nor retried
    - another owner's adopted task is not found
    - one tenant never sees another's adopted tasks
    - an adopted id or owner that begins with holdfast. is refused
    - delete removes a task with all it holds
    - delete of an unknown task is false
    - another owner's task is not deleted
    - after delete nothing brings a task back
    - a deleted task leaves the others of its context
    - after delete the marks of a task are due
    - an adopted task is still there after a reopen
    """

    @abstractmethod
    async def adopt(
        self,
        task_id: str,
        *,
        agent: Agent,
        owner: str | None = None,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        reports: Sequence[Report] = (),
    ) -> TaskRecord:
        """Store a task that another system runs, as ``submitted``, and then its reports.

        Raises ``AlreadyExistsError`` if the tenant has a task of this id. If the reply is lost,
        call ``get`` to see whether the task was stored.

        ::

            task = await ledger.adopt("t1", agent="writer", owner="ana", session_id="c1")
        """
        ...

    @abstractmethod
    async def record(
        self,
        task_id: str,
        reports: Sequence[Report],
        *,
        owner: Owner = None,
        expected_version: int | None = None,
    ) -> int:
        """Store reports of an adopted task, all or none. Returns the task's new version.

        Raises ``VersionConflictError`` if the task does not have ``expected_version``, so a retry
        after a lost reply stores nothing twice. Only a single report of ``canceled`` needs no
        version. Raises ``IllegalTransitionError`` if the task has ended.

        ::

            done = StatusReport("completed", ChatMessage.assistant("High water at 6:12"))
            version = await ledger.record("t1", [done], expected_version=task.version)
        """
        ...

    @abstractmethod
    async def delete(self, task_id: str, *, owner: Owner = None) -> bool:
        """Delete a task with its timeline, artifacts, feedback and push configs.

        Returns whether there was one. Any task can be deleted, also a running one: its worker loses
        the lease. ``follow`` ends. A context is deleted with its last task.

        ::

            await ledger.delete("t1", owner="ana")
        """
        ...


class AdoptedCalls(LedgerCalls, AdoptedLedger):
    """Implements ``AdoptedLedger``: checks the arguments, then calls the engine's storage."""

    @renamed(context_id="session_id")
    async def adopt(
        self,
        task_id: str,
        *,
        agent: Agent,
        owner: str | None = None,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        reports: Sequence[Report] = (),
    ) -> TaskRecord:
        """Store a task that another system runs, as ``submitted``, and then its reports."""
        adoption = Adoption(
            check_unreserved("task_id", check_id("task_id", task_id)),
            AgentId.parse(agent),
            check_unreserved("owner", check_absent_id("owner", owner)),
            check_unreserved("session_id", check_absent_id("session_id", session_id)) or new_id(),
            encode_untraced(metadata),
            _check_reports(reports),
        )
        return (await self._storage.adopt(adoption)).load()

    async def record(
        self,
        task_id: str,
        reports: Sequence[Report],
        *,
        owner: Owner = None,
        expected_version: int | None = None,
    ) -> int:
        """Store reports of an adopted task, all or none. Returns the task's new version."""
        key, checked = task_key(task_id, owner), _check_reports(reports)
        if expected_version is not None:
            check_count("expected_version", expected_version)
        elif not _is_cancel(checked):
            raise InvalidInputError(
                "expected_version", "is required, except for a single report of canceled"
            )
        return await self._storage.record(key, checked, expected_version)

    async def delete(self, task_id: str, *, owner: Owner = None) -> bool:
        """Delete a task with its timeline, artifacts, feedback and push configs."""
        return await self._storage.delete_task(task_key(task_id, owner))


def _is_cancel(reports: Sequence[StoredReport]) -> bool:
    if len(reports) != 1 or not isinstance(reports[0], StoredStatus):
        return False
    return reports[0].state is TaskState.CANCELED


def _check_reports(reports: object) -> list[StoredReport]:
    given = check_list("reports", reports)
    return [_check_report(f"reports[{at}]", one) for at, one in enumerate(given)]


def _check_at(field: str, at: object) -> datetime:
    """Check a time. Drivers read the very first and last one as infinite."""
    moment = check_time(field, at)
    if not _FIRST <= moment <= _LAST:
        raise InvalidInputError(field, "must be after 0001-01-01 and before 9999-01-01")
    return moment


def _check_report(field: str, report: object) -> StoredReport:
    match report:
        case StatusReport():
            said = report.message
            return StoredStatus(
                check_state(f"{field}.state", report.state),
                None if said is None else StoredMessage.of(said, field=f"{field}.message"),
                check_text(f"{field}.note", report.note),
                None if report.at is None else _check_at(f"{field}.at", report.at),
                None
                if report.metadata is None
                else encode_untraced(report.metadata, field=f"{field}.metadata"),
            )
        case ChatMessage():
            return StoredMessage.of(report, field=field)
        case ArtifactChunk():
            if report.step is not None:
                raise InvalidInputError(
                    f"{field}.step", "must be left out: only tasks that workers run have steps"
                )
            return check_chunk(
                f"{field}.",
                report.artifact_id,
                report.parts,
                name=report.name,
                metadata=report.metadata,
                append=report.append,
                last_chunk=report.last_chunk,
            )
    raise InvalidInputError(
        field,
        f"must be a StatusReport, a ChatMessage or an ArtifactChunk, not {type(report).__name__}",
    )
