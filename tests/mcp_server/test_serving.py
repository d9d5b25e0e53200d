"""How a server starts, what it lets through, whose memories it shows."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from cli_support import run as run_command
from mcp_support import HELLO, Raw, calling, connect_http, connect_stdio, run, serving
from support import LIMIT, HashedEmbedder

from recall_core import Memory
from recall_core.errors import InvalidInputError, StoreUnavailableError
from recall_core.mcp_server.http import bind, find_token

COFFEE = "She takes her coffee without sugar"
NOISY = """
import ctypes, os, subprocess, sys
from recall_core.memory import Memory
opened = Memory.open
def open_noisily(*arguments, **named):
    print("noise of Python")
    os.write(1, b"noise of a library\\n")
    subprocess.run([sys.executable, "-c", "print('noise of a child')"])
    return opened(*arguments, **named)
Memory.open = open_noisily
"""


def test_what_one_client_stores_another_finds_at_once_and_private_stays_private(db_path):
    async def work():
        async with (
            connect_stdio(db_path, "--client", "cursor", name="cursor") as cursor,
            connect_stdio(db_path, "--client", "codex", name="codex") as codex,
            connect_stdio(db_path, "--client", "secretive", "--sharing", "private", name="secretive") as private,
        ):
            await cursor.store(COFFEE)
            assert await codex.found("coffee") == [COFFEE]
            assert await private.found("coffee") == []
            id = await private.store("my own coffee secret")
            assert await codex.found("coffee secret", mode="keyword") == [COFFEE]
            assert (await codex.call("get_memory", id=id)).error
            assert (await codex.call("delete_memory", id=id)).error
            assert (await codex.call("update_memory", id=id, text="x")).error
            assert (await codex.call("memory_stats")).data["memories"] == 1
            assert await private.found("coffee") == ["my own coffee secret"]

    run(work)


def test_a_server_starts_beside_the_settings_of_another_server_of_the_sdk(db_path, tmp_path):
    (tmp_path / ".env").write_bytes(b"FASTMCP_DEPENDENCIES=[\nNAME=\xff\n")
    server = Raw(db_path, cwd=tmp_path, FASTMCP_DEBUG="perhaps", FASTMCP_LOG_LEVEL="LOUD").begin()
    assert server.end()[0] == 0


def test_each_project_has_memories_of_its_own(db_path, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "src").mkdir(parents=True)
    (one / ".git").mkdir()
    other.mkdir()

    async def work():
        async with (
            connect_stdio(db_path, "--sharing", "project", "--project", str(one)) as first,
            connect_stdio(db_path, "--sharing", "project", "--project", str(one / "src")) as below,
            connect_stdio(db_path, "--sharing", "project", "--project", str(other)) as second,
        ):
            await first.store(COFFEE)
            assert await below.found("coffee") == [COFFEE]
            assert await second.found("coffee") == []

    run(work)


def test_a_private_scope_needs_a_name(db_path):
    done = run_command(db_path, "mcp", "--sharing", "private")
    assert (done.exit_code, "--client" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--sharing", "project", "--project", "no/such/folder"], "no folder"),
        (["--client", "two\nlines"], "name of a client"),
        (["--client", "x" * 65, "--sharing", "private"], "name of a client"),
    ],
)
def test_a_mistyped_option_begins_no_memory_of_its_own(db_path, arguments, advice):
    done = run_command(db_path, "mcp", *arguments)
    assert (done.exit_code, advice in done.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that is in use stays")
def test_a_server_starts_in_a_folder_that_is_gone(db_path, tmp_path):
    (tmp_path / "gone").mkdir()
    server = Raw(db_path, before="import os; os.rmdir(os.getcwd())\n", cwd=tmp_path / "gone").begin()
    assert server.end()[0] == 0


def test_the_file_is_opened_by_the_first_call_and_not_before(db_path):
    async def work():
        async with connect_stdio(db_path) as client:
            await client.session.list_tools()
            assert not db_path.exists()
            await client.store(COFFEE)
            assert db_path.exists()

    run(work)


def test_what_keeps_a_resource_or_a_prompt_from_being_made_is_told(db_path):
    db_path.mkdir()
    server = Raw(db_path).begin()
    for method, parameters in (
        ("resources/read", {"uri": "recall://memory/some-id"}),
        ("prompts/get", {"name": "recall", "arguments": {"question": "tea?"}}),
    ):
        answer = server.ask({"jsonrpc": "2.0", "id": 2, "method": method, "params": parameters})
        assert "it is a folder; give the path of a file" in answer["error"]["message"]
    server.end()


def test_a_file_of_another_model_is_an_error_with_two_ways_out(db_path):
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        memory.add("text")

    async def work():
        async with connect_stdio(db_path) as client:
            answer = await client.call("search_memory", query="text")
            assert answer.error
            assert "reembed" in answer.text

    run(work)


def test_nothing_but_the_protocol_goes_to_standard_output(db_path):
    server = Raw(db_path, before=NOISY).begin()
    assert not server.ask(calling("store_memory", text="茶"))["result"].get("isError")
    code, rest, errors = server.end()
    assert (rest, code) == (b"", 0)
    assert all(noise in errors for noise in (b"noise of Python", b"noise of a library", b"noise of a child"))


def test_a_child_can_not_read_what_the_client_sends(db_path):
    server = Raw(db_path, before=NOISY.replace("print('noise of a child')", "import sys; print(len(sys.stdin.read()))"))
    server.begin().ask(calling("store_memory", text="茶"))
    assert server.end()[2].splitlines()[-1] == b"0"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_whose_client_says_nothing(db_path, told):
    server = Raw(db_path).begin()
    server.ask(calling("store_memory", text="茶"))
    server.process.send_signal(told)
    assert server.process.wait(LIMIT) == 0
    server.end()


def test_a_server_whose_answers_nobody_reads_ends(db_path):
    server = Raw(db_path).begin()
    server.process.stdout.close()
    server.send(calling("memory_stats"))
    assert server.process.wait(LIMIT) != 0
    server.process.stdin.close()
    server.process.stderr.close()


def test_what_is_no_unicode_is_answered_and_stored_with_a_mark(db_path):
    server = Raw(db_path).begin()
    for sent, stored in (
        (b"caf\xe9 at five", "caf\ufffd at five"),
        (b"half \\ud83c of it", "half \ufffd of it"),
        (b"half \\uDC00 of it", "half \ufffd of it"),
        (b"all \\ud83c\\udf75 of it, half \\ud83c of it", "all \U0001f375 of it, half \ufffd of it"),
        (rb"no \\ud83c at all", r"no \ud83c at all"),
    ):
        line = json.dumps(calling("store_memory", text="TEXT")).encode().replace(b"TEXT", sent)
        assert server.ask(line)["result"]["structuredContent"]["memory"]["text"] == stored
    assert server.end()[0] == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a server for those that it lets nothing through to."""
    with serving(tmp_path_factory.mktemp("served") / "memory.db") as served:
        yield served


@pytest.mark.parametrize("header", [None, "Bearer wrong-token-of-someone", "Basic abc", "Bearer "])
def test_without_the_token_nothing_is_served(served, header):
    request = urllib.request.Request(served.url, json.dumps(HELLO).encode(), {"Content-Type": "application/json"})
    if header is not None:
        request.add_header("Authorization", header)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=LIMIT)
    with caught.value as error:
        assert (error.code, error.headers["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize(
    ("name", "value", "code"), [("Host", "evil.example", 421), ("Origin", "http://evil.example", 403)]
)
def test_a_page_in_a_browser_can_not_reach_it(served, name, value, code):
    headers = {"Authorization": f"Bearer {served.token}", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(served.url, json.dumps(HELLO).encode(), headers)
    request.add_header("Content-Type", "application/json")
    request.add_header(name, value)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=LIMIT)
    with caught.value as error:
        assert error.code == code


def test_http_and_stdio_serve_the_same_memory(db_path):
    async def work():
        with serving(db_path) as served:
            async with connect_http(served) as http, connect_stdio(db_path) as stdio:
                await http.store(COFFEE)
                assert await stdio.found("coffee") == [COFFEE]

    run(work)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_signal_ends_a_server_over_http_beside_an_open_stream(db_path):
    with serving(db_path) as served:
        headers = {"Authorization": f"Bearer {served.token}", "Accept": "text/event-stream"}
        with urllib.request.urlopen(urllib.request.Request(served.url, headers=headers), timeout=LIMIT):
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(LIMIT) == 0


def test_a_port_that_is_taken_is_an_error_with_advice():
    with bind(0) as taken, pytest.raises(StoreUnavailableError, match="give another --port"):
        bind(taken.getsockname()[1])


def test_a_new_token_is_kept_for_the_owner_alone_and_a_short_one_is_refused(tmp_path):
    file = tmp_path / "folder" / "token"
    token = find_token(None, file)
    assert len(token) > 30
    assert find_token(None, file) == token
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(InvalidInputError, match="at least 16"):
        find_token("short", file)


def test_servers_that_start_together_have_one_token(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        tokens = set(threads.map(lambda _: find_token(None, tmp_path / "token"), range(64)))
    assert len(tokens) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["token"]
