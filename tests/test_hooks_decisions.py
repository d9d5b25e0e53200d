"""Which sentences of what somebody writes to an agent are kept as decisions."""

from __future__ import annotations

import pytest

from recall_core.hooks.decisions import find_decisions

DECISIONS = r"""
From now on use pnpm instead of npm.
We decided to go with Postgres for the orders service.
Let's use Redis for sessions.
Always run the linter before you commit.
Never commit directly to main.
Please never touch the generated files in src/gen.
Don't use mocks in integration tests.
Do not use any new dependencies without asking me.
I prefer tabs over spaces in Go files.
Remember that the staging server is at 10.0.0.5.
Remember: the API key lives in 1Password.
For this project we use uv, not pip.
Use British spelling in all docs.
Going forward, write commit messages in English.
Make sure to always add a changelog entry.
Please always answer in German.
We should stick with REST, no GraphQL.
We're going with FastAPI.
No more class components; only hooks.
The convention is snake_case for columns.
You must not edit migrations that are already merged.
Stop adding comments to every line.
Keep in mind that prod DB is read-only on weekends.
The rule is: one PR per ticket.
I want you to always write tests first.
Our coding style: max 100 columns.
Instead of moment use date-fns from now on.
以后都用 Docker Compose 部署。
记住：数据库端口是 5433。
请记住我们用的是 pnpm。
从现在起，所有接口都要写测试。
我们决定采用 PostgreSQL。
项目统一使用 TypeScript。
不要再用 moment 了。
以后提交信息一律用中文。
务必在提交前运行 lint。
永远不要直接改生产库。
我们约定分支名用 feature/ 开头。
默认用 ruff 格式化。
不要使用 any 类型。
禁止在主分支上直接提交。
以后别再给每行都加注释了。
所有金额必须用分来存储。
我更喜欢函数式组件。
今后接口返回统一用 snake_case。
就用 Redis 做缓存吧。
我们改用 vite 打包。
每次改完都要跑一遍测试。
优先使用标准库。
注意：线上环境是 Python 3.9。
記住：資料庫連接埠是 5433。
以後都用 Docker 部署。
ok, from now on please keep functions below 50 lines
We agreed with the client to drop IE support.
Don't ever push to release branches.
never log customer emails
Please always squash before merging.
Let's stick to Tailwind.
Let's go with sqlite for the prototype
I prefer short commit messages.
I'd like you to always explain the tradeoffs first.
Remember, deployments happen only on Tuesdays.
remember that we don't support Windows
In this repo, always use absolute imports.
We use trunk-based development, so never create long-lived branches.
For dates, always use UTC.
All endpoints must only return JSON.
You must ask before deleting any data.
Keep in mind: the customer table has 40M rows.
Our naming convention is kebab-case for files.
we've decided to postpone the mobile app to Q3
I've decided: no ORM, plain SQL.
We switched to Bun, don't use npm any more.
The API is versioned by header; never put the version in the URL.
no more emojis in the UI please
Use Vitest for all unit tests.
We never use default exports.
Tests must never hit the network.
记住我的时区是 UTC+8
以后回答都用中文
今后代码注释统一用英文。
我们团队约定每周三发版。
不要直接操作线上数据库。
我们决定不做多租户了。
接口返回必须用 camelCase。
千万不要动 legacy 目录。
以后写测试不要用 mock，用真实数据库。
这个项目里一律用 ESM。
图片统一放到 assets/img 下面。
我们还是用 MySQL 吧，不用 Mongo 了。
密码字段禁止打日志。
日志必须带 trace id。
我习惯用 vim，别给我推荐 IDE 插件。
请默认用 TypeScript 写示例。
每次提交前先跑 make lint。
变量名不要用拼音。
从现在起不用 jQuery 了。
最后定下来用 Kafka，不用 RabbitMQ。
產品名稱一律寫成 DualRecall。
From now on every PR needs two approvals.
please remember that staging uses a self-signed certificate
We have decided to use event sourcing for billing.
Never store raw card numbers.
always prefix private helpers with an underscore
Don't introduce new global state.
Let's use pytest everywhere
I prefer early returns over nested ifs.
our release rule: no deploys on Friday
Use ISO dates in all logs.
For this project we only use MIT-licensed packages.
Going forward I want answers without preamble.
We must support Python 3.10.
Keep in mind that the legacy API is frozen.
You should never edit generated files.
Make sure you always run the migrations in a transaction.
we're switching to GitHub Actions
commits must always reference a ticket
以后新接口都走网关
记住这个项目的默认分支是 develop
我们决定用 gRPC 替换 REST。
缓存统一放 Redis。
务必给每个公共函数写文档
别再用 console.log 调试了
所有时间都用 UTC 存储。
必须先写测试再写实现。
不允许引入 GPL 依赖。
我们用 4 个空格缩进，规范是 PEP8。
优先使用组合而不是继承。
部署脚本不要用 root 跑。
"""
OTHERS = r"""
Should we use Redis?
Why does it always fail on CI
It never works when I use the VPN.
I always get this error: connection refused
The button never appears after login.
Let's use the debugger to see what happens here.
Do you remember that bug from last week?
I don't remember that function.
He said "we decided to go with Mongo" but I am not sure.
Can you remember to run this later?
What if we decided to use Kafka
We have not decided to use Kafka yet.
We haven't decided on a database.
I'm not sure whether we should always use async.
> Always use tabs
    always_use = True
`never use eval` is what the linter prints, fix it
TypeError: never use null here
- [ ] decide on a database
if (always use) { return; }
# Remember this: old comment in file
Explain what "from now on" means in this poem
Does it always use the cache?
Translate "never use plastic" to French
Is it true that we decided against k8s
we used to always use Docker
They decided to use Java in their repo; compare it with ours
Fix the test that never passes
Look at the log: "WARN always use https"
never mind
Never mind, I found it.
always the same error...
Let's use this opportunity to clean up
这个函数为什么一律返回 null？
这个报错以后还会出现吗
为什么不要再用 moment
我不记得我们决定用什么数据库了
我们还没决定用哪个数据库
决定用哪个框架了吗
他们说统一使用 Java，对吗
请解释"务必"这个词的用法
帮我看看为什么改用 vite 之后编译失败
改用 vite 之后编译失败了
优先使用缓存的逻辑在哪里
这个接口以后都不返回数据了，帮我查一下原因
如果以后都用 Docker 会有什么问题
要不要统一使用 TypeScript
是否决定采用 PostgreSQL 还不确定
日志里写着"请务必升级"
let me know if we decided on something
If we always use UTC, does the bug go away
We could use Redis or always use Postgres, not sure yet
I think you never use the cache here, check it
Make a rule-based parser
how do I keep functions below 50 lines?
Can we drop IE support
why does the linter say never use any
Add a test for the login form
Fix the bug where the user is always logged out
The server never responds after the second request
it always crashes when I click save
I decided to take a break, see you later
we have to fix this now
You must be kidding
You must have forgotten a semicolon in line 12
I prefer not to say
Let's go with it
Let's go to the next step
let's use the second approach
Let's stick to it
remember when we fixed that race condition?
Remember to run the tests after this change
please don't use that function here
Don't use the cache in this query
use a for loop for each row
Should I always use const?
The docs say you should always call close()
According to the README, never use sudo with npm
The error message says "you must use https"
AssertionError: files must always end with newline
Write a function that decides whether to use the cache
Rename the function to always_use_cache
Summarize: we agreed on a price in the meeting notes below
we could go with Redis
it would be better to use Redis
what did we decide about the database
The rule is not working, please debug
the policy is rejected by AWS: AccessDenied
Our style sheet is broken on mobile
we are going to need a bigger instance
I am going on vacation tomorrow
I'm moving on to the next ticket
We are moving to the new office on Friday
must be a caching problem
I don't want to use any of these, suggest others
继续
这个测试总是失败，看一下
记得上次那个内存泄漏吗
我记得之前改过这里
把默认值改成 10
不要改这个文件，先看看
先不要提交
别用这个方法，换一种
为什么规定要用 https
这里必须加锁吗
如果不用 Kafka，还有什么方案
文档里说必须先初始化
报错：必须使用管理员权限运行
用户反馈说页面一律打不开
我决定先吃饭
这个改用 map 实现
帮我把所有的 var 都换成 let
这个函数要求是什么
统一一下这几个文件的缩进
默认用户登录不了
以后再说
每次点击都要等三秒，优化一下
禁止访问的页面返回了 200，修一下
Add pagination to the orders endpoint
the tests must be failing because of the clock
I prefer the second one
can you make sure this always works
Where do we keep the rules for eslint?
The app always shows a blank page on first load
I want you to write a function that never returns null
it should never have been merged, revert it
This should always return true but returns false
We agreed this was a bug, right?
you said we should always use UTC
Why must commits reference a ticket?
Check that we never call this twice
remember me checkbox does not work
Implement "remember me" on the login page
The policy document is in docs/policy.md, read it
What's the convention for naming branches?
In the future tense, the verb form is wrong, fix the grammar module
Update the changelog
we must hurry
写一个函数，判断用户是否必须登录
这个按钮永远不会被点击到，删掉它
记住密码的功能坏了
实现记住我的功能
登录页面统一跳转到首页的逻辑有问题
默认使用的端口被占用了
这段代码规定了什么
为什么所有请求都要经过网关
把这里改用箭头函数
测试环境禁止外网访问，导致依赖装不上
"""


@pytest.mark.parametrize("sentence", DECISIONS.strip().splitlines())
def test_a_sentence_that_lays_something_down_is_one(sentence):
    assert list(find_decisions(sentence)) == [sentence]


@pytest.mark.parametrize("sentence", OTHERS.strip("\n").splitlines())
def test_a_question_a_doubt_a_task_a_quotation_or_code_is_none(sentence):
    assert list(find_decisions(sentence)) == []


def test_of_a_message_the_sentences_that_lay_down_are_kept():
    text = "The build is red. From now on we use pnpm. Can you fix it?\n- Never commit to main.\n1. 以后都用中文回答。"
    assert list(find_decisions(text)) == ["From now on we use pnpm.", "Never commit to main.", "以后都用中文回答。"]


def test_code_is_passed_over():
    assert list(find_decisions("Look:\n```\nAlways use tabs.\n```\nAlways use spaces.\n~~~\nNever use eval.")) == [
        "Always use spaces."
    ]


def test_the_middle_of_what_was_pasted_is_passed_over():
    pasted = "You must always read the terms.\n" * 1_000
    text = f"Always answer in English.\n{'word ' * 300}\n{pasted}{'word ' * 300}\nNever use tabs."
    assert list(find_decisions(text)) == ["Always answer in English.", "Never use tabs."]
