"""Pulling a model: from a hub that redirects, cuts, lies and refuses, by several processes, and used offline after."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hub_server import COMMIT, Fault, preset_of, serve, tiny_files, tiny_reranker_files
from support import LIMIT

from recall_core import CrossEncoder, Memory, model_path
from recall_core.embedding import presets
from recall_core.embedding.download import Patience
from recall_core.embedding.pulling import pull
from recall_core.errors import InvalidInputError, ModelDownloadError, ModelNotFoundError

AT_ONCE = Patience(tries=3, first=0, longest=0)
MODEL = "onnx/model.onnx"


@pytest.fixture(autouse=True)
def models_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALL_MODELS", str(tmp_path / "models"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "models"


@pytest.fixture
def hub(tmp_path):
    with serve(tiny_files(tmp_path / "source")) as server:
        yield server


@pytest.fixture
def preset(hub, monkeypatch):
    preset = preset_of(hub.files)
    monkeypatch.setattr(presets, "PRESETS", (preset,))
    return preset


def get(preset, hub, **arguments):
    return pull(preset, endpoint=hub.endpoint, patience=AT_ONCE, **arguments)


def is_whole(folder: Path, hub) -> bool:
    found = {path.name for path in folder.iterdir()}
    files = {path.rpartition("/")[2]: content for path, content in hub.files.items()}
    return found == {*files, "config.json"} and all((folder / name).read_bytes() == files[name] for name in files)


def refuse_network(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


# What goes well


def test_a_pulled_model_is_whole_wherever_the_hub_redirects_to(preset, hub, models_folder):
    folder = get(preset, hub)
    assert folder == models_folder / f"tiny-{COMMIT[:8]}"
    assert is_whole(folder, hub)


def test_a_pulled_model_searches_by_its_name_without_a_network(preset, hub, monkeypatch, db_path):
    get(preset, hub)
    refuse_network(monkeypatch)
    with Memory.open(db_path, embedder="tiny") as memory:
        memory.add("the cat sat on a mat")
        memory.add("the dog ran")
        hits = memory.search("cat", mode="semantic")
        assert (len(hits), hits.degraded) == (2, None)
        [space] = memory.stats().spaces
    assert (space.dimensions, space.model.partition("@")[0]) == (6, "tiny")
    assert '32 ["query : ", ""]' in space.model


def test_the_folder_of_a_pulled_model_opens_like_its_name(preset, hub, db_path):
    folder = get(preset, hub)
    assert model_path("TINY") == folder
    with Memory.open(db_path, embedder="tiny") as memory:
        memory.add("cat")
    with Memory.open(db_path, embedder=model_path("tiny")) as memory:
        assert memory.count() == 1


def test_a_pulled_reranker_scores_by_its_name(tmp_path, monkeypatch):
    with serve(tiny_reranker_files(tmp_path / "source")) as hub:
        preset = preset_of(hub.files, kind="reranker", dimensions=None, pooling=None, query_prefix="")
        monkeypatch.setattr(presets, "PRESETS", (preset,))
        get(preset, hub)
    assert CrossEncoder("tiny").score("cat", ["the cat", "the dog"]) == [1, 0]
    with pytest.raises(InvalidInputError, match="tiny is no embedder but a reranker"):
        Memory.open(":memory:", embedder="tiny")


def test_a_second_pull_asks_for_nothing(preset, hub):
    get(preset, hub)
    asked = len(hub.requests)
    get(preset, hub)
    assert len(hub.requests) == asked


def test_a_damaged_file_is_fetched_again(preset, hub):
    folder = get(preset, hub)
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[::-1])
    get(preset, hub)
    assert is_whole(folder, hub)
    assert hub.asked(MODEL) == [None]


def test_progress_ends_at_the_size_of_the_download(preset, hub):
    hub.faults = [Fault(cut_after=500), Fault(ranges=False)]
    done = []
    get(preset, hub, advance=done.append)
    assert sum(done) == preset.size
    done.clear()
    get(preset, hub, advance=done.append)
    assert sum(done) == preset.size


# What is cut


def test_a_cut_connection_is_gone_on_with_where_it_was_cut(preset, hub):
    hub.faults = [Fault(cut_after=500), Fault(cut_after=300)]
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL) == [None, "bytes=500-", "bytes=800-"]


def test_progress_in_between_renews_the_patience(preset, hub):
    hub.faults = [Fault(cut_after=100) for _ in range(8)]
    assert is_whole(get(preset, hub), hub)


def test_a_connection_that_brings_nothing_ends_the_pull_and_the_next_one_goes_on(preset, hub):
    hub.faults = [Fault(cut_after=500), *(Fault(cut_after=0) for _ in range(2))]
    with pytest.raises(ModelDownloadError, match="3 times; what has arrived is kept"):
        get(preset, hub)
    with pytest.raises(ModelNotFoundError, match=r"is not complete .*recall models pull tiny"):
        model_path("tiny")
    hub.requests.clear()
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL) == ["bytes=500-"]


def test_a_server_without_ranges_sends_the_file_from_its_start(preset, hub):
    hub.faults = [Fault(cut_after=500), Fault(ranges=False)]
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL) == [None, "bytes=500-"]


def test_a_file_that_changed_in_between_is_not_pieced_together(preset, hub):
    other = hub.files[MODEL][::-1]
    hub.faults = [Fault(cut_after=500, content=other, etag='"old"'), Fault(etag='"new"')]
    assert is_whole(get(preset, hub), hub)


def test_another_entity_in_the_answer_to_a_range_is_noticed(preset, hub):
    hub.faults = [Fault(cut_after=500), Fault(headers={"ETag": '"two"'})]
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL) == [None, "bytes=500-", None]


def test_a_rest_that_does_not_fit_what_an_earlier_pull_left_is_fetched_as_a_whole(preset, hub, models_folder):
    folder = models_folder / preset.folder
    folder.mkdir(parents=True)
    (folder / "model.onnx.part").write_bytes(b"x" * 500)
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL) == ["bytes=500-", None]


@pytest.mark.parametrize("length", [10**6, None], ids=["too long", "whole"])
def test_a_part_file_needs_no_request_to_be_judged(preset, hub, models_folder, length):
    folder = models_folder / preset.folder
    folder.mkdir(parents=True)
    (folder / "model.onnx.part").write_bytes(hub.files[MODEL] if length is None else b"x" * length)
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL) == ([] if length is None else [None])


def test_a_server_that_is_busy_is_asked_again(preset, hub):
    hub.faults = [Fault(status=503), Fault(status=429, headers={"Retry-After": "7"})]
    assert is_whole(get(preset, hub), hub)


def test_a_range_that_the_server_does_not_have_starts_anew(preset, hub):
    hub.faults = [Fault(cut_after=500), Fault(status=416)]
    assert is_whole(get(preset, hub), hub)


def test_an_interrupt_keeps_what_arrived(preset, hub, models_folder):
    go_on = threading.Event()
    hub.faults = [Fault(wait=go_on)]

    def interrupt(size):
        if size and hub.half_sent.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(preset, hub, advance=interrupt)
    go_on.set()
    part = models_folder / preset.folder / "model.onnx.part"
    assert 0 < part.stat().st_size < preset.files[0].size
    hub.requests.clear()
    assert is_whole(get(preset, hub), hub)
    assert hub.asked(MODEL)[0].startswith("bytes=")


# What is refused


@pytest.mark.parametrize("announced", [True, False])
def test_a_web_page_with_status_200_is_no_model(preset, hub, announced, models_folder):
    hub.faults = [Fault(page=True, announced=announced)]
    with pytest.raises(ModelDownloadError, match="web page"):
        get(preset, hub)
    assert list((models_folder / preset.folder).iterdir()) == []


def test_a_web_page_does_not_cost_what_has_arrived(preset, hub, models_folder):
    hub.faults = [Fault(cut_after=500), Fault(page=True)]
    with pytest.raises(ModelDownloadError, match="web page"):
        get(preset, hub)
    assert (models_folder / preset.folder / "model.onnx.part").stat().st_size == 500


def test_a_file_with_another_hash_is_never_put_in_place(preset, hub, models_folder):
    hub.files[MODEL] = hub.files[MODEL][::-1]
    with pytest.raises(ModelDownloadError, match="SHA-256"):
        get(preset, hub)
    assert list((models_folder / preset.folder).iterdir()) == []
    assert hub.asked(MODEL) == [None]


@pytest.mark.parametrize("change", [lambda content: content + b"x", lambda content: content[:-1]])
def test_a_file_of_another_size_is_refused_by_its_length(preset, hub, change):
    hub.files[MODEL] = change(hub.files[MODEL])
    with pytest.raises(ModelDownloadError, match="another file"):
        get(preset, hub)


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "it is not there"), (403, "gated"), (401, "login"), (451, "answers 451")]
)
def test_a_refusal_is_told_at_once(preset, hub, status, reason):
    hub.faults = [Fault(status=status)]
    with pytest.raises(ModelDownloadError, match=reason):
        get(preset, hub)
    assert len(hub.requests) == 1


def test_a_hub_that_is_not_reachable_is_named(preset):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ModelDownloadError, match=endpoint):
            pull(preset, endpoint=endpoint, patience=AT_ONCE)


def test_an_endpoint_that_is_no_address_is_refused(preset):
    with pytest.raises(InvalidInputError, match="HF_ENDPOINT is 'hf-mirror'"):
        pull(preset, endpoint="hf-mirror")


# Disks and neighbours


def test_a_model_that_does_not_fit_on_the_disk_is_not_begun(preset, hub, monkeypatch):
    usage = shutil.disk_usage(Path.cwd())._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ModelDownloadError, match=r"1\.0 kB free"):
        get(preset, hub)
    assert hub.requests == []


def test_a_disk_that_runs_full_is_told_and_keeps_what_arrived(preset, hub):
    def fill(size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    hub.faults = [Fault(cut_after=500)]
    with pytest.raises(ModelDownloadError, match="is full; what has arrived is kept"):
        get(preset, hub, advance=lambda size: fill(size) if size == 500 else None)


@pytest.mark.skipif(sys.platform == "win32", reason="files can't be taken for folders there alike")
def test_a_place_that_can_not_be_written_is_named(preset, hub, models_folder):
    models_folder.write_text("a file")
    with pytest.raises(ModelDownloadError, match=r"models.* can't be written"):
        get(preset, hub)


PULL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from hub_server import preset_of
from recall_core.embedding import pulling
pulling.TIMEOUT = 600  # the hub waits for the test
files = {f"onnx/{name}": (Path(sys.argv[2]) / name).read_bytes() for name in ("model.onnx", "tokenizer.json")}
print(pulling.pull(preset_of(files), endpoint=sys.argv[1], tell=lambda message: print(message, flush=True)))
"""


def start_pull(hub, source: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", PULL, hub.endpoint, str(source), str(Path(__file__).parent)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_two_processes_download_a_model_once(preset, hub, tmp_path, models_folder):
    go_on = threading.Event()
    hub.faults = [Fault(wait=go_on)]
    first = start_pull(hub, tmp_path / "source")
    assert hub.half_sent.wait(LIMIT)
    second = start_pull(hub, tmp_path / "source")
    assert "another process is downloading tiny" in second.stdout.readline()
    go_on.set()
    outputs = [process.communicate(timeout=LIMIT)[0] for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [0, 0], outputs
    assert len(hub.requests) == 2
    assert is_whole(models_folder / preset.folder, hub)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_that_is_killed_blocks_no_other_and_its_part_is_used(preset, hub, tmp_path):
    go_on = threading.Event()
    hub.faults = [Fault(cut_after=700), Fault(wait=go_on)]
    killed = start_pull(hub, tmp_path / "source")
    assert hub.half_sent.wait(LIMIT)
    killed.kill()
    killed.communicate()
    go_on.set()
    hub.requests.clear()
    assert is_whole(get(preset, hub), hub)
    assert int(hub.asked(MODEL)[0].removeprefix("bytes=").rstrip("-")) >= 700


# What is known of the models


def test_a_model_that_was_not_pulled_tells_the_command(preset):
    for ask in (lambda: model_path("tiny"), lambda: Memory.open(":memory:", embedder="tiny")):
        with pytest.raises(ModelNotFoundError, match=r"not on this machine yet .*: recall models pull tiny"):
            ask()


def test_an_unknown_name_tells_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"no preset 'bge'.*bge-small-zh-v1\.5"):
        model_path("bge")


def test_a_folder_counts_before_a_preset_of_the_same_name(preset, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tmp_path / "source", "tiny")
    with Memory.open(":memory:", embedder="tiny") as memory:
        memory.add("cat")
        assert memory.stats().spaces[0].model.startswith("bert@")


@pytest.mark.parametrize("known", presets.PRESETS, ids=lambda known: known.name)
def test_a_preset_is_pinned_to_the_last_byte(known):
    assert len(known.commit) == 40
    assert set(known.commit) <= set("0123456789abcdef")
    for file in known.files:
        assert len(file.sha256) == 64
        assert set(file.sha256) <= set("0123456789abcdef")
        assert file.size > 0
    names = [file.name for file in known.files]
    assert {"model.onnx", "tokenizer.json"} <= set(names)
    assert len(set(names)) == len(names)
    assert (known.kind == "embedder") == (known.dimensions is not None) == (known.pooling is not None)


def test_each_commit_of_a_model_has_a_folder_of_its_own(preset, hub):
    get(preset, hub)
    newer = dataclasses.replace(preset, commit="f" * 40)
    assert newer.folder != preset.folder


def test_the_folder_of_a_model_tells_where_it_is_from(preset, hub):
    config = json.loads((get(preset, hub) / "config.json").read_text("utf-8"))
    assert config["source"] == f"owner/tiny@{COMMIT}"
    assert config["license"] == "MIT"
