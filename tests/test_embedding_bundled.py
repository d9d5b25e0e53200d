"""The model that ships with the package: complete, useful in Chinese and English, the same to the bit in any batch."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

from recall_core.embedding import BUNDLED_FOLDER, DEFAULT, load_bundled, resolve_embedder
from recall_core.embedding.choice import BUNDLED_SIZES, open_complete
from recall_core.errors import ModelNotFoundError
from recall_core.models import Embedder, LanguageMeans, TokenWindow

WORDS = ["数据库", "部署", "the server", "配置", "error 503", "docker", "硬盘", "full", "我喜欢", "喝茶", "memory", ""]


def make_texts(count, longest):
    rng = random.Random(3)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, longest))) for _ in range(count)]


def center(vectors, mean):
    centered = vectors - mean
    return centered / np.linalg.norm(centered, axis=1, keepdims=True)


# Files


def test_the_files_are_those_that_the_configuration_names():
    declared = json.loads((BUNDLED_FOLDER / "config.json").read_bytes())["sha256"]
    found = {name: hashlib.sha256((BUNDLED_FOLDER / name).read_bytes()).hexdigest() for name in declared}
    assert found == declared


def test_the_sizes_that_are_checked_are_those_of_the_files():
    assert {name: (BUNDLED_FOLDER / name).stat().st_size for name in BUNDLED_SIZES} == BUNDLED_SIZES


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "lang_means.npz"])
def test_a_truncated_file_of_the_package_is_noticed_before_it_is_loaded(tmp_path, file):
    folder = shutil.copytree(BUNDLED_FOLDER, tmp_path / "model")
    (folder / file).unlink()
    (folder / file).write_bytes((BUNDLED_FOLDER / file).read_bytes()[:1000])
    with pytest.raises(ModelNotFoundError, match=rf"{file} has 1000 bytes.*Reinstall"):
        open_complete(folder, BUNDLED_SIZES)


def test_the_default_is_the_bundled_model_and_shared():
    assert resolve_embedder(DEFAULT) is load_bundled()


def test_the_bundled_model_offers_all_capabilities():
    embedder = load_bundled()
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, TokenWindow)
    assert isinstance(embedder, LanguageMeans)
    assert (embedder.dimensions, embedder.window) == (384, 507)


def test_the_identity_names_model_pooling_and_prefixes():
    # Files hold this text. When it changes, they have to be embedded anew.
    assert load_bundled().model_id == 'e5-small-zhen-int8@77cb19d62751 mean 512 ["query: ", "passage: "]'


# Vectors


def test_a_copy_is_the_same_model_and_a_pickled_one_loads_it_again():
    model = load_bundled()
    before = model.embed_queries(["hello"])
    assert copy.deepcopy(model) is model
    sent = pickle.dumps(model)
    assert len(sent) < 100_000
    assert np.array_equal(pickle.loads(sent).embed_queries(["hello"]), before)


def test_a_single_text_and_a_batch_give_the_same_bits():
    embedder = load_bundled()
    texts = make_texts(60, 40)
    batch = embedder.embed_passages(texts)
    alone = np.concatenate([embedder.embed_passages([text]) for text in texts])
    np.testing.assert_array_equal(batch, alone)


def test_the_order_of_the_texts_is_kept():
    embedder = load_bundled()
    texts = make_texts(12, 30)
    np.testing.assert_array_equal(embedder.embed_queries(texts[::-1]), embedder.embed_queries(texts)[::-1])


def test_queries_and_passages_have_prefixes_of_their_own():
    embedder = load_bundled()
    assert (embedder.embed_queries(["部署"]) != embedder.embed_passages(["部署"])).any()


@pytest.mark.parametrize(
    ("query", "wanted", "others"),
    [
        (
            "怎么传文件到服务器",
            "用 SFTP 上传，配置在 deploy.yaml 里",
            ["我喜欢喝绿茶", "昨天的会议改到周五", "数据库密码每月换一次"],
        ),
        ("硬盘不够了", "磁盘空间已满，请清理日志", ["午饭吃了面条", "用户登录需要验证码", "他住在杭州"]),
        (
            "what does he like to drink",
            "His favourite beverage is green tea",
            ["The build failed on Friday", "Disk usage is at 90 percent", "The meeting was moved"],
        ),
        ("how to roll out the service", "部署服务：先打标签，再运行 make deploy", ["我妹妹养了一只猫", "周末去爬山"]),
    ],
    ids=["zh", "zh-short", "en", "en-zh"],
)
def test_a_paraphrase_is_nearer_than_the_unrelated(query, wanted, others):
    embedder = load_bundled()
    languages = ["zh" if any(ch > "一" for ch in text) else "en" for text in (query, wanted, *others)]
    means = [embedder.language_mean(language, "passage") for language in languages[1:]]
    passages = center(embedder.embed_passages([wanted, *others]), np.stack(means))
    [vector] = center(embedder.embed_queries([query]), embedder.language_mean(languages[0], "query"))
    scores = passages @ vector
    assert scores[0] > scores[1:].max() + 0.05


def test_language_means_are_vectors_of_the_model():
    means = [load_bundled().language_mean(language, kind) for language in ("zh", "en") for kind in ("passage", "query")]
    assert all(mean.shape == (384,) and mean.dtype == np.float32 for mean in means)


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "👍" * 3000, "'; DROP TABLE--", "</s><pad>"])
def test_any_text_has_a_vector(text):
    [vector] = load_bundled().embed_queries([text])
    np.testing.assert_allclose(np.linalg.norm(vector), 1, rtol=1e-5)


# Tokens


def test_token_spans_cover_all_that_is_not_white_space():
    text = "数据库配置在 config/settings.yaml，第 2 行；Ｆｕｌｌ-width ① é 👍🏽 日本語。"
    covered = {place for start, end in load_bundled().token_spans(text) for place in range(start, end)}
    assert {text[place] for place in set(range(len(text))) - covered} <= {" "}


def test_token_spans_are_in_order_of_their_start():
    spans = load_bundled().token_spans("磁盘 full，请清理 the logs 👍🏽 now")
    assert spans == sorted(spans, key=lambda span: span[0])


def test_a_text_that_fills_the_window_is_embedded_whole():
    embedder = load_bundled()
    text = " ".join(["tea"] * embedder.window)
    assert len(embedder.token_spans(text)) == embedder.window
    assert (embedder.embed_passages([text]) != embedder.embed_passages([text[:-4]])).any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_program_that_forks_after_embedding_hears_no_warning():
    # Old versions of tokenizers print one to stdout once their thread pool has been used; stdout belongs to the host.
    code = (
        "import os\n"
        "from recall_core.embedding import load_bundled\n"
        "load_bundled().embed_passages(['部署', 'deploy the service'])\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (run.stdout, run.stderr) == ("", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_child_forked_after_embedding_embeds_the_same_and_its_interpreter_ends():
    code = (
        "import os, sys\n"
        "from recall_core.embedding import load_bundled\n"
        "texts = ['部署', 'deploy the service ' * 40] * 4\n"
        "ours = load_bundled().embed_passages(texts)\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(7 if (load_bundled().embed_passages(texts) == ours).all() else 1)\n"
        "other = os.fork()\n"
        "if other == 0: sys.exit(7)\n"
        "codes = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in (child, other)]\n"
        "print(codes)\n"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout.strip() == "[7, 7]"
