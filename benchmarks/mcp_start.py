"""How soon `recall mcp` answers `initialize`, against a server of the bare SDK without tools.

    python benchmarks/mcp_start.py [--runs 15]

Each time is from the start of a new process to its answer; the two kinds take turns, so that other load hits both. The
time of the processor is that of the whole process, which other load changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARE = """
try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server.mcpserver import MCPServer as Server
Server("bare").run()
"""
RECALL = "from recall_core.cli import main; main()"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def time_start(*arguments: str) -> tuple[float, float]:
    """Return the seconds from the start of a server to its answer, and those of the processor."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    assert b"serverInfo" in process.stdout.readline()
    seconds = time.perf_counter() - started
    process.stdin.close()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return seconds, used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RECALL_DB"] = str(Path(folder) / "memory.db")
        time_start(BARE), time_start(RECALL, "mcp")  # compiles what is not compiled yet
        pairs = [(time_start(BARE), time_start(RECALL, "mcp")) for _ in range(runs)]
    for place, what in enumerate(("to the answer", "of the processor")):
        bare, recall = ([pair[kind][place] for pair in pairs] for kind in (0, 1))
        for name, times in (("bare SDK", bare), ("recall mcp", recall)):
            print(f"{name}, {what}: median {statistics.median(times):.3f} s, best {min(times):.3f} s")
        print(f"ratio: {statistics.median(recall) / statistics.median(bare):.2f} ({min(recall) / min(bare):.2f})")


if __name__ == "__main__":
    main()
