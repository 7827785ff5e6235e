"""The memory server: answers MCP clients with tools and one resource, on any transport."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListResourcesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from mcp.types import Tool as ListedTool

from holdfast.adapters.mcp.board_tools import BOARD_TOOLS
from holdfast.adapters.mcp.fact_tools import FACT_TOOLS
from holdfast.adapters.mcp.graph_tools import GRAPH_TOOLS
from holdfast.adapters.mcp.task_tools import TASK_TOOLS
from holdfast.adapters.mcp.tool import Caller, Tool, as_text, schema_of
from holdfast.values.errors import HoldfastError
from holdfast.values.ids import new_id

_log = logging.getLogger("holdfast.mcp")
GRAPH_URI = "memory://knowledge-graph"
INSTRUCTIONS = (
    "Long-term memory. Call recall before you answer what may depend on earlier conversations, "
    "and remember for what should be known next time. The knowledge graph has entities with "
    "observations, and relations between them. Tasks are done by other agents and outlive this "
    "conversation."
)


def memory_server(
    caller_of: Callable[[Any], Caller], *, subscriptions: bool = False
) -> Server[dict[str, Any]]:
    """Return a server whose calls work on the data of ``caller_of(request)``.

    ``request`` is the HTTP request of a call, or ``None`` over stdio. With ``subscriptions``,
    clients may subscribe to changes of the graph; use it only if the server has one caller. ::

        caller = Caller(state.for_owner("ana"), "mcp", MemoryGraph(state.items))
        server = memory_server(lambda request: caller)
    """
    answers = _Answers(caller_of)
    handlers: dict[str, Any] = {}
    if subscriptions:
        handlers = {
            "on_subscribe_resource": answers.subscribe,
            "on_unsubscribe_resource": answers.unsubscribe,
            "on_subscriptions_listen": ListenHandler(answers.bus),
        }
    return Server(
        "holdfast-memory",
        version=version("holdfast"),
        title="Holdfast memory",
        instructions=INSTRUCTIONS,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_read_resource=answers.read_resource,
        **handlers,
    )


class _Answers:
    """The handlers of the server's methods."""

    def __init__(self, caller_of: Callable[[Any], Caller]) -> None:
        self._caller_of = caller_of
        tools = (*GRAPH_TOOLS, *FACT_TOOLS, *BOARD_TOOLS, *TASK_TOOLS)
        self._tools = {one.name: one for one in tools}
        self._listed = {one.name: _listed(one) for one in self._tools.values()}
        self._subscribed: set[str] = set()
        self.bus = InMemorySubscriptionBus()

    async def list_tools(self, context: Any, _params: Any) -> ListToolsResult:
        """Return the tools that the caller may use."""
        writes = self._caller_of(context.request).writes
        found = [self._listed[name] for name, one in self._tools.items() if one.reads or writes]
        return ListToolsResult(tools=found)

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        """Run a tool; an error is returned as part of its result."""
        caller, tool = self._caller_of(context.request), self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}: list the tools")
        if not (tool.reads or caller.writes):
            return _failed(f"{tool.name} changes data, and this server or API key may only read")
        try:
            text, structured = await tool.call(caller, params.arguments or {})
        except HoldfastError as error:
            return _failed(str(error))
        except Exception:  # noqa: BLE001 - the top of a request: nothing of it may reach a client
            incident = new_id()
            _log.exception("tool %s failed, incident %s", tool.name, incident)
            return _failed(f"internal error, incident {incident}")
        if not tool.reads and tool in GRAPH_TOOLS:
            await self._notify(context)
        content = [TextContent(type="text", text=text)]
        return CallToolResult(content=content, structured_content=structured)

    async def list_resources(self, _context: Any, _params: Any) -> ListResourcesResult:
        """Return the one resource: the graph."""
        return ListResourcesResult(
            resources=[
                Resource(
                    uri=GRAPH_URI,
                    name="knowledge-graph",
                    title="Knowledge Graph",
                    description="All entities and relations",
                    mime_type="application/json",
                )
            ]
        )

    async def read_resource(
        self, context: Any, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Return the graph as JSON text."""
        _check_uri(params.uri)
        graph = await self._caller_of(context.request).graph.read()
        text = as_text(graph.to_json())
        found = TextResourceContents(uri=GRAPH_URI, mime_type="application/json", text=text)
        return ReadResourceResult(contents=[found])

    async def subscribe(self, _context: Any, params: SubscribeRequestParams) -> EmptyResult:
        """Notify the client when the resource changes; for protocol versions up to 2025-11-25."""
        _check_uri(params.uri)
        self._subscribed.add(str(params.uri))
        return EmptyResult()

    async def unsubscribe(self, _context: Any, params: UnsubscribeRequestParams) -> EmptyResult:
        """Stop notifying the client."""
        self._subscribed.discard(str(params.uri))
        return EmptyResult()

    async def _notify(self, context: Any) -> None:
        if GRAPH_URI in self._subscribed:
            await context.session.send_resource_updated(GRAPH_URI)
        await self.bus.publish(ResourceUpdated(uri=GRAPH_URI))


def _listed(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.arguments),
        output_schema=schema_of(tool.answer),
        annotations=ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.deletes,
            idempotent_hint=tool.reads or tool.deletes,
            open_world_hint=False,
        ),
    )


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _check_uri(uri: Any) -> None:
    if str(uri) != GRAPH_URI:
        raise MCPError(INVALID_PARAMS, f"there is no resource {str(uri)!r}: list the resources")
