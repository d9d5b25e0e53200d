"""`recall models`: list, pull, path and export on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli_support import run
from hub_server import Fault, preset_of, serve, tiny_files
from models import MEAN, build_model

from recall_core.embedding import presets


@pytest.fixture(autouse=True)
def models_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RECALL_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with serve(tiny_files(tmp_path / "source")) as server:
        monkeypatch.setattr(presets, "PRESETS", (preset_of(server.files),))
        monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
        yield server


def test_every_preset_is_listed_with_its_size_and_licence(db_path):
    result = run(db_path, "models", "list")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [preset.name for preset in presets.PRESETS]
    assert lines[0].split()[1:] == ["embedder", "Chinese", "512", "512", "24", "MB", "MIT", "-"]


def test_the_list_has_a_json_shape(db_path):
    found = json.loads(run(db_path, "models", "list", "--json").stdout)["models"]
    e5 = next(model for model in found if model["name"] == "multilingual-e5-small")
    assert (e5["pooling"], e5["query_prefix"], e5["passage_prefix"]) == ("mean", "query: ", "passage: ")
    assert e5["path"] is None


def test_pulling_prints_the_folder_that_path_prints_too(db_path, hub, models_folder):
    pulled = run(db_path, "models", "pull", "tiny")
    assert (pulled.exit_code, pulled.stderr) == (0, "")
    assert pulled.stdout.strip().startswith(str(models_folder))
    assert run(db_path, "models", "path", "tiny").stdout == pulled.stdout
    assert run(db_path, "models", "list").stdout.rstrip().endswith("pulled")


def test_a_pulled_model_is_an_option_of_add_and_search(db_path, hub):
    run(db_path, "models", "pull", "tiny", "--quiet")
    assert run(db_path, "add", "the cat sat", "--model", "tiny").exit_code == 0
    assert "the cat sat" in run(db_path, "search", "cat", "--model", "tiny", "--mode", "semantic").stdout


def test_a_pull_that_fails_says_so_and_leaves_the_model_incomplete(db_path, hub):
    hub.faults = [Fault(page=True)]
    result = run(db_path, "models", "pull", "tiny")
    assert result.exit_code == 3
    assert "web page" in result.stderr
    assert run(db_path, "models", "list").stdout.rstrip().endswith("incomplete")


def test_a_model_that_was_not_pulled_has_no_path(db_path):
    result = run(db_path, "models", "path", "bge-m3")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "recall models pull bge-m3" in result.stderr


def test_an_unknown_model_is_a_wrong_call(db_path):
    result = run(db_path, "models", "pull", "bge")
    assert result.exit_code == 2
    assert "bge-small-zh-v1.5" in result.stderr


def test_an_endpoint_can_be_named(db_path, hub):
    pulled = run(db_path, "models", "pull", "tiny", "--endpoint", hub.endpoint, HF_ENDPOINT="http://127.0.0.1:1")
    assert pulled.exit_code == 0


def test_models_alone_shows_what_there_is(db_path):
    result = run(db_path, "models")
    assert (result.exit_code, "pull" in result.stdout) == (0, True)


def test_exporting_without_its_libraries_is_explained(db_path, tmp_path, monkeypatch):
    monkeypatch.setattr("recall_core.embedding.export.find_spec", lambda name: None)
    checkpoint = build_model(tmp_path / "checkpoint", pooling=MEAN)
    (checkpoint / "model.safetensors").touch()
    result = run(db_path, "models", "export", str(checkpoint), str(tmp_path / "out"))
    assert result.exit_code == 2
    assert 'pip install "dualrecall[export]"' in result.stderr


def test_listing_loads_neither_a_runtime_nor_a_network_client(tmp_path):
    code = (
        "import sys; from recall_core.cli.app import app; app.main(['models', 'list'], standalone_mode=False); "
        "print([name for name in ('httpx', 'numpy', 'onnxruntime', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
