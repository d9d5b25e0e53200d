"""What keywords find without any model: identifiers, Chinese of any length and script, labels, names and stems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_core import Memory, Settings
from recall_core.text import analyse

NOISE = [
    "we met for lunch on Tuesday and talked about the weather",
    "今天天气很好，我们去公园散步",
    "version 2 was released in 2019 with 503 changes",
]


def open_memory(clock, **settings) -> Memory:
    memory = Memory.open(":memory:", embedder=None, settings=Settings(**settings), clock=clock)
    memory.add_many({"text": text} for text in NOISE)
    return memory


def found(memory, query, **arguments) -> list[str]:
    return [hit.record.text for hit in memory.search(query, **arguments)]


def finds(clock, text: str, query: str, **fields) -> bool:
    """Whether the query finds the text, and finds it first, among other memories."""
    with open_memory(clock) as memory:
        memory.add(text, **fields)
        return found(memory, query)[:1] == [text]


# Identifiers


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("released v1.2.3 yesterday", "v1.2.3"),
        ("发布了v1.2.3版本", "v1.2.3"),
        ("the fix is in a/b.py", "a/b.py"),
        ("改了a/b.py里的函数", "a/b.py"),
        ("the fix is in a/b.py", "b.py"),
        ("the parser is written in C++", "C++"),
        ("解析器用C++写的", "C++"),
        ("the client is written in C#", "C#"),
        ("the server said Error 503", "Error 503"),
        ("服务器返回 Error 503", "error 503 怎么办"),
        ("call get_user_by_id first", "get_user_by_id"),
        ("call get_user_by_id first", "user id"),
        ("先调用getUserById再返回", "getUserById"),
        ("call getUserById first", "get user by id"),
        ("call getUserById first", "get_user_by_id"),
        ("call HTTPServer.listen", "http server"),
        ("the ticket is POL-358", "POL-358"),
        ("the ticket is POL-358", "pol-358"),
        ("工单POL-358已经关闭", "POL-358是什么"),
        ("the host is 10.0.3.7", "10.0.3.7"),
        ("主机10.0.3.7连不上", "10.0.3.7"),
        ("set DATABASE_URL before", "database url"),
        ("run it with --no-cache", "--no-cache"),
        ("run it with --no-cache", "no-cache"),
        ("mail bob@example.com about it", "bob@example.com"),
        ("it costs 1,000 yuan", "1000 yuan"),
        ("see https://example.com/docs/setup", "example.com/docs/setup"),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(clock, text, query):
    assert finds(clock, text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [("a book about C", "C++"), ("a book about C++", "C#"), ("it listens on 10.0.3.70", "10.0.3.7")],
)
def test_an_identifier_is_not_taken_for_another_one(clock, text, query):
    with open_memory(clock) as memory:
        memory.add("this has C++, C# and 10.0.3.7 in it", id="exact")
        memory.add(text, id="other")
        assert memory.search(query)[0].record.id == "exact"


# Words


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("we deployed it on Friday", "deploying"),
        ("we deploy every Friday", "deployment"),
        ("she was running late", "runs"),
        ("the cats are asleep", "cat"),
        ("Alice's flat is in Berlin", "Alice flat"),
        ("THE SERVER IS DOWN", "server"),
        ("the naïve café", "naive cafe"),
        ("ｄｏｃｋｅｒ　ｃｏｍｐｏｓｅ", "docker"),
        ("docker compose", "ＤＯＣＫＥＲ"),
        ("端口是８０８０", "8080"),
        ("I don't like tea", "dont like tea"),
    ],
)
def test_a_word_is_found_in_other_forms(clock, text, query):
    assert finds(clock, text, query)


@pytest.mark.parametrize(
    "query",
    [
        "What is the name of the cat?",
        "who has a cat and how is it called",
        "Could you please tell me something about our cat",
        "do you remember where the cats are",
    ],
)
def test_function_words_around_a_word_do_not_hide_it(clock, query):
    assert finds(clock, "our cat Biscuit sleeps on the sofa", query)


def test_a_question_of_function_words_alone_finds_what_has_them(clock):
    assert finds(clock, "to be or not to be", "to be or not to be?")


# Chinese


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我喜欢喝茶", "茶"),
        ("我喜欢喝茶", "喝茶"),
        ("我喜欢喝茶", "谁喜欢喝什么茶？"),
        ("表妹的电话是 13812345678", "表妹的电话是多少？"),
        ("表妹的电话是 13812345678", "13812345678"),
        ("項目部署統一使用容器", "项目部署"),
        ("项目部署统一使用容器", "項目部署"),
        ("資料庫設定寫在環境變數裡", "环境变量 资料库"),
        ("妈妈的生日是十月十二日", "媽媽生日是哪一天"),
        ("她在復旦大學讀書", "复旦大学"),
        ("Docker部署服务", "docker"),
        ("微信号：ｗｘ＿２０２４", "wx_2024"),
        ("我的狗叫旺财", "狗叫什么名字"),
        ("会议改到下周三", "会议什么时候开"),
    ],
)
def test_chinese_is_found_by_characters_words_and_questions_in_both_scripts(clock, text, query):
    assert finds(clock, text, query)


CORPUS = [
    "表妹的电话是 13812345678，她住在杭州西湖区",
    "项目部署统一使用容器，不再使用虚拟机",
    "爸爸对花生过敏，做菜的时候要注意",
    "公司班车早上七点四十从北门出发",
    "健身房的会员卡明年三月到期",
    "数据库密码存放在环境变量里，不写进仓库",
    "奶奶喜欢听越剧，每周六去戏院",
    "护照号码写在保险箱的笔记本上",
    "接口超时时间统一设为三十秒",
    "豆豆上周打了疫苗，医生建议多喝水",
]
TEMPLATES = [
    "{}",
    "{}是什么？",
    "请问{}怎么样",
    "你还记得{}吗",
    "关于{}，你知道多少呢？",
    "我想知道谁的{}",
    "麻烦帮我查一下{}的情况",
    "{}在哪里？什么时候？",
]
WORDS = sorted(
    {(word, number) for number, text in enumerate(CORPUS) for word in analyse(text).words if len(word) == 2}
    - {("时候", 2)}  # says nothing about a subject
)


@pytest.fixture(scope="module")
def chinese():
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add_many({"text": text} for text in CORPUS)
        yield memory


@given(st.sampled_from(WORDS), st.sampled_from(TEMPLATES))
def test_a_question_that_shares_a_word_of_two_characters_with_a_memory_finds_it(chinese, word, template):
    word, number = word
    assert CORPUS[number] in found(chinese, template.format(word), limit=100)


@given(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from(["{}和{}有什么关系？", "为什么{}不是{}呢"]))
def test_a_question_with_two_words_finds_both_memories(chinese, one, other, template):
    hits = found(chinese, template.format(one[0], other[0]), limit=100)
    assert {CORPUS[one[1]], CORPUS[other[1]]} <= set(hits)


@pytest.mark.parametrize("query", ["请问时候怎么样", "时候好不好"])
def test_a_shared_function_word_is_better_than_nothing(chinese, query):
    assert found(chinese, query) == [CORPUS[2]]


CHATTER = (
    "今天早晨空气清新阳光明媚同事们结伴骑车穿过田野沿途欣赏油菜花海拍摄许多照片"
    "晚上围坐篝火弹琴唱歌讲述童年趣事直到深夜才返回旅馆休息真是难忘又愉快的旅行经历"
)


@pytest.mark.parametrize("word", ["班车", "疫苗", "花生"])
def test_a_word_at_the_end_of_a_long_message_is_found(chinese, word):
    assert found(chinese, f"{CHATTER}，另外帮我查一下{word}")


# Words that hold a character of Chinese grammar are words all the same.
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("下次还去那家酒吧", "酒吧几点关门"),
        ("他从小学吉他", "吉他弹得好听吗"),
        ("目的地是苏州", "旅行目的有哪些"),
        ("下个月去喀什出差", "喀什有好吃的餐厅吗"),
        ("他买的个股都跌了", "哪些个股值得关注"),
        ("布什毕业于耶鲁", "布什当过几年总统"),
        ("山上住着一位喇嘛", "喇嘛庙的门票贵吗"),
        ("每天吃一片维他命", "维他命什么牌子好"),
        ("晚饭点了什锦炒面", "什锦好吃吗"),
        ("院子里的知了叫了一夜", "知了能活多长时间"),
    ],
)
def test_a_word_with_a_particle_inside_is_a_word(clock, text, query):
    assert finds(clock, text, query)


# Labels and names


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({"tags": ["deployment-rules"]}, "deployment rules"),
        ({"tags": ["部署规范"]}, "部署的规范是什么"),
        ({"metadata": {"project": "Apollo"}}, "apollo"),
        ({"metadata": {"people": ["Grace Hopper", "Alan"]}}, "hopper"),
        ({"metadata": {"项目": "登月计划"}}, "登月"),
        ({"source": "handbook.pdf"}, "handbook.pdf"),
        ({"source": "员工手册"}, "手册里写了什么"),
        ({"role": "Caroline"}, "What did Caroline say"),
        ({"role": "王工"}, "王工说过什么"),
    ],
)
def test_tags_metadata_source_and_speaker_are_found(clock, fields, query):
    assert finds(clock, "the text says nothing of the kind", query, **fields)


def test_a_generic_role_is_no_word_of_the_text(clock):
    with open_memory(clock) as memory:
        memory.add("nothing of the kind", role="assistant")
        assert found(memory, "assistant") == []


def test_what_the_text_says_counts_more_than_what_a_tag_says(clock):
    with open_memory(clock) as memory:
        memory.add("nothing of the kind here", tags=["docker"])
        memory.add("we use docker in all places")
        assert found(memory, "docker")[0] == "we use docker in all places"


def test_changed_tags_and_texts_are_found_as_they_now_are(clock):
    with open_memory(clock) as memory:
        record = memory.add("about docker", tags=["rules"])
        memory.update(record.id, text="about podman", tags=["habits"])
        assert [found(memory, query) for query in ("docker", "rules")] == [[], []]
        assert [found(memory, query) for query in ("podman", "habits")] == [["about podman"]] * 2


# The user dictionary


def test_a_dictionary_word_is_a_term_of_its_own(clock):
    texts = ["云原生网关已经上线", "网关的云图是原生的"]
    with open_memory(clock, dictionary=("云原生网关",)) as memory:
        memory.add_many({"text": text} for text in texts)
        with_word = {hit.record.text: hit.why.bm25 for hit in memory.search("云原生网关")}
    with open_memory(clock) as memory:
        memory.add_many({"text": text} for text in texts)
        without = {hit.record.text: hit.why.bm25 for hit in memory.search("云原生网关")}
    assert next(iter(with_word)) == texts[0]
    assert with_word[texts[0]] / with_word[texts[1]] > without[texts[0]] / without[texts[1]]


@pytest.mark.parametrize("word", ["豆包二号", "Project X", "R&D", "C位", "我们的它"])
def test_a_dictionary_word_is_found_whatever_it_is_made_of(clock, word):
    with open_memory(clock, dictionary=(word,)) as memory:
        memory.add(f"昨天讨论了{word}，没有结论")
        assert found(memory, f"{word}怎么样了？")[:1] == [f"昨天讨论了{word}，没有结论"]
