"""Finds the sentences in which somebody lays something down for later, in English and Chinese: rules, conventions, what
was decided. A question, a doubt, a quotation or code is none; it is better to miss one than to keep noise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..patterns import compile_late
from ..text import split_sentences
from ..text.normalise import fold

LONGEST = 400  # characters of a sentence
OWN_WORDS = 1_500  # characters at each end of a long message; what is between was pasted

_CODE_BLOCK = compile_late(r"^[ \t]*(```|~~~).*?(^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_NOT_SAID = compile_late(
    r"^(>|#|//|\||\$ |\t| {4}|- \[.\]|\d{4}-\d\d-\d\d|\w*(error|warning|warn|info|debug)\b *:)", re.IGNORECASE
)
_BULLET = compile_late(r"^\s*(?:[-*•]|\d{1,2}[.)、])\s+")
_QUOTED = compile_late(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》")

_OPENING = (
    r"^(?:(?:and|but|so|ok(?:ay)?|also|then|well|please|pls|btw|yes|no|right|great|perfect|thanks|fine|important|rule"
    r"|for (?:the )?(?:tests?|docs|future|record)|in (?:tests?|docs|code|general)|by default|as a rule)\b[\s,.:!;-]*)*"
)
_DOING = (
    r"(?:use|run|write|add|commit|push|merge|deploy|test|review|keep|put|name|call|format|lint|ask|answer|reply|create|edit"
    r"|touch|change|modify|delete|remove|install|import|mock|store|log|check|start|include|follow|document|squash|rebase"
    r"|return|set|make|prefer|avoid|do|go|update|bump|pin|sort|validate|escape|show|hard-?code|force)"
)
_ENGLISH = [
    _OPENING + r"(?:always|never) (?!(?:mind|the|an?|been|had|seen|again|once|sure|more)\b)"
    r"[a-z]{2,}+(?<!ing)(?<!ed)(?<![^s]s)\b",
    _OPENING + r"(?:do ?n[o']t|do not) (?:ever " + _DOING + r"|use|add any|introduce)\b(?! (?:it|that|this|them|the)\b)"
    r"(?!.*\b(?:here|(?:in|for) (?:this|that)|for now|this time|of these)\b)",
    _OPENING + r"remember\b(?: that\b| this\b|,|:)? (?!when\b|how\b|the time\b|me\b|to (?:run|check|do)\b)",
    _OPENING + r"(?:stop|no more|quit) (?:adding|using|writing|generating|putting|creating|including|apologi[sz]ing)\b",
    _OPENING + r"no more \w",
    _OPENING + r"use (?!the\b|an?\b|it\b|that\b|this\b).{2,60}\b(?:in|for) (?:all|every|any|each)\b",
    _OPENING + r"(?:make sure|be sure|ensure)\b.{0,20}\b(?:always|never)\b",
    _OPENING + r"(?:convention|policy|rule|decision|standard|style)\s*:",
    r"\b(?:from now on|going forward|from here on|from this point on)\b",
    r"^in (?:the )?future(?:,| please\b| always\b| never\b)",
    r"\b(?:keep|bear) in mind\b",
    r"\bmake it a rule\b",
    r"\b(?:(?:our|one) (?:\w+ )?(?:rule|policy|standard)|(?:the|our) (?:\w+ )?convention|our \w+ style)(?: here)?"
    r"(?: is\b(?! not| broken| wrong| failing)|:)",
    r"\bthe (?:rule|policy|standard)(?: here)?(?: is)?(?::| that\b| to\b)",
    r"\b(?:we|the team)(?:'ve| have)? (?:just |already |finally |now |all )?(?:decided|agreed|chose|settled|opted)\b",
    r"\bi(?:'ve| have)? (?:just |already |finally |now )?decided"
    r"(?::| that\b| we\b| against\b| (?:to|not to) (?:use|go|drop|keep|not)\b)",
    r"\bwe(?:'re| are|'ll| will| should)? (?:going with|stick(?:ing)? (?:with|to)|standardi[sz](?:e|ing) on|go with"
    r"|switching to|migrating to|moving to)\b(?! (?:it|that|this|the)\b)",
    r"\bwe(?:'ve| have)? (?:switched|moved|migrated|standardi[sz]ed) (?:to|on)\b(?! the\b)",
    r"\blet'?s (?:go|stick|stay) (?:with|to)\b"
    r"(?! (?:it|that|this|option|your|the (?:first|second|third|last|next)|bed|\d))",
    r"\blet'?s (?:always |only )?use (?!this\b|that\b|it\b|the\b|an?\b|your?\b)",
    r"\b(?:i|we) (?:strongly |really |generally |usually |always )?prefer\b"
    r"(?! (?:not|it|this|that|option|the (?:first|second|third|last|other))\b)",
    r"\b(?:i|we) (?:do ?n[o']t|do not) (?:like|want|use|allow)\b.{0,60}\b(?:ever|in (?:this|our)|at all)\b",
    r"\bi(?:'d)? (?:want|like|need|expect) you to (?:always|never)\b",
    r"\b(?:you|we|everyone|code|tests?|names?|files?|commits?)"
    r" (?:must|should|shall) (?:always|never|only|not)\b(?! (?:have|be)\b)",
    r"\b(?:all|every|each) [\w ]{2,30} (?:must|should|shall)\b",
    r"\b(?:you|we) must (?!be\b|have\b|go\b|hurry|wait|fix\b|find\b|see\b)",
    r"\b(?:in|for|across) (?:this|our) (?:project|repo|repository|codebase|code base|team)\b"
    r".*\b(?:use|prefer|avoid|only|always|never|must)\b",
    r"\bwe (?:always|never|only) " + _DOING + r"\b",
    r"\b(?:we|in [\w ]{2,30}),? (?:always|never) use\b",
    r"[,;:–-] *(?:and |but |so )?(?:always|never) " + _DOING + r"\b",
]
_CHINESE = [
    r"^(?:请|一定要?|务必|千万|你要?|帮我|另外|还有)*(?:记住|记得|牢记|记下|谨记|切记)(?!.{0,8}(?:功能|按钮|选项))",
    r"(?:以后|今后|往后|从现在起|从现在开始|从今以后|从今往后|后续)[^。]{0,20}?"
    r"(?:都|请|要|不要|别|不许|不准|不用|不再|统一|一律|只|必须|禁止|就用|改用|默认)",
    r"(?:决定|敲定|商定|选定|定下来)(?:了)?(?:用|采用|使用|不|改|选|把|将|放弃|以|由|统一|，|：)",
    r"(?:我们|团队|大家)?(?:约定|规定)(?:好|了)?(?!时间)",
    r"(?:规范|规则|原则|惯例|要求)(?:是|：|:)",
    r"统一(?:用|使用|采用|为|成|走|放|叫|按|写|由|改)|一律|务必|严禁|禁止(?!访问|的)|不得|不允许|不准",
    r"(?:永远|绝对|千万|再也)(?:不要|别|不能|不用|不许|不准|不得)",
    r"(?:不要|别)再(?:用|使|加|给|写|引入|提交|创|把|手动|直接|对)",
    r"(?:不要|不能|不可以|别)(?:使用|用|引入|采用|直接|硬编码|手动)(?!这|那|它)",
    r"(?:^|[，,；]|项目|我们|全部|都|请)默认(?:用|使用|采用|走|为|是)(?!户|例|的)",
    r"(?:我们|全部|统一|项目|请|都|^)改(?:用|成用|为用)",
    r"(?:^|[，,；]|请|应|要|都|里|中)优先(?:用|使用|采用|考虑|选)",
    r"我们?(?:更|比较|还是|一般|平时)?(?:喜欢|偏好|倾向于?|习惯用|习惯使用)",
    r"^(?:那|我们)*(?:还是|就)(?:用|采用|选|选用|定)",
    r"每次(?:提交|修改|改|发布|部署|合并|写|更新|上线|推送|构建|新增|添加)[^。]{0,15}(?:都要|必须|都得|都先|先|后要)",
    r"(?:所有|每个|任何|全部)[^。]{0,20}(?:必须|都要|都得|都用|都不|都应|都放|要用|不要|不能|不得)",
    r"必须(?:用|使用|先|要|在|有|写|经过|通过|以|是|加|走|带)",
    r"^(?:注意|重要|提醒)[:：]",
]
_SAID = compile_late("|".join((*_ENGLISH, *_CHINESE)))
# What makes a sentence a question, a doubt, a report or a task if it stands before what lays something down …
_DOUBT = compile_late(
    r"\b(?:if|whether|what|why|how|which|who|where|explain|translate|summari[sz]e|describe|mean|means|look at|unless"
    r"|not sure|unsure|i think|i guess|it seems|could|might|may|maybe|perhaps|would|used to|says?|said|told|tells"
    r"|claims?|according to|error|he|she|they|their|once|before|compare|remind me|do you|did|does|is it|are we"
    r"|should we|shall we|can we|has|have we"
    r"|n't|not(?: yet)?|never)\b|n't\b"
    r"|不记得|还记得|不确定|还没|没有|没|尚未|如果|要是|假如|是否|要不要|该不该|能不能|可不可以|为什么|为何|怎么|解释|翻译"
    r"|他们?|她们?|据说|听说|写着|显示|提示|里说|报错|反馈|提到|先不|暂时|这次|今天|之前|以前|曾经|好像|可能|也许|看看|查一下|帮我看|似乎|不是"
)
# … or anywhere, in Chinese, where the question word often stands last.
_QUESTION = compile_late(
    r"[?？]\W*$|[吗嘛么呢]\W*$|吗[，,。]|对吗|对不对|是不是|什么|哪[个些里种一]|为什么|怎么|如何(?!.*都)|是否|要不要|有什么|多少"
    r"|帮我(?:查|看|找)|之后(?:编译|报错|失败|出)|导致|失败了|报错了|坏了|有问题|的原因|的逻辑|不确定|的意思|的用法"
    r"|\b(?:not sure|right|correct|or not|what do you think|is what|gets? this)\W*$"
)
_ASKING = compile_late(
    r"^(?:what|why|how|when|where|who|which|does|do (?!not)|did|is|are|was|were|should|could|can|would|will|has|have"
    r"|had|am|may|explain|translate|find|show|fix|check|look|tell|give|list|search|grep|read|open|debug|investigate)\b(?!:)"
)


def find_decisions(text: str) -> Iterator[str]:
    """Yield the sentences of a message that lay something down, as they were written."""
    for line in _own_lines(text):
        for start, end in split_sentences(line):
            sentence = line[start:end].strip()
            if len(sentence) <= LONGEST and _lays_down(sentence):
                yield sentence


def _own_lines(text: str) -> Iterator[str]:
    """Yield the lines that somebody wrote by hand: without code, quotations, logs, and the middle of what is long."""
    text = _CODE_BLOCK.sub("\n", text)
    if len(text) > 2 * OWN_WORDS:
        text = f"{text[:OWN_WORDS].rpartition(chr(10))[0]}\n{text[-OWN_WORDS:].partition(chr(10))[2]}"
    for line in text.splitlines():
        if line.strip() and not _NOT_SAID.match(line):
            yield _BULLET.sub("", line).strip()


def _lays_down(sentence: str) -> bool:
    plain = fold(_QUOTED.sub("…", sentence)).strip()
    found = _SAID.search(plain)
    if found is None or _QUESTION.search(plain) or _ASKING.match(plain):
        return False
    return not _DOUBT.search(plain[: found.start()])
