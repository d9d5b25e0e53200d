"""Clients of the MCP server, and how to add it to their configuration files without touching anything else there."""
