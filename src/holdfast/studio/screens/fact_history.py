"""The history of a fact: the facts that it replaced, and those that replaced it."""

from __future__ import annotations

from holdfast.contracts.long_term_memory import FactStore
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId

PAGE = 200
READ = 2_000
"""Maximum number of facts of the namespace that are read to find those that were replaced."""


async def history(store: FactStore, agent: AgentId, fact: str, *, namespace: str) -> list[Memory]:
    """Return a fact, those that it replaced, and those that replaced it, the oldest first.

    Empty if the fact is not among the newest 2,000 of the namespace. ::

        await history(state.long_term, AgentId.parse("planner"), "m1", namespace="default")
    """
    known: dict[str, Memory] = {}
    after: str | None = None
    while len(known) < READ:
        page = await store.list(
            agent, namespace=namespace, limit=PAGE, after=after, superseded=True
        )
        known |= {one.id: one for one in page}
        if len(page) < PAGE:
            break
        after = page[-1].id
    return chain(known, fact)


def chain(known: dict[str, Memory], fact: str) -> list[Memory]:
    """Return the facts that are linked to one by ``superseded_by``, the oldest first.

    >>> old = Memory("90 s", 1, "a", {}, superseded_by="b")
    >>> [one.content for one in chain({"a": old, "b": Memory("60 s", 1, "b", {})}, "b")]
    ['90 s', '60 s']
    """
    if fact not in known:
        return []
    replaced: dict[str, list[str]] = {}
    for one in known.values():
        if one.superseded_by:
            replaced.setdefault(one.superseded_by, []).append(one.id)
    newest = fact
    seen = {newest}
    while (later := known[newest].superseded_by) and later in known and later not in seen:
        newest = later
        seen.add(newest)
    found, waiting = [newest], [newest]
    while waiting:
        earlier = [one for one in replaced.get(waiting.pop(), ()) if one not in found]
        found += earlier
        waiting += earlier
    return [known[one] for one in reversed(found)]
