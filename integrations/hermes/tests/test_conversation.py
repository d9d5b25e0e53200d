"""What is said is stored, once, and recalled in later turns."""

from __future__ import annotations

import threading
import time

import pytest
from agents import call, telegram

from recall_core import Memory
from recall_hermes import files, recalling
from recall_hermes.names import memory_file


def stored(home):
    with Memory.open(memory_file(home), embedder=None) as memory:
        return sorted(memory.records(limit=1000), key=lambda record: record.created_at)


class SlowEmbedder:
    """A model that embeds nothing while it may not, as a bundled one does for a while on a busy machine."""

    model_id, dimensions = "slow", 8

    def __init__(self):
        self.may = threading.Event()
        self.may.set()

    def embed_passages(self, texts):
        import numpy as np

        assert self.may.wait(120)
        return np.ones((len(texts), 8), np.float32)

    embed_queries = embed_passages


def test_while_the_model_is_slow_words_are_recalled_by_in_time(hosts, monkeypatch):
    model = SlowEmbedder()
    monkeypatch.setattr(files, "DEFAULT", model)
    manager = hosts.start()
    hosts.say(manager, "The code of the bicycle lock is 4711")
    assert manager.recall._opened.file.memory.flush() == 0
    while not manager.recall._opened.file.warm:
        manager.prefetch_all("Is it warm?")
        time.sleep(0.1)
    model.may.clear()
    monkeypatch.setattr(recalling, "BUDGET", 0.9)
    while not (found := manager.prefetch_all("What is the code of my bicycle lock?")):
        time.sleep(0.1)  # on a busy machine words, too, may not be in time
    assert "4711" in found
    assert call(manager, "status")["last recall"].endswith("(keyword)")
    model.may.set()


# The questions of hermes-agent 83593, 85524 and 33069: mixed scripts, whole sentences, one or two characters.
CHINESE = [
    ("给 watchdog 脚本加了自动重启，间隔五分钟", "watchdog"),
    ("我们的服务部署在阿里云杭州机房", "服务部署在哪个机房？"),
    ("小明最喜欢喝茶，不喝咖啡", "茶"),
    ("数据库备份由 nightly_dump.sh 在凌晨两点执行", "数据库什么时候备份"),
]


@pytest.mark.parametrize(("told", "asked"), CHINESE)
def test_what_was_told_in_chinese_is_recalled_in_the_next_session(hosts, told, asked):
    hosts.say(hosts.start("s1"), told, "好的，记住了。")
    hosts.say(hosts.managers[0], "今天天气怎么样", "晴天")
    assert told in hosts.start("s2").prefetch_all(asked)


def test_what_was_told_in_english_is_recalled_by_its_meaning(hosts):
    manager = hosts.start()
    hosts.say(manager, "I am allergic to peanuts, so never suggest satay.")
    assert "peanuts" in hosts.start("s2").prefetch_all("What am I allergic to?")


def test_what_has_nothing_to_do_with_a_message_is_not_recalled(hosts):
    manager = hosts.start()
    hosts.say(manager, "I am allergic to peanuts, so never suggest satay.")
    for message in ("ok", "谢谢", "/help", "", "Which railway lines cross the Alps?"):
        assert manager.prefetch_all(message) == ""


def test_what_is_recalled_is_capped(hosts):
    manager = hosts.start()
    for number in range(12):
        hosts.say(
            manager, f"Number {number} in the queue wants {'apples' if number % 2 else 'oranges'}. " + "Go on. " * 40
        )
    for number in range(4):
        hosts.say(manager, f"Deployment of service {number} goes to cluster {number}. " + "More about it. " * 40)
    block = hosts.start("s2").prefetch_all("Where does the deployment go, to which cluster?")
    assert 0 < len(block) <= 1500


def test_what_the_model_has_before_it_is_not_recalled_again(hosts):
    manager = hosts.start()
    hosts.say(manager, "The boiler stands in the cellar.")
    manager.on_turn_start(2, "Where is the boiler?")
    assert manager.prefetch_all("Where is the boiler?") == ""
    manager.on_session_switch("s1", parent_session_id="s1", reason="compression")
    assert "cellar" in manager.prefetch_all("Where is the boiler?")


def test_blocks_of_recalled_memories_are_neither_stored_nor_asked_with(hosts, home):
    manager = hosts.start()
    block = "<memory-context>\n[System note: The following is recalled]\nzebra77\n</memory-context>"
    hosts.say(manager, f"Where is my bicycle? {block}", f"In the shed. {block}")
    assert [record.text for record in stored(home)] == ["Where is my bicycle?", "In the shed."]
    hosts.say(manager, "The zebra77 project is cancelled", session="s9")
    assert "zebra77" not in hosts.start("s2").prefetch_all(f"Where is my bicycle? {block}")


def test_a_mere_mention_of_the_tag_takes_nothing_away(hosts, home):
    hosts.say(hosts.start(), "What does <memory-context> mean in Hermes?", "It marks what was recalled.")
    assert stored(home)[0].text == "What does  mean in Hermes?"


def test_secrets_are_taken_out_of_what_is_captured(hosts, home):
    hosts.say(hosts.start(), "deploy with postgres://anna:s3cret@db/shop")
    assert stored(home)[0].text == "deploy with postgres://anna:[redacted: password]@db/shop"


def test_calls_of_tools_are_no_part_of_a_turn_that_is_compressed(hosts, home):
    manager = hosts.start()
    tool_call = {"id": "x", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "You are Hermes."},
        {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted"},
        {"role": "user", "content": "Deploy it"},
        {"role": "assistant", "content": "I will", "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": "x", "content": "done 4711"},
        {"role": "assistant", "content": "It is deployed."},
        {"role": "user", "content": [{"type": "text", "text": "And the second one"}, {"type": "image_url"}]},
    ]
    hosts.say(manager, "Deploy it", "It is deployed.", messages=messages[:6])
    for _ in range(2):
        assert manager.on_pre_compress(messages) == ""
    assert [record.text for record in stored(home)] == ["Deploy it", "It is deployed.", "And the second one"]


def test_after_a_switch_turns_are_stored_under_the_new_session(hosts, home):
    manager = hosts.start("s1")
    hosts.say(manager, "first")
    manager.on_session_switch("s2", parent_session_id="s1", reset=True)
    manager.recall.sync_turn("second", "OK.")
    assert {record.session: record.text for record in stored(home) if record.role == "user"} == {
        "s1": "first",
        "s2": "second",
    }


@pytest.mark.parametrize("session", ["a line\nbreak", "x" * 600, "会话"])
def test_a_session_may_have_any_id(hosts, home, session):
    manager = hosts.start(session)
    hosts.say(manager, "I live in Ghent", session=session)
    assert "remembered" in call(manager, "remember", text="The wifi is called Blaumeise")
    assert len({record.session for record in stored(home)}) == 1
    assert call(manager, "status")["last failure"] is None


def test_a_turn_that_was_taken_back_is_forgotten_when_another_stands_in_its_place(hosts, home):
    manager = hosts.start()
    first, wrong, right = ({"role": "user", "content": text} for text in ("first", "wrong", "right"))
    hosts.say(manager, "first", "one", messages=[first])
    hosts.say(manager, "wrong", "two", messages=[first, wrong])
    manager.on_session_switch("s1", rewound=True)
    hosts.say(manager, "right", "three", messages=[first, right])
    assert sorted(record.text for record in stored(home)) == ["first", "one", "right", "three"]


def test_an_answer_that_was_given_before_stays_when_a_later_turn_with_it_is_taken_back(hosts, home):
    manager = hosts.start()
    for number, said in enumerate(["I live in Ghent", "My bicycle is red"], start=1):
        hosts.say(manager, said, "Noted.", messages=[{"role": "user", "content": "x"}] * number)
    manager.on_session_switch("s1", rewound=True)
    hosts.say(manager, "My bicycle is blue", "I see.", messages=[{"role": "user", "content": "x"}] * 2)
    assert [one.text for one in stored(home)] == ["I live in Ghent", "Noted.", "My bicycle is blue", "I see."]


def test_what_another_agent_found_is_stored_with_where_it_comes_from(hosts, home):
    manager = hosts.start()
    manager.on_delegation("Find the cheapest region", "It is Frankfurt.", child_session_id="child-1", role="leaf")
    assert manager.flush_pending(timeout=120)
    (record,) = stored(home)
    assert (record.kind, record.session) == ("delegation", "s1")
    assert record.metadata["child_session"] == "child-1"
    assert "Frankfurt" in hosts.start("s2").prefetch_all("Which region is the cheapest?")


@pytest.mark.parametrize(
    "given",
    [{"agent_context": "subagent"}, {"agent_context": "cron"}, {"agent_context": "flush"}, {"platform": "cron"}],
)
def test_nothing_is_stored_for_agents_in_the_background(hosts, home, given):
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_text("an entry")
    hosts.say(hosts.start(), "I live in Ghent")
    before = len(stored(home))
    manager = hosts.start("s2", **given)
    hosts.say(manager, "internal prompt", session="s2")
    manager.on_memory_write("add", "memory", "internal entry", metadata={})
    manager.on_pre_compress([{"role": "user", "content": "internal prompt"}])
    manager.on_delegation("internal", "result")
    assert "error" in call(manager, "remember", text="internal fact")
    assert "Ghent" in call(manager, "search", query="Where do I live?")["memories"]
    manager.shutdown_all()
    assert len(stored(home)) == before


def test_users_of_the_gateway_see_nothing_of_each_other(hosts):
    anna, bert = hosts.start("a", **telegram("1")), hosts.start("b", **telegram("2"))
    owner = hosts.start("c")
    for manager, word in ((anna, "apricot"), (bert, "blueberry"), (owner, "cherry")):
        hosts.say(manager, f"My favourite fruit is {word}")
        manager.on_memory_write("add", "user", f"favourite fruit: {word}", metadata={})
        assert manager.flush_pending(timeout=120)
    for manager, own in ((anna, "apricot"), (bert, "blueberry"), (owner, "cherry")):
        seen = manager.prefetch_all("What is my favourite fruit?") + str(
            call(manager, "search", query="favourite fruit")
        )
        assert {word for word in ("apricot", "blueberry", "cherry") if word in seen} == {own}
    id = call(anna, "remember", text="Anna has a red bicycle")["remembered"]
    assert "error" in call(bert, "forget", id=id)


def test_users_who_come_at_once_all_have_their_own_memory(hosts):
    hosts.start()
    at_once, found = threading.Barrier(6), {}

    def talk(user):
        at_once.wait(60)
        hosts.say(hosts.start(user, **telegram(user)), f"My favourite fruit is sort{user}", session=user)
        found[user] = hosts.start("n" + user, **telegram(user)).prefetch_all("What is my favourite fruit?")

    threads = [threading.Thread(target=talk, args=(str(number),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(6):
        assert [other for other in range(6) if f"sort{other}" in found[str(number)]] == [number]


def test_two_profiles_at_once_see_nothing_of_each_other(hosts, tmp_path):
    one, two = hosts.start("a"), hosts.start("b", home=tmp_path / "other", agent_identity="other")
    hosts.say(one, "My favourite fruit is apricot")
    hosts.say(two, "My favourite fruit is blueberry")
    assert "blueberry" not in one.prefetch_all("What is my favourite fruit?")
    assert "apricot" not in two.prefetch_all("What is my favourite fruit?")


def test_a_session_that_users_share_has_a_memory_of_its_own(hosts):
    alone = hosts.start("a", **telegram("1"))
    hosts.say(alone, "My salary is 4711 a month")
    group = {"chat_id": "g", "chat_type": "group", "thread_id": "t"}
    shared = hosts.start("b", **telegram("1", **group, gateway_session_key="agent:main:telegram:group:g:t"))
    own = hosts.start("c", **telegram("1", **group, gateway_session_key="agent:main:telegram:group:g:t:1"))
    assert shared.prefetch_all("What is my salary a month?") == ""
    assert "4711" in own.prefetch_all("What is my salary a month?")
