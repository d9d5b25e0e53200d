"""Secrets are taken out of texts, whatever stands around them, and nothing else is."""

from __future__ import annotations

import base64
import inspect
import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redaction_support import ASSIGNMENTS, INNOCENT, TOKENS_BY_NAME, pem
from support import ROOT

from recall_core.errors import InvalidInputError
from recall_core.redaction import choose_redaction, redact_json, redact_text

SURROUNDINGS = [
    "{}",
    "use {} now",
    "密钥是{}。",
    "({})",
    "key={}",
    "`{}`",
    "a\n{}\nb",
    "<b>{}</b>",
    "{},",
    "{}.",
    "x: {}",
]
pieces = st.one_of(
    st.sampled_from([token for _, token in TOKENS_BY_NAME.values()]),
    st.sampled_from([*ASSIGNMENTS, *INNOCENT]),
    st.sampled_from(['"', "'", "\\", "\\n", ":", "=", "@", "://", "-", "_", ".", "/", " ", "\n", "[redacted: ", "]"]),
    st.sampled_from(["password", "密码", "token", "sk-", "eyJ", "AKIA", "AIza", "bearer", pem()[:31]]),
    st.text(max_size=6),
)
texts = st.lists(pieces, max_size=8).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["password", "api_key", "note", "密码"]) | texts, inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("around", SURROUNDINGS)
@pytest.mark.parametrize(("name", "token"), TOKENS_BY_NAME.values(), ids=TOKENS_BY_NAME)
def test_a_token_is_named_and_taken_out_and_nothing_around_it(name, token, around):
    assert redact_text(around.format(token)) == around.format(f"[redacted: {name}]")


@pytest.mark.parametrize(("text", "redacted"), ASSIGNMENTS.items(), ids=ASSIGNMENTS)
def test_a_password_is_known_by_its_place(text, redacted):
    assert redact_text(text) == redacted


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_resembles_a_secret_stays(text):
    assert redact_text(text) == text


def test_an_aws_secret_is_known_by_the_key_in_front_of_it():
    pair = "AKIA" + "IOSFODNN7EXAMPLE,wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKY,eu"
    assert redact_text(pair) == "[redacted: aws key],[redacted: aws secret],eu"


@pytest.mark.parametrize("lines", [1, 3])
def test_a_private_key_that_is_cut_off_is_taken_out_as_far_as_it_goes(lines):
    cut = "\n".join(pem().splitlines()[: 1 + lines])
    assert redact_text(f"{cut}\nand then we deploy") == "[redacted: private key]\nand then we deploy"


def test_a_private_key_in_json_is_taken_out():
    text = json.dumps({"key": pem(), "a": 1})
    assert json.loads(redact_text(text)) == {"key": "[redacted: private key]", "a": 1}


def test_a_picture_in_base64_stays():
    blob = base64.b64encode(random.Random(3).randbytes(300_000)).decode()
    picture = f"![](data:image/png;base64,{blob})"
    assert redact_text(picture) == picture


@pytest.mark.parametrize("pattern", ["*.py", "docs/*.md"])
def test_hardly_anything_is_taken_out_of_code_and_prose_without_secrets(pattern):
    folder = ROOT / "recall_core" if pattern == "*.py" else ROOT
    paths = list(folder.rglob(pattern) if pattern == "*.py" else folder.glob(pattern))
    found = {path.name for path in paths if redact_text(path.read_text("utf-8")) != path.read_text("utf-8")}
    assert found <= {"safety.md"}  # shows what is taken out
    assert paths


@given(texts)
def test_redacting_twice_is_redacting_once(text):
    once = redact_text(text)
    assert redact_text(once) == once


@given(values)
def test_a_text_that_is_json_stays_json(value):
    redacted = json.loads(redact_text(json.dumps(value, ensure_ascii=False)))
    assert type(redacted) is type(value) or isinstance(redacted, str)


@given(values)
def test_a_value_keeps_its_shape(value):
    redacted = redact_json(value)
    assert redact_json(redacted) == redacted
    if isinstance(value, list | dict):
        assert len(redacted) == len(value)


def test_a_bare_card_number_in_json_becomes_a_string():
    assert json.loads(redact_text('{"card": 4111111111111111, "n": 7}')) == {"card": "[redacted: card number]", "n": 7}


def test_a_value_is_secret_by_its_key():
    value = {"password": "letmein", "tags": ["a"], "deep": [{"apiKey": "0123abcd4567"}], "token_count": 12, "pwd": 1234}
    assert redact_json(value) == {
        "password": "[redacted: password]",
        "tags": ["a"],
        "deep": [{"apiKey": "[redacted: api key]"}],
        "token_count": 12,
        "pwd": "[redacted: password]",
    }


def test_keys_that_become_alike_stay_apart():
    first, second = ("ghp" + "_" + letter * 36 for letter in "ab")
    assert redact_json({first: 1, second: 2}) == {"[redacted: github token]": 1, "[redacted: github token] 2": 2}


# Time: the seconds for a text of 1 MB are a bound that only a pattern that goes back over the text would break.

LENGTH = 500_000
HOSTILE = [
    "sk-", "eyJ", "eyJ-", "eyJaaaaaaaa.", "eyJ.eyJ.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n",
    "-", "password=", 'password="', "password='\\", "password:\n", "token is ", "://a:", "://", "a://b:c", "4111 ", "4",
    "4111-1111-", "bearer ", "bearer:", "AKIA" + "A" * 16 + " ", "AKIA", "12345678:AA", "[redacted: aws key]",
    "[redacted: ", "ghp_" + "aB3" * 12 + "-", "a", " ", "\n", "密码", "密码：", "\\", '"', "\\n", "--password ",
    " --token", "0" * 32 + ".", "glpat-", "gl", "SG.aaaaaaaaaaaaaaaaaaaa.", "Private-Lines: 1\n", "AIza", "basic ",
    '{"password":', "[", '"token": "', "xoxb-", "hooks.slack.com/services/T", "_key=", "a.b",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_longer_than_its_length_allows(unit):
    text = unit * (LENGTH // len(unit))
    started = time.process_time()
    redact_text(text)
    assert time.process_time() - started < 20  # twenty times what it takes, for a machine that is busy


# The choice


@pytest.mark.parametrize(
    ("setting", "wanted", "redacted"),
    [
        (False, None, False),
        (False, True, True),
        (False, False, False),
        (True, None, True),
        (True, False, False),
        (True, True, True),
    ],
)
def test_a_call_says_whether_it_redacts_and_else_the_settings_do(setting, wanted, redacted):
    assert choose_redaction(setting, wanted) is (redact_text if redacted else None)


@pytest.mark.parametrize("wanted", [None, True])
def test_a_function_takes_the_place_of_the_rules(wanted):
    redact = choose_redaction(lambda text: text.replace("Anna", "A."), wanted)
    assert redact is not None
    assert redact_json({"by": "Anna", "password": "letmein", "n": [1, "Anna"]}, redact) == {
        "by": "A.",
        "password": "letmein",
        "n": [1, "A."],
    }


def test_a_function_that_returns_no_text_is_an_error():
    redact = choose_redaction(lambda text: None, None)
    assert redact is not None
    with pytest.raises(InvalidInputError, match=r"Settings\.redact returned a NoneType"):
        redact("text")


@pytest.mark.parametrize("wanted", ["yes", 1, len])
def test_what_is_no_choice_is_refused(wanted):
    with pytest.raises(InvalidInputError, match="redact is True, False or None"):
        choose_redaction(False, wanted)


def test_the_support_file_holds_no_secret_that_a_scanner_would_report():
    source = inspect.getsource(__import__("redaction_support"))
    for name, token in TOKENS_BY_NAME.values():
        assert name == "card number" or token not in source
