"""What the `recall` command writes where: terminals, pipes, locales, and how it ends when it is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import COFFEE, DEPLOY, run, run_process, store
from hypothesis import given
from hypothesis import strategies as st

from recall_core import NewRecord
from recall_core.cli.excerpts import count_cells, cut_excerpt
from recall_core.cli.output import one_line, visible

ESCAPE = "\x1b"
DRAWN = re.compile("[\u2500-\u257f\x1b]")
HEAVY = ["numpy", "onnxruntime", "tokenizers", "rich"]


# terminals and pipes


def test_in_a_pipe_nothing_is_drawn(db_path):
    store(db_path, NewRecord(text=DEPLOY, scope="user/42"), COFFEE)
    for arguments in (["search", "docker", "--mode", "keyword", "--why"], ["list"], ["stats"]):
        printed = run_process(db_path, *arguments).stdout.decode("utf-8")
        assert printed
        assert not DRAWN.search(printed)


def test_in_a_pipe_an_id_is_on_one_line_however_narrow_it_is(db_path):
    long_id = "x" * 300
    store(db_path, NewRecord(text=DEPLOY, id=long_id))
    for arguments in (["search", "docker", "--mode", "keyword"], ["list"], ["get", long_id]):
        assert long_id in run(db_path, *arguments, COLUMNS="20").stdout


def test_a_terminal_shows_what_was_searched_for(db_path):
    store(db_path, DEPLOY)
    shown = run(db_path, "search", "docker 部署", "--mode", "keyword", FORCE_COLOR="1", TERM="xterm").stdout
    assert re.findall(r"\x1b\[1;33m(.+?)\x1b\[0m", shown) == ["部署", "Docker"]


def test_a_terminal_without_colours_gets_none(db_path):
    store(db_path, DEPLOY)
    shown = run(db_path, "search", "docker", "--mode", "keyword", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm").stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown)


def test_a_terminal_shows_the_list_as_a_table(db_path):
    (one,) = store(db_path, DEPLOY * 20)
    heading, line = run(db_path, "list", FORCE_COLOR="1", TERM="xterm").stdout.splitlines()
    assert re.sub(r"\x1b\[[0-9;]*m", "", heading).split() == ["id", "made", "of", "text"]
    assert line.startswith(one)
    assert line.rstrip().endswith("…")


@pytest.mark.parametrize("command", [["search", "docker", "--mode", "keyword"], ["list"], ["context", "docker"]])
def test_a_stored_text_can_not_steer_the_terminal(db_path, command):
    store(db_path, NewRecord(text=f"docker {ESCAPE}[2J\x9b1m\u202e", source="\u202egnp"))
    for forced in (None, "1"):
        shown = run(db_path, *command, FORCE_COLOR=forced, TERM="xterm").stdout
        assert not set("\x9b\u202e") & set(shown)
        assert "[2J" not in shown.replace("\ufffd[2J", "")


def test_json_has_no_control_characters(db_path):
    (one,) = store(db_path, f"docker {ESCAPE}[2J\x9b1m\x85")
    printed = run(db_path, "get", one, "--json").stdout
    assert json.loads(printed)["records"][0]["text"] == f"docker {ESCAPE}[2J\x9b1m\x85"
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", printed)


# locales


@pytest.mark.parametrize(
    "locale",
    [{"LANG": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "POSIX"}],
    ids=["C", "C without UTF-8 mode", "POSIX"],
)
def test_chinese_is_printed_in_any_locale(db_path, locale):
    store(db_path, DEPLOY)
    done = run_process(db_path, "search", "docker", "--mode", "keyword", **locale)
    assert DEPLOY in done.stdout.decode("utf-8")


def test_what_the_wanted_encoding_lacks_is_escaped(db_path):
    store(db_path, "docker 茶")
    done = run_process(db_path, "search", "docker", "--mode", "keyword", PYTHONIOENCODING="ascii")
    assert b"    docker \\u8336\n" in done.stdout.replace(b"\r\n", b"\n")


@pytest.mark.skipif(os.name != "posix", reason="arguments are bytes on POSIX only")
def test_arguments_that_are_no_utf8_are_taken(db_path):
    store(db_path, DEPLOY)
    done = run_process(db_path, "search", b"docker \xff", "--mode", "keyword", "--json")
    assert json.loads(done.stdout)["query"] == "docker \udcff"
    stored = run_process(db_path, "add", b"docker \xff", "--json")
    assert json.loads(stored.stdout)["text"] == "docker \ufffd"


# how it ends


@pytest.mark.parametrize("command", ["list", "deleted", "similar", "topics"])
def test_a_number_of_lines_below_none_is_refused(db_path, command):
    store(db_path, "one")
    assert run(db_path, command, "-n", "-1").exit_code == 2


@pytest.mark.skipif(os.name != "posix", reason="what a closed pipe does elsewhere differs")
@pytest.mark.parametrize("arguments", [["list", "-n", "9999"], ["list", "-n", "9999", "--json"]])
def test_a_reader_that_goes_away_is_no_failure_worth_a_word(db_path, arguments):
    store(db_path, *(f"{number} {DEPLOY}" for number in range(1000)))
    command = [sys.executable, "-c", "from recall_core.cli import main; main()", *arguments, "--db", str(db_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.skipif(os.name != "posix", reason="signals differ elsewhere")
def test_an_interrupted_command_ends_with_130_and_without_a_traceback(db_path):
    command = [sys.executable, "-c", "from recall_core.cli import main; print('up', flush=True); main()"]
    with subprocess.Popen(
        [*command, "import", "-", "--db", str(db_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"broken\n")
        process.stdin.flush()
        assert process.stderr.readline().startswith(b"recall: line 1: ")  # it is now waiting for more
        process.send_signal(signal.SIGINT)
        ended = process.stderr.read()
    assert process.returncode == 130
    assert b"stopped early: imported 0, skipped 0, failed 1" in ended
    assert b"Traceback" not in ended


def test_an_interrupted_command_says_that_it_was_stopped(db_path, monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("recall_core.cli.adding.read_text", interrupt)
    result = run(db_path, "add")
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (130, "", "recall: stopped")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_can_not_be_written_is_a_failure(db_path):
    store(db_path, DEPLOY)
    command = [sys.executable, "-c", "from recall_core.cli import main; main()", "list", "--db", str(db_path)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith(b"recall: ")
    assert done.stderr.count(b"\n") == 1


# speed


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["search", "docker", "--mode", "keyword"], ["numpy"]),  # it scores by numpy
        (["list"], []),
        (["stats"], []),
        (["--help"], []),
    ],
    ids=lambda words: words[0] if words else "",
)
def test_what_needs_no_vectors_loads_nothing_heavy(db_path, arguments, loaded):
    store(db_path, DEPLOY)
    code = "import sys\nfrom recall_core.cli import main\n"
    code += f"try: main()\nfinally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    environment = os.environ | {"RECALL_DB": str(db_path)}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr.decode().strip()) == (0, str(loaded))


# excerpts


def test_a_short_text_is_not_cut():
    assert cut_excerpt("a short text", [(2, 7)], 12) == ("a short text", [(2, 7)])


def test_an_excerpt_surrounds_the_first_found_term():
    text = "word " * 100 + "docker " + "word " * 100
    excerpt, ((start, end),) = cut_excerpt(text, [(500, 506)], 60)
    assert excerpt[start:end] == "docker"
    assert excerpt.startswith("…word ")
    assert excerpt.endswith("…")
    assert start < 20


def test_an_excerpt_without_a_found_term_is_the_beginning():
    assert cut_excerpt("ab " * 100, [], 11) == ("ab ab ab …", [])


@given(st.text(alphabet="ab 中\u0301", max_size=80), st.integers(6, 60), st.data())
def test_an_excerpt_fits_and_its_spans_mark_what_they_marked_before(text, cells, data):
    place = st.integers(0, max(0, len(text) - 1))
    starts = sorted(data.draw(st.sets(place, max_size=4))) if text else []
    spans = [(start, start + 1) for start in starts]
    excerpt, kept = cut_excerpt(text, spans, cells)
    assert count_cells(excerpt) <= cells
    assert excerpt.strip("…") in text
    marked = [text[start:end] for start, end in spans]
    shown = [excerpt[start:end] for start, end in kept]
    assert any(marked[at : at + len(shown)] == shown for at in range(len(marked) + 1))
    if spans:
        assert shown
        assert shown[0] == marked[0]


@given(st.text())
def test_a_line_has_no_line_ends_and_steers_nothing(text):
    line = one_line(text)
    assert len((line + "x").splitlines()) == 1
    assert visible(line) == line


def test_a_command_that_is_mistyped_is_told_which_was_perhaps_meant(db_path):
    assert "No such command 'serach' (did you mean search?); see recall --help" in run(db_path, "serach", "x").stderr
    result = run(db_path, "zzz")
    assert (result.exit_code, result.stderr) == (2, "recall: No such command 'zzz'; see recall --help\n")


def test_an_option_in_front_of_the_command_is_told_where_it_belongs(db_path):
    result = run(db_path, "--db", "memory.db", "list")
    assert (result.exit_code, "'--db'; those of a command stand behind its name; see" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", [("list",), ("forget", "--everything", "--yes"), ("add", "text")], ids=str)
def test_an_empty_path_does_not_mean_the_default_memory(db_path, command):
    result = run(db_path, *command, "--db", "")
    assert (result.exit_code, "--db is empty" in result.stderr) == (2, True)
