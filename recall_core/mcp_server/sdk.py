"""The MCP SDK, of either major: what differs between them stands here."""

from __future__ import annotations

import warnings
from typing import Any

from mcp.types import INVALID_PARAMS, CallToolResult, TextContent, ToolAnnotations

try:
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ToolError

    MAJOR = 1
except ImportError:  # the module is gone in 2
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as FastMCP
    from mcp.server.mcpserver.exceptions import ToolError

    MAJOR = 2

__all__ = [
    "MAJOR",
    "CallToolResult",
    "Context",
    "TextContent",
    "ToolAnnotations",
    "ToolError",
    "low_level",
    "new_server",
    "protocol_error",
]


def new_server(name: str, *, title: str, version: str, instructions: str) -> Any:
    """Return a server without tools."""
    shared = {"instructions": instructions, "log_level": "WARNING"}
    if MAJOR == 2:
        return FastMCP(name, title=title, version=version, **shared)
    _read_no_settings()
    with warnings.catch_warnings(action="ignore"):  # of 1.26 beside a newer pydantic, at each start
        server = FastMCP(name, host="127.0.0.1", stateless_http=True, json_response=False, **shared)
    low_level(server).version = version
    return server


def protocol_error(message: str) -> Any:
    """Return the error whose message reaches the client from a resource or a prompt."""
    if MAJOR == 1:
        return ToolError(message)
    from mcp.shared.exceptions import MCPError

    return MCPError(code=INVALID_PARAMS, message=message)


def _read_no_settings() -> None:
    """Keep the SDK 1.x from FASTMCP_* in the environment and in a `.env` of the folder that a server is started in:
    those are for another server, and what it can't read would end ours.
    """
    from mcp.server.fastmcp.server import Settings

    def choose(_class: type[Any], _settings: Any, /, init_settings: Any, **_others: Any) -> tuple[Any]:
        return (init_settings,)

    Settings.settings_customise_sources = classmethod(choose)
    Settings.model_config["env_file"] = None  # which would be read all the same


def low_level(server: Any) -> Any:
    """Return the server that speaks the protocol: private in both majors, there is no other way to its streams."""
    return server._mcp_server if MAJOR == 1 else server._lowlevel_server


def http_application(server: Any) -> Any:
    """Return the ASGI application of a server on loopback: streamable HTTP at /mcp, without sessions."""
    if MAJOR == 1:
        return server.streamable_http_app()
    return server.streamable_http_app(host="127.0.0.1", stateless_http=True)
