"""How soon a memory answers and how much it takes: import time, the `recall` command from cold, resident memory.

    python benchmarks/start.py [--texts 10000]

Each time is the median (and the best) of several new processes; memory is the process's own peak and last reading.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 9

IMPORT = "import time; t = time.perf_counter(); import recall_core; print(time.perf_counter() - t)"
FILL = """
import random, resource, sys, time
from pathlib import Path
from recall_core import Memory

ZH = "部署 服务 数据库 配置 磁盘 日志 网关 重启 备份 监控 告警 用户 咖啡 会议 项目 版本 发布 回滚 缓存 队列".split()
EN = "deploy service database config disk log gateway restart backup monitor alert user coffee meeting project".split()
rng = random.Random(7)


def text(number):
    words = rng.choices(ZH, k=8) if number % 2 else rng.choices(EN, k=8)
    return f"{number} " + ("" if number % 2 else " ").join(words)


def resident():
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmRSS:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


path, count = sys.argv[1], int(sys.argv[2])
with Memory.open(path) as memory:
    started = time.perf_counter()
    memory.add_many({"text": text(number)} for number in range(count))
    seconds = time.perf_counter() - started
    pending = memory.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    print(f"{count} texts stored and embedded in {seconds:.0f} s ({count / seconds:.0f}/s), {pending} pending")
    print(f"resident memory {resident():.0f} MB, peak {peak:.0f} MB, file {memory.stats().file_bytes / 2**20:.1f} MB")
    memory.search("数据库备份")
    print(f"resident memory after a search {resident():.0f} MB")
"""


def run(*command: str) -> str:
    """Run a command and return what it printed."""
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def time_command(*command: str) -> str:
    """Return the median and the best wall-clock time of a command, in seconds, as text."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run(*command)
        times.append(time.perf_counter() - started)
    return f"{statistics.median(times):.3f} s (best {min(times):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=10_000)
    arguments = parser.parse_args()
    imports = [float(run(sys.executable, "-c", IMPORT)) for _ in range(RUNS)]
    print(f"import recall_core: {statistics.median(imports):.3f} s (best {min(imports):.3f})")
    print(f"python -c pass: {time_command(sys.executable, '-c', 'pass')}")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "memory.db")
        os.environ["RECALL_DB"] = path
        print(run(sys.executable, "-c", FILL, path, str(arguments.texts)), end="", flush=True)
        recall = (sys.executable, "-c", "from recall_core.cli import main; main()")
        for query in ("数据库备份", "database backup"):
            keyword = time_command(*recall, "search", query, "--mode", "keyword")
            print(f"recall search {query!r} --mode keyword: {keyword}", flush=True)
            print(f"recall search {query!r} (hybrid): {time_command(*recall, 'search', query)}", flush=True)


if __name__ == "__main__":
    main()
