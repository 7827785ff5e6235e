"""The MCP server, with the MCP SDK as the client."""
