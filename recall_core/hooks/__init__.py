"""Claude Code's hooks: what is remembered goes before a prompt, what matters of a session is kept. None ever blocks."""
