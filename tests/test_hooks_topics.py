"""Which prompts are about something that could be looked up, and which memories are about it."""

from __future__ import annotations

import pytest

from recall_core.hooks.topics import find_topic, is_about

TALK = """
ok
yes, do it
continue
thanks, that looks good
please fix it
make it better
run it again
undo the last change
explain this function
what does this error mean?
show me the file
can you try that again please
add a new class
继续
谢谢，很好
再试一次
帮我看看这个报错
这段代码是什么意思
把这个变量改个名字
🙂
"""
ABOUT = [
    ("how do we deploy the payment service?", "The payment service is deployed with Docker Compose on pay-1."),
    ("which node version do we support", "Node 20 is the minimum version for the whole monorepo."),
    ("run the tests", "Tests are run with make test."),
    ("redis", "Let's use Redis for sessions."),
    ("the users are being logged out again", "Users are logged out at random: the cookie had SameSite=Strict."),
    ("数据库端口是多少", "数据库端口是 5433，不是默认的 5432。"),
    ("帮我写一下提交信息", "提交信息一律用中文，标题不超过 50 字。"),
    ("缓存键怎么命名", "缓存键必须带业务前缀，例如 order:、user:。"),
    ("數據庫端口", "数据库端口是 5433。"),
]
NOT_ABOUT = [
    ("explain how quicksort works", "Damaged notes of unfinished work stop no command"),
    ("make it blue", "Always run `make lint` before you commit."),
    ("fix the indentation", "Fix race condition in checkout when two coupons are applied"),
    ("return an error from the API when the order is missing", "Rename OrderRepository to OrderStore"),
    ("why was the checkout slow last time", "Log slow queries over 200 ms"),
    ("新加一个定时任务", "订单导出改为异步任务，完成后发邮件通知"),
]


@pytest.mark.parametrize("prompt", TALK.strip().splitlines())
def test_talk_is_about_nothing(prompt):
    assert find_topic(prompt) == frozenset()


@pytest.mark.parametrize(("prompt", "text"), ABOUT)
def test_a_memory_that_holds_what_a_prompt_is_about_is_about_it(prompt, text):
    assert is_about(text, find_topic(prompt))


@pytest.mark.parametrize(("prompt", "text"), NOT_ABOUT)
def test_a_memory_that_shares_a_word_with_a_prompt_is_not_about_it(prompt, text):
    assert not is_about(text, find_topic(prompt))


def test_of_a_long_prompt_some_words_are_enough():
    prompt = "The payment service of the shop fails with status 503 whenever the nightly backup of Postgres is running"
    assert is_about("The backup of Postgres blocks the payment service", find_topic(prompt))
