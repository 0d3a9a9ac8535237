"""What people and programs talk to: terminal, chat, notebook, MCP server, page."""
