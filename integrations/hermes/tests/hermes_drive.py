#!/usr/bin/env python3
"""Conformance drive for a Hermes Agent MemoryProvider, through the REAL hermes-agent package.

    python hermes_drive.py --toy                         # self-check with a toy provider
    python hermes_drive.py --provider NAME --home DIR    # your provider, installed in DIR/plugins/NAME
    options: --source-dir PATH   symlink PATH to DIR/plugins/NAME first
             --entry-point       the provider is pip-installed (needs a Hermes that reads hermes_agent.memory_providers)
             --query/--fact      text for the recall check (default is a mixed Chinese/English fact)
             --tool NAME --tool-args JSON   the tool to call (default: first schema, minimal args)
             --json FILE         write results
             --strict            warnings (latency, metadata, replace/remove, user scoping, CLI) count as failures
Exit code: 0 = every required check passed, 1 = a required check failed.
Nothing here needs a model, a network, or the Hermes gateway.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import os
import shutil
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

TOY = textwrap.dedent('''
    """Smallest useful Hermes memory provider (MemoryProvider must be named within the first 8192 bytes)."""
    from __future__ import annotations
    import json, sqlite3, threading
    from pathlib import Path
    from agent.memory_provider import MemoryProvider

    class ToyMemoryProvider(MemoryProvider):
        def __init__(self):
            self._lock = threading.Lock(); self._db = None; self._sid = ""; self._write = True
        @property
        def name(self): return "toymem"
        def is_available(self): return True                      # no network, no heavy import
        def initialize(self, session_id, **kw):
            self._sid = session_id
            self._write = kw.get("agent_context", "primary") == "primary"
            d = Path(kw["hermes_home"]) / "toymem"; d.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(d / "toy.db", check_same_thread=False)   # hooks arrive on >=4 threads
            self._db.execute("create table if not exists m(id integer primary key, sid text, kind text, body text)")
            self._db.commit()
        def _add(self, kind, body, sid=""):
            if not self._write: return
            with self._lock:
                self._db.execute("insert into m(sid,kind,body) values(?,?,?)", (sid or self._sid, kind, body)); self._db.commit()
        def system_prompt_block(self): return "# Toy memory\\nActive. Use toymem_search to look things up."
        def prefetch(self, query, *, session_id=""):
            words = [w for w in query.replace("?", " ").split() if len(w) > 1]
            with self._lock:
                rows = [b for w in words for (b,) in self._db.execute("select body from m where body like ? limit 3", (f"%{w}%",))]
            return "\\n".join(f"- {b}" for b in dict.fromkeys(rows))
        def sync_turn(self, user_content, assistant_content, *, session_id="", messages=None):
            self._add("turn", f"user: {user_content} | assistant: {assistant_content}", session_id)
        def on_memory_write(self, action, target, content, metadata=None):
            md = metadata or {}
            with self._lock:
                if action in ("replace", "remove") and md.get("old_text"):
                    self._db.execute("delete from m where kind=? and body like ?", ("builtin:" + target, f"%{md['old_text']}%"))
                    self._db.commit()
            if action in ("add", "replace"): self._add("builtin:" + target, content, md.get("session_id", ""))
        def on_session_switch(self, new_session_id, *, parent_session_id="", reset=False, rewound=False, **kw):
            self._sid = new_session_id
        def get_tool_schemas(self):                              # called BEFORE initialize()
            return [{"name": "toymem_search", "description": "Search toy memory.",
                     "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}]
        def handle_tool_call(self, tool_name, args, **kw):       # must return a JSON *string*
            return json.dumps({"results": self.prefetch(args.get("query", ""))}, ensure_ascii=False)
        def shutdown(self):
            with self._lock:
                if self._db: self._db.close(); self._db = None

    def register(ctx):
        ctx.register_memory_provider(ToyMemoryProvider())
''').lstrip()
TOY_CLI = """def register_cli(subparser):
    subs = subparser.add_subparsers(dest="toymem_command")
    subs.add_parser("status")
def toymem_command(args):
    print("toymem ok")
"""

results: list[dict] = []
STRICT = False


def check(name, ok, detail="", required=True):
    required = required or STRICT
    results.append({"check": name, "ok": bool(ok), "required": required, "detail": str(detail)[:400]})
    mark = "PASS" if ok else ("FAIL" if required else "warn")
    print(f"  [{mark}] {name}" + (f" -- {str(detail)[:200]}" if detail != "" else ""))
    return bool(ok)


class Tap(logging.Handler):
    """Hermes swallows provider exceptions into its logs; a silent pass is not a pass."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.bad = []

    def emit(self, rec):
        m = rec.getMessage()
        if "Memory provider" in m and ("failed" in m or "timed out" in m):
            self.bad.append(f"{rec.levelname}: {m}")
        elif rec.name.startswith("plugins.memory") and "ailed" in m:
            self.bad.append(f"{rec.levelname}: {m}")
        elif "abandoning" in m or "still running; skipping" in m or "pre-wrapped" in m or "shadows a reserved" in m:
            self.bad.append(f"{rec.levelname}: {m}")


def minimal_args(schema):
    out = {}
    props = (schema.get("parameters") or {}).get("properties") or {}
    for key in (schema.get("parameters") or {}).get("required") or []:
        p = props.get(key, {})
        out[key] = (
            (p.get("enum") or [None])[0]
            if p.get("enum")
            else {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}.get(
                p.get("type"), "SQLite 记忆"
            )
        )
    return out


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--provider")
    ap.add_argument("--home")
    ap.add_argument("--source-dir")
    ap.add_argument("--toy", action="store_true")
    ap.add_argument("--entry-point", action="store_true")
    ap.add_argument("--fact", default="用户 小明 的生产数据库是 PostgreSQL，备份脚本叫 nightly_dump.sh")
    ap.add_argument("--query", default="PostgreSQL 备份脚本 nightly_dump.sh 是什么?")
    ap.add_argument("--needle", default="nightly_dump.sh")
    ap.add_argument("--tool")
    ap.add_argument("--tool-args")
    ap.add_argument("--prefetch-budget-ms", type=float, default=500.0)
    ap.add_argument("--sync-budget-ms", type=float, default=200.0)
    ap.add_argument("--set", action="append", default=[], metavar="MODULE:NAME=SECONDS", help="once it is loaded")
    ap.add_argument("--json")
    ap.add_argument("--keep", action="store_true")
    ap.add_argument("--strict", action="store_true")
    a = ap.parse_args()
    globals()["STRICT"] = a.strict
    if a.toy:
        a.provider = a.provider or "toymem"
    if not a.provider:
        ap.error("--provider (or --toy) is required")

    temp = None
    if not a.home:
        temp = tempfile.mkdtemp(prefix="hermes-home-")
        a.home = temp
    home = Path(a.home).resolve()
    plug = home / "plugins" / a.provider
    plug.parent.mkdir(parents=True, exist_ok=True)
    os.environ["HERMES_HOME"] = str(home)  # BEFORE importing hermes: get_hermes_home() reads it
    os.environ.setdefault("HERMES_SKIP_UPDATE_CHECK", "1")
    fake_user_home = home / "_userhome"
    fake_user_home.mkdir(exist_ok=True)
    os.environ["HOME"] = str(fake_user_home)  # catches providers that hardcode ~/.hermes or ~/.something
    if a.toy:
        plug.mkdir(exist_ok=True)
        (plug / "__init__.py").write_text(TOY, encoding="utf-8")
        (plug / "cli.py").write_text(TOY_CLI)
        (plug / "plugin.yaml").write_text(
            "name: toymem\nversion: 0.0.1\ndescription: toy provider\nkind: exclusive\nhooks:\n  - on_session_end\n"
        )
    elif a.source_dir and not plug.exists():
        plug.symlink_to(Path(a.source_dir).resolve(), target_is_directory=True)
    if not (home / "config.yaml").exists():
        (home / "config.yaml").write_text(f"memory:\n  provider: {a.provider}\n", encoding="utf-8")

    tap = Tap()
    root = logging.getLogger()
    root.setLevel(logging.DEBUG)
    root.addHandler(tap)
    for noisy in ("asyncio", "httpx", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

    import importlib.metadata as md
    from agent.memory_provider import MemoryProvider
    from agent.memory_manager import (
        MemoryManager,
        build_memory_context_block,
        sanitize_context,
        inject_memory_provider_tools,
    )
    import plugins.memory as pm

    print(f"hermes-agent {md.version('hermes-agent')}  provider={a.provider}")

    print("discovery")
    if hasattr(pm, "list_memory_provider_names"):
        check(
            "list_memory_provider_names() has it (no import)", a.provider in pm.list_memory_provider_names()
        )  # >=0.19
    if not a.entry_point:
        check("find_provider_dir()", pm.find_provider_dir(a.provider) is not None)
    t = time.perf_counter()
    mods0 = set(sys.modules)
    provider = pm.load_memory_provider(a.provider)
    load_ms = (time.perf_counter() - t) * 1e3
    for place in a.set:
        module, name = place.partition("=")[0].split(":")
        setattr(sys.modules[module], name, float(place.partition("=")[2]))
    if not check(
        "load_memory_provider() returns an instance",
        isinstance(provider, MemoryProvider),
        f"{type(provider).__name__} in {load_ms:.0f} ms",
    ):
        print("\n".join(tap.bad))
        return finish(a, temp)
    heavy = sorted(
        {m.split(".")[0] for m in set(sys.modules) - mods0}
        & {"onnxruntime", "torch", "transformers", "jieba", "numpy", "sentence_transformers"}
    )
    check(
        "load is light (<1 s, no onnxruntime/torch/jieba at import)",
        load_ms < 5 * a.sync_budget_ms and not heavy,
        heavy or f"{load_ms:.0f} ms",
        required=False,
    )
    check("provider.name == directory/config name", provider.name == a.provider, provider.name)
    t = time.perf_counter()
    avail = provider.is_available()
    check("is_available() True, fast", avail and time.perf_counter() - t < a.sync_budget_ms / 200)
    check(
        "shown available by discover_memory_providers()",
        dict((n, v) for n, _, v in pm.discover_memory_providers()).get(a.provider) is True,
    )

    print("contract before initialize()")
    schemas = None
    try:
        schemas = provider.get_tool_schemas()
        json.dumps(schemas)
        check(
            "get_tool_schemas() works before initialize and is JSON",
            isinstance(schemas, list),
            [s.get("name") for s in schemas],
        )
        check(
            "schemas are bare functions with name/description/parameters",
            all(
                isinstance(s, dict) and s.get("name") and s.get("description") and isinstance(s.get("parameters"), dict)
                for s in schemas
            ),
        )
        from toolsets import _HERMES_CORE_TOOLS

        check("no tool shadows a Hermes core tool", not {s["name"] for s in schemas} & set(_HERMES_CORE_TOOLS))
        check("tool names are prefixed (no generic names)", all("_" in s["name"] for s in schemas), required=False)
    except Exception as e:
        check("get_tool_schemas() works before initialize", False, repr(e))
    try:
        cs = provider.get_config_schema()
        check("get_config_schema()", isinstance(cs, list) and all("key" in f for f in cs), [f["key"] for f in cs])
    except Exception as e:
        check("get_config_schema()", False, repr(e))
    try:
        bp = getattr(provider, "backup_paths", list)()
        check("backup_paths() works before initialize", isinstance(bp, list), bp)
    except Exception as e:
        check("backup_paths()", False, repr(e))
    try:
        provider.system_prompt_block()
        check("system_prompt_block() before initialize does not raise", True)
    except Exception as e:
        check("system_prompt_block() before initialize does not raise", False, repr(e), required=False)
    sig = inspect.signature(provider.on_memory_write).parameters
    check(
        "on_memory_write accepts metadata",
        "metadata" in sig or any(p.kind is p.VAR_KEYWORD for p in sig.values()),
        required=False,
    )
    sig = inspect.signature(provider.sync_turn).parameters
    check(
        "sync_turn accepts messages",
        "messages" in sig or any(p.kind is p.VAR_KEYWORD for p in sig.values()),
        required=False,
    )
    for hook in ("initialize", "on_session_switch", "on_delegation", "on_turn_start", "handle_tool_call"):
        ok = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(getattr(provider, hook)).parameters.values())
        check(f"{hook} takes **kwargs (forward compatible)", ok)

    print("lifecycle through MemoryManager (order used by agent_init: add_provider, then initialize_all)")
    waits = {"external_prefetch_timeout": max(8.0, a.prefetch_budget_ms / 1e3)}
    mgr = MemoryManager(**{k: v for k, v in waits.items() if k in inspect.signature(MemoryManager).parameters})
    mgr.add_provider(provider)
    check("registered", mgr.get_provider(a.provider) is provider)
    dupe = type(
        "Other",
        (MemoryProvider,),
        {
            "name": "other",
            "is_available": lambda s: True,
            "initialize": lambda s, session_id, **k: None,
            "get_tool_schemas": lambda s: [],
        },
    )()
    mgr.add_provider(dupe)
    check("second external provider rejected", mgr.get_provider("other") is None)
    S1, S2 = "20260101_000001_aaaaaa", "20260101_000002_bbbbbb"
    init = dict(
        platform="cli",
        hermes_home=str(home),
        agent_context="primary",
        agent_identity="default",
        agent_workspace="hermes",
        session_title="drive",
        user_id="u1",
        user_id_alt="u1-alt",
        user_name="Ming",
        chat_id="c1",
        chat_name="chat",
        chat_type="dm",
        thread_id="t1",
        gateway_session_key="agent:main:telegram:dm:c1",
        future_kwarg_from_a_newer_hermes=1,
        warning_callback=lambda *x, **k: None,
        status_callback=lambda *x, **k: None,
    )
    t = time.perf_counter()
    mgr.initialize_all(session_id=S1, **init)
    init_ms = (time.perf_counter() - t) * 1e3
    check("initialize_all (unknown kwargs tolerated)", not tap.bad, tap.bad or f"{init_ms:.0f} ms")
    b1, b2 = mgr.build_system_prompt(), mgr.build_system_prompt()
    check("system_prompt_block is byte-stable (prompt cache)", b1 == b2, f"{len(b1)} chars")

    class FakeAgent:
        pass

    ag = FakeAgent()
    ag._memory_manager = mgr
    ag.tools = []
    ag.enabled_toolsets = None
    ag.disabled_toolsets = None
    ag.valid_tool_names = set()
    check("inject_memory_provider_tools", inject_memory_provider_tools(ag) == len(schemas or []), ag.valid_tool_names)

    mgr.on_turn_start(1, "hello")
    mgr.prefetch_all("hello there, nothing is stored yet", session_id=S1)
    msgs = [
        {"role": "user", "content": a.fact},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "ok"},
        {"role": "assistant", "content": "好的，记住了。"},
    ]
    t = time.perf_counter()
    mgr.sync_all(a.fact, "好的，记住了。", session_id=S1, messages=msgs)
    mgr.queue_prefetch_all(a.query, session_id=S1)
    check("sync_all returns at once", (time.perf_counter() - t) * 1e3 < a.sync_budget_ms / 4)
    t = time.perf_counter()
    provider.sync_turn("direct turn", "ok", session_id=S1)
    direct = (time.perf_counter() - t) * 1e3
    check(
        f"sync_turn itself is non-blocking (<{a.sync_budget_ms:.0f} ms)",
        direct < a.sync_budget_ms,
        f"{direct:.1f} ms",
        required=False,
    )
    check("flush_pending", mgr.flush_pending(timeout=60))
    got = ""
    t = time.perf_counter()
    for _ in range(40):
        t = time.perf_counter()
        got = mgr.prefetch_all(a.query, session_id=S1)
        if a.needle in got:
            break
        time.sleep(0.25)
    pf_ms = (time.perf_counter() - t) * 1e3
    check("prefetch finds the synced turn (no session_id restriction needed)", a.needle in got, got[:160])
    check(
        f"prefetch under budget ({a.prefetch_budget_ms:.0f} ms; the host cuts at 8000)",
        pf_ms < a.prefetch_budget_ms,
        f"{pf_ms:.1f} ms",
        required=False,
    )
    check("prefetch with the host's real call shape (session_id='')", a.needle in mgr.prefetch_all(a.query))
    check(
        "prefetch text is not pre-fenced",
        sanitize_context(got) == got and "<memory-context>" in build_memory_context_block(got or "x"),
    )
    check("prefetch is bounded (<10 000 chars, newer hosts spill above)", len(got) < 10000, len(got))

    print("built-in memory mirror (on_memory_write)")
    meta = lambda: {
        "write_origin": "assistant_tool",
        "execution_context": "foreground",
        "session_id": S1,
        "platform": "cli",
        "tool_name": "memory",
        "task_id": "t",
        "tool_call_id": "x",
    }

    def mem(args, result='{"success": true}'):
        n = len(tap.bad)
        mgr.notify_memory_tool_write(result, args, build_metadata=meta)
        mgr.flush_pending(timeout=60)
        time.sleep(0.3)
        return tap.bad[n:]

    def seen(q, needle):
        for _ in range(120):
            if needle in mgr.prefetch_all(q):
                return True
            time.sleep(0.2)
        return False

    check(
        "add",
        not mem({"action": "add", "target": "user", "content": "Favourite editor is zedtool42 now"})
        and seen("which editor zedtool42", "zedtool42"),
    )
    bad = mem(
        {
            "action": "replace",
            "target": "user",
            "old_text": "zedtool42",
            "content": "Favourite editor is helixtool77 now",
        }
    )
    check("replace: new text found", not bad and seen("which editor helixtool77", "helixtool77"), bad)
    check("replace: old text gone", "zedtool42" not in mgr.prefetch_all("which editor zedtool42"), required=False)
    bad = mem({"action": "remove", "target": "user", "old_text": "helixtool77"})
    check(
        "remove: text gone",
        not bad and "helixtool77" not in mgr.prefetch_all("which editor helixtool77"),
        bad,
        required=False,
    )
    mem({"action": "add", "target": "memory", "content": "staged_secret_99"}, '{"success": true, "staged": true}')
    mem({"action": "add", "target": "memory", "content": "failed_write_98"}, '{"success": false}')
    check(
        "staged/failed writes are not mirrored",
        "staged_secret_99" not in mgr.prefetch_all("staged_secret_99")
        and "failed_write_98" not in mgr.prefetch_all("failed_write_98"),
    )
    bad = mem(
        {
            "target": "memory",
            "operations": [
                {"action": "add", "content": "batch_alpha_1 is set"},
                {"action": "add", "content": "batch_beta_2 is set"},
            ],
        }
    )
    check(
        "batched operations mirrored",
        not bad and seen("batch_alpha_1", "batch_alpha_1") and seen("batch_beta_2", "batch_beta_2"),
    )

    print("tools")
    for s in schemas or []:
        args = json.loads(a.tool_args) if a.tool_args and s["name"] == a.tool else minimal_args(s)
        if a.tool and s["name"] != a.tool:
            continue
        r = mgr.handle_tool_call(s["name"], args)
        try:
            json.loads(r)
            okjson = isinstance(r, str)
        except Exception:
            okjson = False
        check(f"tool {s['name']} returns a JSON string", okjson, r)
        r2 = mgr.handle_tool_call(s["name"], {})
        try:
            json.loads(r2)
            check(
                f"tool {s['name']} with empty args returns JSON, not a crash",
                not (isinstance(r2, str) and "failed:" in r2 and "Memory tool" in r2),
                r2,
                required=False,
            )
        except Exception as e:
            check(f"tool {s['name']} with empty args", False, repr(e))
    if schemas:
        try:
            r = provider.handle_tool_call("no_such_tool_xyz", {})
            check("unknown tool handled", isinstance(r, str), r, required=False)
        except NotImplementedError:
            check("unknown tool handled", True, "NotImplementedError")
        except Exception as e:
            check("unknown tool handled", False, repr(e), required=False)

    print("hooks, sessions, threads")
    n = len(tap.bad)
    extra = mgr.on_pre_compress(msgs)
    check("on_pre_compress returns str", isinstance(extra, str))
    mgr.on_delegation("research X", "found Y", child_session_id="child-1", role="leaf")
    mgr.on_turn_start(2, "next", remaining_tokens=1000, model="m", platform="cli", tool_count=3)
    mgr.on_session_switch(S1, parent_session_id=S1, reset=False, reason="compression")
    mgr.on_session_switch(S1, rewound=True)
    t = time.perf_counter()
    if hasattr(mgr, "commit_session_boundary_async"):
        mgr.commit_session_boundary_async(msgs, new_session_id=S2, parent_session_id=S1)
    else:
        mgr.on_session_end(msgs)
        mgr.on_session_switch(S2, parent_session_id=S1, reset=True)
        t = time.perf_counter()  # <0.19
    check("session boundary is async", (time.perf_counter() - t) * 1e3 < a.sync_budget_ms / 4)
    mgr.flush_pending(timeout=60)
    mgr.sync_all("第二个会话 的 口令 是 omega_555", "收到", session_id=S2)
    mgr.flush_pending(timeout=60)
    check("hooks raised nothing", len(tap.bad) == n, tap.bad[n:])
    check("recall crosses sessions", seen("口令 omega_555", "omega_555") and a.needle in mgr.prefetch_all(a.query))
    errs = []

    def hammer(i):
        try:
            for j in range(10):
                provider.sync_turn(f"thread {i} item {j}", "ok", session_id=S2)
                provider.prefetch(f"thread {i}", session_id=S2)
                provider.on_memory_write("add", "memory", f"note {i}-{j}", metadata={"session_id": S2})
        except Exception as e:
            errs.append(repr(e))

    ths = [threading.Thread(target=hammer, args=(i,)) for i in range(4)]
    t = time.perf_counter()
    [x.start() for x in ths]
    [x.join(60) for x in ths]
    check(
        "4 threads x (sync, prefetch, mirror): no exception",
        not errs and not any(x.is_alive() for x in ths),
        errs or f"{time.perf_counter() - t:.2f} s",
    )

    print("second instance, non-primary contexts, scoping")
    mgr.flush_pending(timeout=60)
    # Hermes builds a fresh provider per AIAgent (gateway, TUI); both live at once in one process.
    p2 = pm.load_memory_provider(a.provider)
    m2 = MemoryManager()
    m2.add_provider(p2)
    m2.initialize_all(
        session_id="20260101_000003_cccccc", **{**init, "agent_context": "subagent", "parent_session_id": S2}
    )
    check("load_memory_provider() gives a fresh instance", p2 is not provider)
    m2.sync_all("subagent_leak_777 must not be stored", "ok", session_id="c")
    m2.on_memory_write("add", "memory", "subagent_leak_778")
    m2.flush_pending(timeout=60)
    time.sleep(0.3)
    check(
        "agent_context=subagent: no writes",
        "subagent_leak_77" not in mgr.prefetch_all("subagent_leak_777 subagent_leak_778"),
        required=True,
    )
    m2.shutdown_all()
    check("first instance survives the second's shutdown", a.needle in mgr.prefetch_all(a.query))
    t = time.perf_counter()
    mgr.on_session_end(msgs)
    mgr.shutdown_all()
    sd = time.perf_counter() - t
    check(
        "shutdown_all fast and drained",
        sd < a.sync_budget_ms / 40
        and getattr(mgr, "shutdown_drain_state", {}).get("status", "drained") in ("drained", "not_started"),
        f"{sd:.2f} s {getattr(mgr, 'shutdown_drain_state', '')}",
    )
    try:
        provider.shutdown()
        check("shutdown is idempotent", True)
    except Exception as e:
        check("shutdown is idempotent", False, repr(e))
    p3 = pm.load_memory_provider(a.provider)
    m3 = MemoryManager()
    m3.add_provider(p3)
    m3.initialize_all(session_id="20260101_000004_dddddd", **init)
    check("memory persists over a restart", a.needle in m3.prefetch_all(a.query) or seen_in(m3, a.query, a.needle))
    m3.shutdown_all()
    m4 = MemoryManager()
    p4 = pm.load_memory_provider(a.provider)
    m4.add_provider(p4)
    m4.initialize_all(
        session_id="20260101_000005_eeeeee",
        **{
            **init,
            "user_id": "u2",
            "user_id_alt": "u2-alt",
            "user_name": "Other",
            "chat_id": "c2",
            "gateway_session_key": "agent:main:telegram:dm:c2",
            "platform": "telegram",
        },
    )
    check("another gateway user does not see it", a.needle not in m4.prefetch_all(a.query), required=False)
    m4.shutdown_all()
    home2 = Path(tempfile.mkdtemp(prefix="hermes-home2-"))
    m5 = MemoryManager()
    p5 = pm.load_memory_provider(a.provider)
    m5.add_provider(p5)
    m5.initialize_all(session_id="s", **{**init, "hermes_home": str(home2)})
    check("another hermes_home (profile) does not see it", a.needle not in m5.prefetch_all(a.query))
    m5.shutdown_all()
    shutil.rmtree(home2, ignore_errors=True)
    stray = [str(p.relative_to(fake_user_home)) for p in fake_user_home.rglob("*") if p.is_file()]
    check(
        "nothing written outside HERMES_HOME", not stray or bool(getattr(provider, "backup_paths", list)()), stray[:5]
    )

    print("cli / setup")
    cmds = pm.discover_plugin_cli_commands()
    check(
        "cli.py register_cli discovered for the active provider",
        bool(cmds) and cmds[0]["name"] == a.provider,
        [c["name"] for c in cmds],
        required=False,
    )
    if cmds:
        p = argparse.ArgumentParser()
        cmds[0]["setup_fn"](p)
        check("register_cli builds an argparse tree", True)
        check(
            "handler is <provider>_command or set_defaults(func=)",
            bool(cmds[0]["handler_fn"]) or p.get_default("func") is not None,
            required=False,
        )
    from hermes_cli.memory_setup import _get_available_providers

    check("`hermes memory setup` would list it", a.provider in [n for n, _, _ in _get_available_providers()])
    check("no provider failure was swallowed in the whole run", not tap.bad, tap.bad[:5])
    return finish(a, temp)


def seen_in(m, q, needle):
    for _ in range(20):
        if needle in m.prefetch_all(q):
            return True
        time.sleep(0.2)
    return False


def finish(a, temp):
    req = [r for r in results if r["required"] and not r["ok"]]
    opt = [r for r in results if not r["required"] and not r["ok"]]
    print(
        f"\n{sum(r['ok'] for r in results)}/{len(results)} passed; required failures: {len(req)}; warnings: {len(opt)}"
    )
    if a.json:
        Path(a.json).write_text(json.dumps(results, ensure_ascii=False, indent=1))
    if temp and not a.keep:
        shutil.rmtree(temp, ignore_errors=True)
    return 1 if req else 0


if __name__ == "__main__":
    rc = main()
    sys.stdout.flush()
    os._exit(rc)
