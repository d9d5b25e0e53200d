"""CrossEncoder over tiny models: pairs, labels, lengths, batches, threads, and folders with something wrong."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from models import ALL, MEAN, TABLE, WORDS, build_cross_encoder, build_model, count_shared, write_json
from tokenizers import Tokenizer, processors

from recall_core import CrossEncoder, Reranker
from recall_core.embedding.tokens import PairTokens
from recall_core.errors import InvalidInputError, ModelNotFoundError, RerankError

QUERY = "the cat sat"
TEXTS = ["a dog ran", "the cat", "the cat sat on the mat", "red", "a cat"]
NAN = float("nan")


@pytest.fixture
def folder(tmp_path):
    return build_cross_encoder(tmp_path / "model")


def shared(query, texts):
    return [count_shared(query, text) for text in texts]


# Pairs


def test_a_cross_encoder_is_a_reranker(folder):
    assert isinstance(CrossEncoder(folder), Reranker)


def test_each_text_is_scored_against_the_query_in_the_order_given(folder):
    assert CrossEncoder(folder).score(QUERY, TEXTS) == shared(QUERY, TEXTS) == [0, 2, 4, 0, 1]


def test_a_model_with_token_types_is_told_which_side_a_token_is_of(tmp_path):
    assert CrossEncoder(build_cross_encoder(tmp_path, inputs=ALL)).score(QUERY, TEXTS) == shared(QUERY, TEXTS)


def test_a_pair_is_joined_by_the_template_of_the_tokenizer(folder):
    [ids], [types] = PairTokens(folder / "tokenizer.json", 64).encode("the cat", ["a dog ran"])
    assert [WORDS[number] for number in ids] == ["[CLS]", "the", "cat", "[SEP]", "a", "dog", "ran", "[SEP]"]
    assert types.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "pair",
    ["[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS] $A [SEP] [SEP] $B [SEP]", "$B $A:1"],
    ids=["bert", "roberta", "text first"],
)
def test_a_pair_is_encoded_as_the_tokenizer_itself_would(folder, pair):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    special = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair=pair, special_tokens=special)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids, types = PairTokens(folder / "tokenizer.json", 64).encode(QUERY, TEXTS)
    wanted = [tokenizer.encode(QUERY, text) for text in TEXTS]
    assert [row.tolist() for row in ids] == [pair.ids for pair in wanted]
    assert [row.tolist() for row in types] == [pair.type_ids for pair in wanted]


def test_chinese_is_scored(folder):
    assert CrossEncoder(folder).score("中 文", ["中 文", "文", "猫"]) == [2, 1, 0]


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_has_a_score(folder, text):
    assert CrossEncoder(folder).score(QUERY, [text, "cat"]) == [0, 1]


def test_an_empty_query_is_no_error(folder):
    assert CrossEncoder(folder).score("", ["cat", ""]) == [0, 0]


def test_a_special_token_spelled_in_a_query_is_text(folder):
    assert CrossEncoder(folder).score("the [SEP] cat", ["cat"]) == [1]


def test_half_a_surrogate_pair_is_no_error(folder):
    assert CrossEncoder(folder).score("cat \ud83d", ["\ud83d cat"]) == [1]


def test_no_texts_have_no_scores(folder):
    assert CrossEncoder(folder).score(QUERY, []) == []


def test_one_text_in_place_of_a_list_is_refused(folder):
    with pytest.raises(InvalidInputError, match="brackets"):
        CrossEncoder(folder).score(QUERY, "the cat")


def test_texts_without_a_single_token_are_an_error(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = None
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(RerankError, match="no token"):
        CrossEncoder(folder).score("", [""])


# Lengths


def test_a_long_text_is_cut_at_its_end(folder):
    encoder = CrossEncoder(folder, max_length=12)  # 3 special tokens, 2 of the query, 7 of the text
    assert encoder.score("the cat", ["dog " * 6 + "cat", "dog " * 7 + "cat"]) == [1, 0]


def test_a_query_is_kept_whole_beside_a_long_text(folder):
    encoder = CrossEncoder(folder, max_length=12)
    assert encoder.score("red blue mat cat", ["cat " + "dog " * 500]) == [1]


def test_a_query_that_is_too_long_leaves_half_of_the_room_to_the_text(folder):
    tokens = PairTokens(folder / "tokenizer.json", 13)
    [ids], _ = tokens.encode("cat " * 500, ["dog " * 500])
    assert [WORDS[number] for number in ids] == ["[CLS]", *["cat"] * 5, "[SEP]", *["dog"] * 5, "[SEP]"]


def test_a_text_of_a_megabyte_is_scored(folder):
    assert CrossEncoder(folder).score("cat " * 262_144, ["cat " + "dog " * 262_144, "dog"]) == [30, 0]


def test_texts_that_fill_the_model_exactly_are_not_cut(folder):
    pair = CrossEncoder(folder, max_length=8)
    assert pair.score("cat", ["dog dog dog cat", "dog dog dog dog cat"]) == [1, 0]


def test_the_length_follows_the_folder(folder):
    write_json(folder / "tokenizer_config.json", {"model_max_length": 12})
    assert CrossEncoder(folder).score("the cat", ["dog " * 7 + "cat"]) == [0]


def test_a_length_over_the_position_table_is_refused(folder):
    with pytest.raises(InvalidInputError, match="from 1 to 64"):
        CrossEncoder(folder, max_length=65)


def test_a_length_that_holds_no_pair_is_refused(folder):
    with pytest.raises(InvalidInputError, match="max_length is 4"):
        CrossEncoder(folder, max_length=4).score(QUERY, TEXTS)


# Labels


def test_the_score_of_two_labels_is_the_second_minus_the_first(tmp_path):
    encoder = CrossEncoder(build_cross_encoder(tmp_path, weights=(-1.0, 0.5)))
    assert encoder.score(QUERY, TEXTS) == [1.5 * count for count in shared(QUERY, TEXTS)]


def test_three_labels_are_refused(tmp_path):
    encoder = CrossEncoder(build_cross_encoder(tmp_path, weights=(1.0, 2.0, 3.0)))
    with pytest.raises(InvalidInputError, match=r"\(1, 3\) for 1 pairs.*one label"):
        encoder.score(QUERY, ["cat"])


def test_a_model_may_leave_out_the_axis_of_its_only_label(tmp_path):
    encoder = CrossEncoder(build_cross_encoder(tmp_path, squeezed=True))
    assert encoder.score(QUERY, TEXTS) == shared(QUERY, TEXTS)


def test_an_embedding_model_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="another kind"):
        CrossEncoder(build_model(tmp_path, pooling=MEAN)).score(QUERY, TEXTS)


def test_a_model_that_gives_nan_is_an_error(tmp_path):
    with pytest.raises(RerankError, match="nan for text 0 of 5"):
        CrossEncoder(build_cross_encoder(tmp_path, weights=(NAN,))).score(QUERY, TEXTS)


def test_a_model_that_fails_is_an_error(tmp_path):
    encoder = CrossEncoder(build_model(tmp_path, table=TABLE[:4]))  # the table has no row for a word
    with pytest.raises(RerankError, match="failed on a batch"):
        encoder.score(QUERY, TEXTS)


# Batches and threads


def test_a_text_has_its_score_whatever_else_is_in_the_call(folder):
    encoder = CrossEncoder(folder)
    words = WORDS[7:]
    texts = [" ".join(words[i % 12] for i in range(start, start + 1 + start % 17)) for start in range(300)]
    assert encoder.score(QUERY, texts) == [encoder.score(QUERY, [text])[0] for text in texts] == shared(QUERY, texts)


def test_threads_that_score_at_once_agree(folder):
    encoder = CrossEncoder(folder)
    start = threading.Barrier(8)

    def score():
        start.wait()
        return [encoder.score(QUERY, TEXTS) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        results = [future.result() for future in [pool.submit(score) for _ in range(8)]]
    assert all(scores == shared(QUERY, TEXTS) for result in results for scores in result)


# Folders


@pytest.mark.parametrize("file", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_the_usual_files_of_a_hub_folder_are_found(tmp_path, file):
    assert CrossEncoder(build_cross_encoder(tmp_path, file=file)).score(QUERY, ["cat"]) == [1]


def test_a_file_of_another_name_is_named_in_the_error_and_can_be_chosen(tmp_path):
    build_cross_encoder(tmp_path, file="onnx/model_O4.onnx")
    with pytest.raises(ModelNotFoundError, match=r"onnx/model_O4\.onnx: name one by file="):
        CrossEncoder(tmp_path)
    assert CrossEncoder(tmp_path, file="onnx/model_O4.onnx").score(QUERY, ["cat"]) == [1]


def test_a_path_without_a_folder_is_said_to_be_one(tmp_path):
    with pytest.raises(ModelNotFoundError, match="there is no folder"):
        CrossEncoder(tmp_path / "nothing")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.onnx"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(ModelNotFoundError, match=file):
        CrossEncoder(folder)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_truncated_file_is_an_error_on_first_use(folder, file):
    path = folder / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    encoder = CrossEncoder(folder)
    with pytest.raises(ModelNotFoundError, match=file):
        encoder.score(QUERY, TEXTS)


def test_a_model_with_an_unknown_input_is_refused_by_name(tmp_path):
    encoder = CrossEncoder(build_cross_encoder(tmp_path, inputs=("attention_mask", "pixel_values")))
    with pytest.raises(InvalidInputError, match=r"pixel_values.*text classification"):
        encoder.score(QUERY, TEXTS)
