"""How long `recall hook user-prompt-submit` takes from the start of its process, in a project of many memories.

    python benchmarks/hooks.py [--texts 50000] [--runs 60]

First by itself, as the first prompt after a while, then beside the process that an earlier hook left behind, as the
prompts that follow. The budget is lifted, so that the whole time is seen. The time of the processor is what other load
changes less; what Python needs to start with nothing is beside it, since that differs from machine to machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recall_core import Memory
from recall_core.client_scopes import project_scope
from recall_core.hooks.asking import ask_resident, find_socket

ZH = "部署 服务 数据库 配置 磁盘 日志 网关 重启 备份 监控 告警 用户 咖啡 会议 项目 版本 发布 回滚 缓存 队列".split()  # noqa: SIM905
EN = "deploy service database config disk log gateway restart backup monitor alert user coffee meeting project".split()  # noqa: SIM905
PROMPTS = (
    "how do we restart the database gateway after a backup?",
    "数据库备份之后怎么重启网关？",
    "please look at the deploy service, its config and the log of the monitor: the alert came while the user was in a "
    "meeting, and the disk was full again",
    "what is the weather like in Lisbon",
)
COMMAND = "from recall_core.cli import main; main()"


def fill(db: Path, project: Path, count: int) -> None:
    """Store made-up memories of a project."""
    rng, scope = random.Random(7), project_scope(project)
    with Memory.open(db, embedder=None) as memory:
        memory.add_many(
            {
                "text": f"{number} " + ("" if number % 2 else " ").join(rng.choices(ZH if number % 2 else EN, k=8)),
                "scope": scope,
            }
            for number in range(count)
        )


def call(prompt: str | None, name: object, project: Path) -> tuple[float, float, bool]:
    """Return the seconds to the end of a hook, those of the processor, and whether it found something."""
    payload = {"session_id": f"s{name}", "cwd": str(project), "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "hook", "user-prompt-submit"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"{" if prompt is None else json.dumps(payload).encode())
    process.stdin.close()
    output = process.stdout.read()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    process.stdout.close()
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, bool(output)


def call_oddly(db: Path, project: Path, runs: int) -> None:
    """Print how long hooks take that have nothing to work with, or too much."""
    large = "how do we restart the database gateway after a backup? " + "x = 1\n" * 900_000
    for name, prompt, path in (
        ("no memory", PROMPTS[0], db.with_name("missing.db")),
        ("no JSON", None, db),
        ("a prompt of 5 MB", large, db),
        ("locked by a writer", PROMPTS[0], db),
    ):
        os.environ["RECALL_DB"] = str(path)
        with contextlib.ExitStack() as stack:
            if name.startswith("locked"):
                writer = stack.enter_context(contextlib.closing(sqlite3.connect(db)))
                writer.execute("BEGIN IMMEDIATE")
            sessions = [f"{os.environ['RECALL_HOOK_RESIDENT']} {name} {number}" for number in range(runs)]
            show(name, [call(prompt, session, project)[0] for session in sessions])
    os.environ["RECALL_DB"] = str(db)


def call_nothing() -> float:
    """Return the seconds that Python takes to start and end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def show(what: str, seconds: list[float]) -> None:
    times = sorted(seconds)
    p95 = times[int(0.95 * (len(times) - 1))]
    print(f"{what}: median {statistics.median(times):.3f} s, p95 {p95:.3f} s, best {times[0]:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        os.environ.update(
            RECALL_DB=f"{folder}/memory.db", RECALL_HOOK_DIR=f"{folder}/state", RECALL_HOOK_BUDGET="30000"
        )
        db = Path(folder) / "memory.db"
        fill(db, project, arguments.texts)
        for idle, what in ((0, "by itself"), (600, "beside the process that was left behind")):
            os.environ["RECALL_HOOK_RESIDENT"] = str(idle)
            call(PROMPTS[0], f"{idle} first", project)
            path = find_socket(Path(folder) / "state", db)
            while path is not None and ask_resident(path, b"{}", None, 1) is None:
                time.sleep(0.1)
            done = [call(PROMPTS[number % 4], f"{idle} {number}", project) for number in range(arguments.runs)]
            print(f"{arguments.texts} memories, {what}: {len(done)} calls, {sum(one[2] for one in done)} with a block")
            for place, kind in enumerate(("from start to end", "of the processor")):
                show(kind, [one[place] for one in done])
            call_oddly(db, project, 20)
    show("python -c pass", [call_nothing() for _ in range(arguments.runs)])


if __name__ == "__main__":
    main()
