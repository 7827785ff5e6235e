"""Checks of what callers write on to-do boards."""

from __future__ import annotations

from holdfast.values.boards import Task, TaskList, TaskStatus
from holdfast.values.checks import (
    check_count,
    check_id,
    check_list,
    check_optional_id,
    check_text,
)
from holdfast.values.errors import InvalidInputError
from holdfast.values.ids import new_id


def new_board(
    conversation_id: str,
    task_titles: list[str],
    *,
    agent_id: str,
    agent_label: str,
    parent_agent_id: str | None,
    max_retries: int,
) -> TaskList:
    """Check the input of ``create_task_list``, and return the board with its cards.

    >>> facts = {"agent_label": "", "parent_agent_id": None, "max_retries": 3}
    >>> [card.order for card in new_board("c1", ["read", "write"], agent_id="a", **facts).tasks]
    [0, 1]
    """
    if parent_agent_id is not None:
        check_optional_id("parent_agent_id", parent_agent_id)
    return TaskList(
        id=new_id(),
        conversation_id=check_id("conversation_id", conversation_id),
        max_retries=check_count("max_retries", max_retries),
        agent_id=check_optional_id("agent_id", agent_id),
        agent_label=check_text("agent_label", agent_label),
        parent_agent_id=parent_agent_id,
        tasks=new_cards(check_titles("task_titles", task_titles)),
    )


def new_cards(titles: list[str], *, first: int = 0) -> list[Task]:
    """Return planned cards with these titles, in their order.

    >>> [(card.title, card.order) for card in new_cards(["read"], first=7)]
    [('read', 7)]
    """
    return [Task(new_id(), title, order=order) for order, title in enumerate(titles, first)]


def check_titles(field: str, titles: object) -> list[str]:
    """Check the titles of new cards, strip them and drop blank ones.

    >>> check_titles("titles", [" read ", ""])
    ['read']
    """
    listed = check_list(field, titles)
    texts = [check_text(f"{field}[{at}]", title).strip() for at, title in enumerate(listed)]
    return [text for text in texts if text]


def check_title(title: object) -> str:
    """Check the new title of a card, and strip it. It must not be blank.

    >>> check_title(" read ")
    'read'
    """
    text = check_text("title", title).strip()
    if not text:
        raise InvalidInputError("title", "must not be blank: delete the card instead")
    return text


def check_status(status: object) -> TaskStatus:
    """Check a status, given as the enum or its string.

    >>> check_status("blocked")
    <TaskStatus.BLOCKED: 'blocked'>
    """
    text = check_text("status", status)
    try:
        return TaskStatus(text)
    except ValueError:
        known = ", ".join(TaskStatus)
        raise InvalidInputError("status", f"must be one of {known}, not {text[:60]!r}") from None
