"""Claude Code's hooks: what is remembered goes before a prompt, what matters of a session is kept. None ever blocks."""

EVENTS = ("session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "session-end")
