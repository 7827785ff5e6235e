"""Facts of an agent: correct one, or forget some."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from holdfast.contracts.long_term_memory import FactStore
from holdfast.studio.desk import Desk, back
from holdfast.studio.notices import PARAMETER, notice
from holdfast.studio.screens.fact_history import history
from holdfast.studio.screens.screen import Screen
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.facts import Memory
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id

SHOWN = 50
DEFAULT = "default"
SUGGESTED = 20
"""How many agents are asked whether they have facts."""


async def facts(desk: Desk, request: Request) -> Response:
    """Show the facts of an agent in a namespace."""
    query = request.query_params
    agent = query.get("agent", "").strip()
    store = desk.memory_state(request).long_term
    namespace = query.get("namespace") or DEFAULT
    found: list[Memory] = []
    chain: list[Memory] = []
    names: list[str] = []
    if agent:
        names = await store.namespaces(agent)
        if query.get("q"):
            found = await store.search(agent, query["q"], namespace=namespace, limit=SHOWN)
        else:
            found = await store.list(
                agent,
                namespace=namespace,
                limit=SHOWN,
                after=query.get("after") or None,
                topic=query.get("topic") or None,
                superseded="superseded" in query,
            )
        if query.get("history"):
            key = AgentId.parse(agent)
            chain = await history(store, key, query["history"], namespace=namespace)
    agents = await desk.agents(request)
    params = query.multi_items()
    kept = [(name, value) for name, value in params if name not in {"after", PARAMETER}]
    more = not query.get("q") and len(found) == SHOWN
    return desk.page(
        request,
        "facts.html",
        query=query,
        agents=agents,
        suggested=[] if agent else await _suggested(store, agents[:SUGGESTED]),
        agent=agent,
        namespace=namespace,
        names=sorted({DEFAULT, *names}),
        facts=found,
        chain=chain,
        kept=urlencode([(name, value) for name, value in params if name != "history"]),
        next=urlencode([*kept, ("after", found[-1].id)]) if more else "",
        new_id=new_id,
    )


async def _suggested(store: FactStore, agents: list[AgentId]) -> list[tuple[AgentId, str]]:
    """Return agents to choose from, each with a namespace of its facts; the rest come last."""
    having, rest = [], []
    for one in agents:
        names = await store.namespaces(one, limit=SUGGESTED)
        if names:
            having.append((one, DEFAULT if DEFAULT in names else names[0]))
        else:
            rest.append((one, ""))
    return having + rest


async def correct(desk: Desk, request: Request) -> Response:
    """Save a new fact that supersedes the old one."""
    form = desk.form(request)
    text = form.get("content", "").strip()
    if not text:
        raise InvalidInputError("content", "is empty: write the fact as it is")
    await desk.memory_state(request).long_term.update(
        form.get("agent", ""),
        form.get("fact", ""),
        text,
        namespace=form.get("namespace") or DEFAULT,
        idempotency_key=form.get("key") or None,
    )
    return back(form, "/studio/facts")


async def add(desk: Desk, request: Request) -> Response:
    """Save a new fact."""
    form = desk.form(request)
    text = form.get("content", "").strip()
    if not text:
        raise InvalidInputError("content", "is empty: write the fact")
    await desk.memory_state(request).long_term.save(
        form.get("agent", ""),
        text,
        namespace=form.get("namespace") or DEFAULT,
        topic=form.get("topic", ""),
        source="Studio",
        idempotency_key=form.get("key") or None,
    )
    return back(form, "/studio/facts")


async def forget(desk: Desk, request: Request) -> Response:
    """Delete a fact."""
    form = desk.form(request)
    done = await desk.memory_state(request).long_term.delete(
        form.get("agent", ""), form.get("fact", ""), namespace=form.get("namespace") or DEFAULT
    )
    if not done:
        raise NotFoundError("fact", form.get("fact", ""))
    return back(form, "/studio/facts")


async def forget_many(desk: Desk, request: Request) -> Response:
    """Delete the chosen facts; those that no longer exist are skipped."""
    form = desk.form(request)
    store, namespace = desk.memory_state(request).long_term, form.get("namespace") or DEFAULT
    done = 0
    for one in [one for one in form.get("tasks", "").split(",") if one][:SHOWN]:
        done += await store.delete(form.get("agent", ""), one, namespace=namespace)
    return back(form, "/studio/facts", {PARAMETER: notice("forget", done)})


SCREEN = Screen(
    "/studio/facts",
    facts,
    {"correct": correct, "add": add, "forget": forget, "forget-many": forget_many},
)
