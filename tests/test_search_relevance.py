"""Relevance with the real model: the same text is nearly 1, what has nothing to do with it stays below 0.3."""

from __future__ import annotations

import pytest

from recall_core import Memory, Settings
from recall_core.embedding import DEFAULT, load_bundled

MEMORIES = {
    "zh": """
    项目部署统一使用 Docker Compose，不再使用虚拟机
    我每天早上都要喝一杯绿茶
    数据库密码存放在环境变量里，不写进仓库
    猫咪豆豆上周打了疫苗
    周末打算去爬香山看红叶
    妈妈的生日是十月十二日
    会议室预订要提前一天在系统里登记
    服务器磁盘超过百分之八十就清理日志
    小李负责支付模块的重构
    年假还剩下五天，计划春节后休
    新来的设计师喜欢极简风格
    客厅的空调遥控器坏了
    孩子的钢琴课改到星期四下午
    接口超时时间统一设为三十秒
    健身房的会员卡明年三月到期
    产品经理要求首页改成蓝色
    护照号码写在保险箱的笔记本上
    每次上线之前必须跑一遍回归测试
    爸爸对花生过敏，做菜要注意
    公司班车早上七点四十从北门出发
    那家川菜馆的水煮鱼特别好吃
    缓存使用 Redis，过期时间一小时
    奶奶喜欢听越剧
    车子该做保养了，里程四万公里
    代码评审至少要两个人同意
    邻居家的狗叫得很晚
    论文的截稿日期推迟了两周
    手机套餐换成了每月五十九元的
    窗帘选了浅灰色的亚麻布
    实习生的导师是王工
    """,
    "en": """
    We deploy everything with Docker Compose and no longer use virtual machines
    I drink a cup of green tea every morning
    The database password lives in an environment variable, never in the repository
    My cat Biscuit got her vaccination last week
    On Saturday we plan to hike up the coastal trail
    Mom's birthday is on October twelfth
    Meeting rooms must be booked a day ahead
    Clean the logs when the server disk is over eighty percent full
    Lisa is in charge of rewriting the payment module
    Five vacation days are left this year
    The new designer prefers a minimalist style
    The remote control of the air conditioner is broken
    Piano lessons moved to Thursday afternoon
    The API timeout is thirty seconds everywhere
    The gym membership expires next March
    The product manager wants a blue landing page
    The passport number is in the notebook in the safe
    Run the regression tests before every release
    Dad is allergic to peanuts
    The company shuttle leaves the north gate at seven forty
    That Sichuan restaurant has wonderful boiled fish
    Cache entries in Redis expire after an hour
    Grandma loves listening to opera
    The car needs service at forty thousand kilometers
    A code review needs two approvals
    The neighbour's dog barks late at night
    The paper deadline was moved by two weeks
    The phone plan costs fifty-nine a month now
    The curtains are light grey linen
    The intern's mentor is Mr. Wang
    """,
}
UNRELATED = {
    "zh": ["量子力学中的不确定性原理是什么", "法国大革命爆发的原因", "如何证明勾股定理", "古罗马有哪些皇帝"],
    "en": [
        "What is the uncertainty principle in quantum mechanics",
        "What caused the French Revolution",
        "How is the Pythagorean theorem proved",
        "Who were the emperors of ancient Rome",
    ],
}
SIZES = [1, 5, 30]
EVERYDAY = {  # notes, and a question that each answers
    "zh": {
        "姐姐下个月要搬到成都工作": "姐姐要去哪个城市",
        "牙医预约在下周二上午十点": "什么时候去看牙",
        "我不吃香菜和葱": "有什么菜是我不吃的",
        "车子该做保养了，里程四万公里": "汽车什么时候要保养",
        "家里无线网的密码是 sunny2021": "wifi密码是多少",
        "结婚纪念日是六月十八号": "我们哪天结的婚",
        "女儿最怕打雷": "孩子害怕什么",
        "健身房的会员卡明年三月到期": "健身卡什么时候到期",
        "最近在看《三体》第二部": "我最近在读什么书",
        "房租每个月五号交，三千八": "每月租金是多少",
        "小区停车位在地下二层 B-107": "我的车停在哪里",
        "每周三晚上有西班牙语网课": "我在学哪门外语",
        "爸爸对花生过敏，做菜要注意": "给爸爸做饭有什么忌口",
        "新买的耳机是索尼的降噪款": "我的耳机是什么牌子",
        "公司班车早上七点四十从北门出发": "班车几点开",
        "冰箱里的牛奶后天过期": "牛奶还能放多久",
        "表弟考上了浙江大学": "表弟在哪里读大学",
        "信用卡的还款日是每月二十号": "信用卡哪天还款",
        "圣诞节想去北海道滑雪": "冬天打算去哪里旅游",
        "叔叔送了一套紫砂茶具": "茶具是谁送的",
    },
    "en": {
        "My sister moves to Denver next month for work": "Which city is my sister moving to",
        "The dentist appointment is next Tuesday at ten": "When do I see the dentist",
        "I can't stand cilantro or raw onions": "Which foods do I dislike",
        "The car needs service at forty thousand kilometers": "When is the car due for maintenance",
        "The wifi password at home is sunny2021": "What is the wireless password",
        "Our wedding anniversary is June eighteenth": "When did we get married",
        "Our daughter is scared of thunderstorms": "What is my daughter afraid of",
        "The gym membership expires next March": "When does my gym membership run out",
        "I am reading the second book of the Three-Body trilogy": "Which book am I reading",
        "Rent is due on the fifth, eighteen hundred dollars": "How much is the rent",
        "My parking spot is B-107 on the second basement level": "Where is my car parked",
        "I have an online Spanish class on Wednesday evenings": "Which language am I learning",
        "Dad is allergic to peanuts": "What should I avoid when cooking for dad",
        "My new headphones are Sony, noise cancelling": "What brand are my headphones",
        "The company shuttle leaves the north gate at seven forty": "What time does the shuttle leave",
        "The milk in the fridge goes bad on Friday": "How long is the milk still good",
        "Cousin Ben got into Stanford": "Where does my cousin study",
        "The credit card bill is due on the twentieth": "When is the credit card payment due",
        "We want to go skiing in Hokkaido at Christmas": "Where do we travel in winter",
        "Uncle Joe gave us a porcelain tea set": "Who gave us the tea set",
    },
}
OTHER = {  # everyday questions that none of them answers
    "zh": ["如何种植番茄", "怎么给自行车补胎", "怎样训练鹦鹉说话", "海水为什么是咸的", "蜜蜂怎么酿蜜", "怎样写一首诗"],
    "en": [
        "How do I grow tomatoes",
        "How do I fix a flat bicycle tire",
        "How do you teach a parrot to talk",
        "Why is sea water salty",
        "How do bees make honey",
        "How do you write a poem",
    ],
}
SCRIPTS = {
    "ru": (
        ["Моя сестра живёт в Денвере", "Я пью кофе каждое утро", "Ключи лежат в ящике стола"],
        "Квантовая механика и неопределённость",
    ),
    "ja": (
        ["妹は京都に住んでいます", "毎朝コーヒーを飲みます", "鍵は机の引き出しにあります"],
        "フランス革命の原因は何ですか",
    ),
}


class Plain:
    """The bundled model without what it knows of languages."""

    model_id = "plain"
    dimensions = 384

    def embed_passages(self, texts):
        return load_bundled().embed_passages(texts)

    def embed_queries(self, texts):
        return load_bundled().embed_queries(texts)


def lines(language: str, size: int) -> list[str]:
    return [line.strip() for line in MEMORIES[language].strip().splitlines()][:size]


@pytest.fixture(scope="module")
def memories():
    """A memory of each size and language."""
    opened = {}
    for language in MEMORIES:
        for size in SIZES:
            opened[language, size] = memory = Memory.open(":memory:")
            memory.add_many({"text": text} for text in lines(language, size))
    yield opened
    for memory in opened.values():
        memory.close()


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", MEMORIES)
def test_the_same_text_is_nearly_1(memories, language, size, mode):
    for text in lines(language, size)[::7]:
        best = memories[language, size].search(text, mode=mode)[0]
        assert best.record.text == text
        assert best.relevance > 0.95


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", MEMORIES)
def test_the_unrelated_is_below_a_third(memories, language, size, mode):
    for query in UNRELATED[language]:
        assert all(hit.relevance < 0.3 for hit in memories[language, size].search(query, mode=mode)), query


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
@pytest.mark.parametrize(("language", "query"), [("zh", "恐龙为什么会灭绝"), ("en", "How do I bake a chocolate cake")])
def test_an_everyday_question_without_an_answer_is_below_a_third(memories, language, query, mode):
    """The nearest memories: a cat's vaccination, and a cup of tea."""
    assert all(hit.relevance < 0.3 for hit in memories[language, 5].search(query, mode=mode))


@pytest.mark.parametrize("size", [3, 5, 10, 20])
@pytest.mark.parametrize("language", EVERYDAY)
def test_the_gate_of_a_small_memory_tells_answerable_questions_from_others(language, size):
    notes = list(EVERYDAY[language].items())[:size]
    with Memory.open(":memory:") as memory:
        memory.add_many({"text": note} for note, _ in notes)
        gate = Settings().context_relevance
        answered = [memory.search(question)[0].relevance >= gate for _, question in notes]
        others = [memory.search(question)[0].relevance < gate for question in [*OTHER[language], *UNRELATED[language]]]
    assert sum(answered) >= 0.85 * len(answered)
    assert sum(others) >= 0.9 * len(others)


def test_a_gate_lets_nothing_unrelated_into_a_context(memories):
    block = memories["en", 5].context("Who were the emperors of ancient Rome")
    assert not [line for line in block.splitlines() if line.startswith("> ")]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
@pytest.mark.parametrize("copies", [2, 20])
def test_copies_of_a_text_are_as_relevant_as_one(copies, mode):
    with Memory.open(":memory:") as memory:
        memory.add_many({"text": "My sister lives in Denver"} for _ in range(copies))
        assert all(hit.relevance > 0.9 for hit in memory.search("My sister lives in Denver", mode=mode))
        assert all(hit.relevance < 0.3 for hit in memory.search(UNRELATED["en"][0], mode=mode))


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_a_long_text_is_relevant_by_what_stands_in_it(mode):
    text = " ".join(f"{line}." for line in lines("en", 20))
    with Memory.open(":memory:") as memory:
        memory.add(text)
        assert memory.search(text, mode=mode)[0].relevance > 0.9
        if mode != "semantic":  # one vector for twenty sentences says little of each
            assert memory.search("When does the gym membership expire", mode=mode)[0].relevance > 0.3
        for query in UNRELATED["en"]:
            assert all(hit.relevance < 0.3 for hit in memory.search(query, mode=mode)), query


@pytest.mark.parametrize("embedder", [DEFAULT, None])
@pytest.mark.parametrize("language", SCRIPTS)
def test_other_scripts_are_judged_too(language, embedder):
    texts, unrelated = SCRIPTS[language]
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.add_many({"text": text} for text in texts)
        assert all(memory.search(text)[0].relevance > 0.9 for text in texts)
        assert all(hit.relevance < 0.3 for hit in memory.search(unrelated))


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_one_common_word_proves_little(memories, mode):
    query = "did every emperor of ancient Rome conquer a province in Africa"
    assert all(hit.relevance < 0.3 for hit in memories["en", 30].search(query, mode=mode))


@pytest.mark.parametrize("language", MEMORIES)
def test_without_a_model_words_alone_are_judged(language):
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add_many({"text": text} for text in lines(language, 30))
        assert all(memory.search(text)[0].relevance > 0.9 for text in lines(language, 30)[::7])
        for query in UNRELATED[language]:
            assert all(hit.relevance < 0.3 for hit in memory.search(query)), query


@pytest.mark.parametrize("size", [2, 5, 30])
def test_a_model_without_typical_vectors_is_judged_by_the_same_scale(size):
    with Memory.open(":memory:", embedder=Plain()) as memory:
        memory.add_many({"text": text} for text in lines("en", size))
        assert memory.search(lines("en", size)[0])[0].relevance > 0.95
        for query in UNRELATED["en"]:
            assert all(hit.relevance < 0.3 for hit in memory.search(query)), query


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_a_relevance_does_not_depend_on_the_limit(memories, mode):
    query = "how is the payment module deployed"
    every = [hit.relevance for hit in memories["en", 30].search(query, mode=mode, limit=100)]
    for limit in (1, 3):
        hits = memories["en", 30].search(query, mode=mode, limit=limit)
        assert [hit.relevance for hit in hits] == every[:limit]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("language", "other"), [("zh", "en"), ("en", "zh")])
def test_the_unrelated_in_the_other_language_is_below_a_third(memories, language, other, size):
    for query in UNRELATED[other]:
        assert all(hit.relevance < 0.3 for hit in memories[language, size].search(query)), query


@pytest.mark.parametrize("fusion", ["rrf", "plain"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", MEMORIES)
def test_other_fusions_judge_alike(memories, language, size, fusion):
    memory = memories[language, size]
    for text in lines(language, size)[::7]:
        assert memory.search(text, fusion=fusion)[0].relevance > 0.95
    for query in UNRELATED[language]:
        assert all(hit.relevance < 0.3 for hit in memory.search(query, fusion=fusion)), query


def test_an_answer_by_its_context_does_not_hide_what_is_relevant_by_itself(memories):
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add_many({"text": text} for text in lines("zh", 30))
        fact = memory.add("at dawn we deploy all of the rockets, says the old handbook of the moon")
        query = "when do we deploy rockets to the moon base"
        alone = memory.search(query)[0]
        session = memory.session("talk")
        for turn, text in enumerate([query, "嗯", query]):
            session.append("user", text, turn=turn)
        among = {hit.record.id: hit.relevance for hit in memory.search(query)}
        assert alone.relevance > 0.9
        assert among[fact.id] > 0.5


@pytest.mark.parametrize("language", MEMORIES)
@pytest.mark.parametrize("size", [5, 30])
def test_what_is_unrelated_stays_so_in_a_session(language, size):
    with Memory.open(":memory:") as memory:
        session = memory.session("talk")
        for turn, text in enumerate(lines(language, size)):
            session.append("user", text, turn=turn)
        for query in UNRELATED[language]:
            assert all(hit.relevance < 0.3 for hit in memory.search(query)), query


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("怎么部署服务", "项目部署统一使用 Docker Compose，不再使用虚拟机"),
        ("磁盘快满了怎么办", "服务器磁盘超过百分之八十就清理日志"),
        ("母亲哪天过生日", "妈妈的生日是十月十二日"),
        ("谁在改付款的代码", "小李负责支付模块的重构"),
    ],
)
def test_the_related_is_above_it(memories, query, expected):
    best = memories["zh", 30].search(query)[0]
    assert best.record.text == expected
    assert best.relevance > 0.3


def test_a_question_in_the_other_language_finds_the_memory(memories):
    best = memories["zh", 30].search("The project is deployed with containers, not with virtual machines")[0]
    assert best.record.text.startswith("项目部署")
    assert memories["en", 30].search("爸爸对花生过敏")[0].record.text == "Dad is allergic to peanuts"


def test_identical_text_beats_what_only_shares_words(memories):
    memory = memories["en", 30]
    hits = memory.search("The gym membership expires next March")
    assert hits[0].relevance > 0.95
    assert all(hit.relevance < hits[0].relevance for hit in hits[1:])
