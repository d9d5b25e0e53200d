"""Real parts of Hermes for tests: providers found by its discovery, and an agent with a scripted model server."""

from __future__ import annotations

import contextlib
import inspect
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from recall_hermes.installing import install

CLI = {"platform": "cli", "agent_context": "primary", "agent_identity": "default"}


def telegram(user: str, **more: str) -> dict[str, str]:
    """Return what the gateway says of a user in a private chat."""
    key = f"agent:main:telegram:dm:{user}"
    given = {"platform": "telegram", "user_id": user, "chat_id": user, "chat_type": "dm", "gateway_session_key": key}
    return {**CLI, **given, **more}


class Hosts:
    """Makes managers with our provider in them, as Hermes does, and ends them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.managers = []

    def start(self, session: str = "s1", *, home: Path | None = None, **given: object):
        """Return a manager with an initialized provider."""
        import plugins.memory
        from agent.memory_manager import MemoryManager

        install(home or self.home)
        provider = plugins.memory.load_memory_provider("recall")
        known = inspect.signature(MemoryManager).parameters  # older hosts wait without a limit
        manager = MemoryManager(**{"external_prefetch_timeout": 120} if "external_prefetch_timeout" in known else {})
        manager.add_provider(provider)
        manager.initialize_all(session_id=session, hermes_home=str(home or self.home), **{**CLI, **given})
        manager.recall = provider
        self.managers.append(manager)
        return manager

    def say(self, manager, user: str, assistant: str = "OK.", session: str = "s1", messages=None) -> None:
        """Let a turn be synced, and wait until it is."""
        manager.sync_all(user, assistant, session_id=session, messages=messages)
        assert manager.flush_pending(timeout=120)

    def close(self) -> None:
        for manager in self.managers:
            manager.shutdown_all()


def call(manager, tool: str, **arguments: object):
    """Return the answer to a tool call."""
    return json.loads(manager.handle_tool_call(f"recall_{tool}", arguments))


class Model:
    """A model server on this machine that gives the answers it was told to, in the form of OpenAI's API."""

    def __init__(self, answers: list[dict[str, object]]) -> None:
        self.answers = answers
        self.asked: list[list[dict[str, object]]] = []
        self.tools: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(
                    {"object": "list", "data": [{"id": "scripted", "object": "model", "context_length": 128000}]}
                )

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "messages" not in body:  # Hermes looks whether this is a server of another kind
                    self.send_error(404)
                    return
                outer.asked.append(body["messages"])
                outer.tools = [tool["function"]["name"] for tool in body.get("tools", [])]
                message = outer.answers.pop(0) if outer.answers else {"content": "OK."}
                self._answer({"role": "assistant", "content": None, **message}, stream=body.get("stream", False))

            def _answer(self, message, *, stream: bool) -> None:
                reason = "tool_calls" if message.get("tool_calls") else "stop"
                base = {"id": "1", "created": 1, "model": "scripted"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                if not stream:
                    choice = {"index": 0, "message": message, "finish_reason": reason}
                    self._send({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
                    return
                calls = [{"index": place, **one} for place, one in enumerate(message.get("tool_calls") or [])]
                delta = {"role": "assistant", "content": message["content"], **({"tool_calls": calls} if calls else {})}
                chunks = [{"index": 0, "delta": delta, "finish_reason": None}]
                chunks.append({"index": 0, "delta": {}, "finish_reason": reason})
                events = [{**base, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
                events.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
                data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
                self._send_text(data, "text/event-stream")

            def _send(self, value) -> None:
                self._send_text(json.dumps(value), "application/json")

            def _send_text(self, text: str, kind: str) -> None:
                data = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def start_agent(model: Model, session: str, **given: object):
    """Return a real agent that speaks with a model server and has the memory tool."""
    from run_agent import AIAgent

    fixed = {
        "api_key": "none",
        "provider": "custom",
        "model": "scripted",
        "quiet_mode": True,
        "skip_context_files": True,
    }
    return AIAgent(
        base_url=model.url, session_id=session, enabled_toolsets=["memory"], **{"platform": "cli", **fixed, **given}
    )


def use_memory(**arguments: object) -> dict[str, object]:
    """Return a model's answer that calls Hermes' own memory tool."""
    return use_tool("memory", **arguments)


def use_tool(name: str, **arguments: object) -> dict[str, object]:
    """Return a model's answer that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}


@contextlib.contextmanager
def serving(*answers: dict[str, object]):
    """Yield a model server with these answers."""
    model = Model(list(answers))
    try:
        yield model
    finally:
        model.close()
