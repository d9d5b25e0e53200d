import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall_core.text.latin import MAX_TERM
from recall_core.text.segment import TOKEN_CHARACTERS, TOKENIZER, analyse, segmenter_version
from recall_core.text.segmenter import load_python_segmenter, load_rust_segmenter, load_segmenter

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs", "Cc", "Cf", "Mn", "Mc", "So", "Zs", "Lo"]),
        st.sampled_from(list("aBc1_-./+#'’\"@: \0中文数據,")),
    )
)

CHINESE = """
项目部署统一使用 Docker Compose，不再使用虚拟机。
表妹的电话是 13812345678，住在杭州市西湖区。
昨天晚上我和同事去南京路吃了火锅，味道非常好。
数据库连接池配置过小导致服务不可用，需要重启网关。
他把会议改到下周三下午三点，请大家准时参加。
内存泄漏排查：用快照对比，发现缓存字典没有上限。
小明硕士毕业于中国科学院计算所，后在日本京都大学深造。
我喜欢喝茶，尤其是西湖龙井，不喜欢咖啡。
老板要求周报先写结论，再列数据，不超过一页纸。
磁盘空间不足时先清理七天前的日志文件。
这个函数返回两个日期之间的天数，单位是天。
她每天早上六点起床跑步，坚持了整整三年。
北京故宫博物院收藏了大量明清时期的文物。
请不要在生产环境里直接修改数据表结构。
结婚的和尚未结婚的都来参加了这次活动。
工信处女干事每月经过下属科室都要亲口交代技术性器件的安装工作。
研究生命的起源是一项长期而艰巨的工作。
南京市长江大桥已经通车五十多年了。
乒乓球拍卖完了，明天再去买一副新的。
奶奶在乡下养了十几只鸡和一条大黄狗。
用户登录失败超过五次，账号将被锁定半小时。
我们决定采用微服务架构，把支付模块拆分出来。
飞机晚点了两个小时，行李也没有及时送到。
孩子的生日是四月十号，要提前订好蛋糕。
爷爷今年七十八岁，身体还很硬朗，每天打太极拳。
李伟国是我的叔叔，教育背景是硕士，职业是会计师。
金融科技精英论坛的主要内容是探讨行业发展趋势。
缓存命中率从百分之六十提升到百分之九十五。
旧版接口将于年底下线，请尽快迁移到新版本。
她对花生过敏，点菜的时候一定要提醒服务员。
合同编号写错了，需要法务部门重新盖章确认。
上海迪士尼乐园周末人山人海，排队排了两个小时。
机器学习模型的训练需要大量标注数据和显卡资源。
由于网络抖动，消息队列积压了十几万条消息。
冰箱里的牛奶过期了，记得下班顺路买一盒。
林黛玉和贾宝玉是曹雪芹笔下的经典人物。
吴亦凡演唱会取消后，粉丝纷纷要求退票。
薛之谦、邓紫棋和蔡徐坤都参加了这档综艺节目。
长春市长春节致辞，祝全市人民新春快乐。
凭证轮换周期为九十天，由安全团队统一负责。
代码评审至少需要两个人同意才能合并到主干。
他说的确实在理，大家纷纷点头表示赞同。
深圳湾口岸二十四小时通关，过境非常方便。
阿里云服务器到期时间是明年二月，别忘了续费。
魑魅魍魉四个字怎么读，我总是记不住。
鱼香肉丝和宫保鸡丁都是地道的川菜。
蓝瘦香菇是几年前的网络流行语。
把大象放进冰箱总共需要几步。
"""


@pytest.fixture
def index():
    connection = apsw.Connection(":memory:")
    connection.execute(f'CREATE VIRTUAL TABLE f USING fts5(latin, grams, words, tokenize="{TOKENIZER}")')
    yield connection
    connection.close()


def columns(text, words=()):
    terms = analyse(text, words)
    return " ".join(terms.latin), " ".join(terms.grams), " ".join(terms.words)


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("The connections", ["the", "connect"]),
        ("Alice's dog", ["alic", "dog"]),
        ("Alice’s dog", ["alic", "dog"]),
        ("don't", ["dont"]),
        ("O'Brien", ["obrien", "o", "brien"]),
        ("naïve Müller", ["naiv", "muller"]),
        ("Привет Ёлка", ["привет", "ёлка"]),
        ("नमस्ते", ["नमस्ते"]),
        ("IDs APIs", ["id", "api"]),
        ("v1.2.3", ["v1.2.3", "v1", "2", "3", "v", "1"]),
        ("get_user_by_id", ["get_user_by_id", "get", "user", "by", "id"]),
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("POL-358", ["pol-358", "pol", "358"]),
        ("10.0.3.7", ["10.0.3.7", "10", "0", "3", "7"]),
        ("user@example.com", ["user@example.com", "user", "example.com", "exampl", "com"]),
        ("--force -v", ["--force", "forc", "-v", "v"]),
        (".net", [".net", "net"]),
        ("C++ c# F#", ["c++", "c#", "f#"]),
        ("C++17", ["c++17", "c++", "17"]),
        ("18+", ["18+", "18"]),
        ("1,000 $2,500.75", ["1000", "$2500.75", "2500.75", "2500", "75"]),
        ("/etc/hosts", ["/etc/hosts", "etc/hosts", "etc", "host"]),
        ("std::vector a->b", ["std::vector", "std", "vector", "a->b", "a", "b"]),
        ("🚀👍🏽❤️", ["🚀", "👍", "❤"]),
        ("... --- !? ___ （）。", []),
        ("3f786850e387550fdab836ed7e6dc881de23001b", ["3f786850e387550fdab836ed7e6dc881de23001b"]),
    ],
)
def test_words_and_identifiers_become_terms(text, latin):
    assert list(analyse(text).latin) == latin


def test_a_file_in_a_path_is_whole_too():
    assert {"src/auth/user_service.py", "user_service.py", "user_service", "servic"} <= set(
        analyse("src/auth/user_service.py").latin
    )


def test_chinese_becomes_characters_and_overlapping_pairs():
    assert sorted(analyse("數據庫").grams) == sorted(["数", "据", "库", "数据", "据库"])


def test_pairs_do_not_cross_other_text():
    assert "用很" not in analyse("用Docker很好").grams


def test_kana_and_hangul_are_paired_too():
    assert {"タワ", "한국"} <= set(analyse("東京タワー 한국어").grams)


def test_dictionary_words_have_two_characters_or_more():
    assert analyse("我喜欢喝茶，数据库").words == ("喜欢", "喝茶", "数据", "据库", "数据库")


def test_duplicates_are_kept():
    assert analyse("go go 数据 数据").latin == ("go", "go")
    assert analyse("go go 数据 数据").grams.count("数据") == 2


def test_user_words_are_found_inside_and_across_other_words():
    words = frozenset(["表妹的电话", "妹的", "Docker Compose", "it's", "C++", "數據"])
    found = analyse("表妹的电话 docker  compose C++17 it’s 数据库", words).words
    assert {"表妹的电话", "妹的", "docker_compose", "c++", "it_s", "数据"} <= set(found)


def test_user_words_of_letters_match_whole_words_only():
    assert analyse("maintain the AI", ["ai"]).words == ("ai",)
    assert analyse("用AI写", ["ai"]).words == ("ai",)


def test_a_user_word_that_the_segmenter_finds_too_counts_once():
    assert analyse("数据库", ["数据库"]).words.count("数据库") == 1


def test_empty_user_words_are_ignored():
    assert analyse("abc", ["", " ", "\u200b"]).words == ()


@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=4))
@example("ﷺ ½ \u2028x", ["a b", "\ud800"])
def test_no_text_makes_an_unsafe_term(text, words):
    terms = analyse(text, words)
    for term in (*terms.latin, *terms.grams, *terms.words):
        assert 0 < len(term) <= MAX_TERM
        assert not re.search(r"[\s\x00-\x1f\x7f-\x9f'\"A-Z\ud800-\udfff]", term), term
        assert all(c.isalnum() or c in TOKEN_CHARACTERS for c in term if c.isascii())


@given(ANY_TEXT.filter(lambda text: analyse(text) != analyse("")))
def test_fts5_reads_back_the_terms_as_they_were_written(text):
    connection = apsw.Connection(":memory:")
    connection.execute(f'CREATE VIRTUAL TABLE f USING fts5(latin, grams, words, tokenize="{TOKENIZER}")')
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'row')")
    connection.execute("INSERT INTO f VALUES (?, ?, ?)", columns(text))
    terms = analyse(text)
    assert {term for (term,) in connection.execute("SELECT term FROM v")} == {*terms.latin, *terms.grams, *terms.words}
    connection.close()


def test_long_terms_keep_their_beginning_and_a_digest():
    one, other = analyse("x" * 5000).latin[0], analyse("x" * 5001).latin[0]
    assert one == analyse("X" * 5000).latin[0]
    assert one != other
    assert len(one) == MAX_TERM
    assert one.startswith("x" * 47 + "~")


@pytest.mark.parametrize("unit", ["a.", "x", "1a", "_", "a'", "a/b_c.D-", "数据", "😀", "e\u0301", "\n ", "1,000,"])
def test_long_texts_take_time_in_proportion(unit):
    analyse(unit * (100_000 // len(unit)))  # quadratic work would not come back


def test_both_segmenters_cut_alike():
    rust, python = load_rust_segmenter(), load_python_segmenter()
    runs = [run for line in CHINESE.splitlines() for run in re.findall("[\u4e00-\u9fd5]+", line)]
    assert len(CHINESE.splitlines()) > 40
    assert [rust(run) for run in runs] == [python(run) for run in runs]


def test_without_the_rust_binding_the_python_one_cuts_and_leaves_no_trace(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cut = load_segmenter.__wrapped__()
    assert cut("数据库备份") == load_python_segmenter()("数据库备份")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_threads_get_the_terms_that_one_thread_gets():
    texts = [f"{line} getUserById{number} connections" for number, line in enumerate(CHINESE.splitlines() * 5)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(analyse, texts)) == [analyse(text) for text in texts]


def test_the_version_is_known_without_loading_a_dictionary():
    code = (
        "import sys; from recall_core.text.segment import analyse, segmenter_version; analyse('hello World');"
        "print(segmenter_version(), *({'rjieba', 'jieba', 'opencc', 'numpy'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == segmenter_version()
    assert "jieba" in printed


def test_an_identifier_is_found_in_fts5_whole(index):
    for text in ("see a/b.py", "use C++ 17", "call getUserById()", "release v1.2.3 today"):
        index.execute("INSERT INTO f VALUES (?, ?, ?)", columns(text))
    for number, term in enumerate(["a/b.py", "c++", "getuserbyid", "v1.2.3"], start=1):
        assert index.execute("SELECT rowid FROM f WHERE f MATCH ?", (f'"{term}"',)).fetchall() == [(number,)]
