"""recall_core lives beside the frameworks that it serves, in one environment with each of them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from recall_core import Memory, __version__

HOSTS = {
    "hosts": {
        "langchain-core": "langchain_core",
        "langchain": "langchain",
        "langgraph": "langgraph",
        "llama-index-core": "llama_index.core",
        "crewai": "crewai",
    },
    "hermes": {"hermes-agent": "agent.memory_provider"},
}[os.environ["RECALL_TEST_HOSTS"]]
NO_TELEMETRY = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "ANONYMIZED_TELEMETRY": "false"}


def run(*command: str, cwd: Path) -> str:
    """Run a command, its own profile and data below `cwd`, and return what it printed."""
    environment = os.environ | NO_TELEMETRY | {"HOME": str(cwd), "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_host_is_installed(distribution):
    assert importlib.metadata.version(distribution)


@pytest.mark.parametrize("module", HOSTS.values())
def test_a_host_and_recall_core_can_be_imported_together(module, tmp_path):
    run(sys.executable, "-c", f"import {module}, recall_core; recall_core.Memory", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("项目部署统一使用 Docker Compose，不再使用虚拟机", "怎么部署服务"),
        ("The database password lives in the vault, never in the repository", "where is the database password"),
    ],
)
def test_a_memory_is_added_and_found_beside_the_hosts(text, question):
    with Memory.open(":memory:") as memory:
        memory.add("晚饭吃了火锅 and watched a film")
        record = memory.add(text)
        hits = memory.search(question)
        assert hits.degraded is None
        assert hits[0].record.id == record.id


def test_the_command_tells_its_version_beside_the_hosts(tmp_path):
    recall = Path(sysconfig.get_path("scripts")) / "recall"
    assert __version__ in run(str(recall), "--version", cwd=tmp_path)
