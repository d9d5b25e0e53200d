"""A memory as an MCP server. These modules alone import the SDK (`pip install "dualrecall[mcp]"`), of either major."""
