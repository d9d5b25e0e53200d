"""Words that a question is made of but that say nothing about its subject: function, question and courtesy words."""

from __future__ import annotations


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Left out on purpose: "may" and "will", which are also a month and names. Apostrophes are dropped before.
_ENGLISH = _split(
    """
    a an the this that these those there here
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves one ones someone somebody something anyone anybody
    anything everyone everybody everything nothing
    what which who whom whose when where why how whether whatever whichever whoever
    am is are was were be been being do does did doing done have has had having can could would should shall might must
    ought cannot
    isnt arent wasnt werent dont doesnt didnt havent hasnt hadnt cant couldnt wont wouldnt shouldnt mustnt aint
    and or but nor so yet if then than because as while until although though since unless
    of at by for with about against between into through during before after above below to from up down in out on off
    over under onto upon within without
    not no nor any some such only own same too very just also again further more most other each few both all much many
    ever even still
    please tell let lets thanks thank hi hello hey ok okay yes
    """
)

# A pair of characters that holds one of these hardly ever stands for a thing.
_PARTICLES = frozenset("的了吗呢吧啊呀嘛么怎哪谁是我你您他她它们这那个")

_PARTICLES_INSIDE_WORDS = _split(
    """
    目的 的确 标的 的士 打的 了解 了结 吗啡 酒吧 网吧 吧台 贴吧 毛呢 呢绒 吉他 他人 利他 他乡 迷你 自我 忘我 我国
    我司 是非 国是 谁知 哪吒 那曲 刹那 个人 个性 个体 个别 个案 个税 个子 个股 个头 个展 个数 个位 个例 个旧 个贷
    的哥 美的 知了 明了 了望 喇嘛 氧吧 书吧 水吧 呢喃 呢子 花呢 维他 他命 他杀 犹他 吉它 我军 敌我 图们 利是 那英
    """
)

_CHINESE = _split(
    """
    什么 怎么 怎样 如何 为何 何时 何地 何处 何人 何种 任何 哪里 哪儿 哪些 哪个 哪天 哪年 谁的 多少 多久 多大 多长
    多远 多高 多重 几个 几点 几号 几次 几天 几年 几月 几岁 几时 几位 几种 第几 是否 是不 有几 有没 没有 有无
    能否 可否 可以 能不 会不 要不 还有 另外 请问 请教 请帮 帮我 帮忙 告诉 告知 知道 记得 还记 一下 一个 一些 一种
    一样 有些 有关 关于 对于 以及 或者 并且 而且 但是 因为 所以 如果 就是 还是 也是 都是 只是 不是 其中 其他 其它
    之前 之后 以前 以后 时候 的话 来着 已经 曾经 正在 应该 需要 想要 想知 想问 不知 究竟 到底 具体 分别 大概 什么时候
    为什么 怎么样 怎么办 是不是 有没有 能不能 会不会 要不要 可不可以 多少钱 哪一个 哪一天 想知道 记不记得 什么样
    干什么
    """
)

# Characters that say nothing when they stand alone between other scripts, as in 3月15日 or "用 Docker 吗".
_CHINESE_ALONE = frozenset(
    "年月日号时点分秒个次位件条和与或及在有为以对从到把被给让用请也都就还很不没会能要想跟向于之其"
)


def is_function_word(word: str) -> bool:
    """Tell whether a folded word, without its apostrophe, is one of English grammar, asking or courtesy."""
    return word in _ENGLISH


def is_function_gram(gram: str) -> bool:
    """Tell whether one, two or more folded Chinese characters belong to grammar or asking."""
    if len(gram) == 1:
        return gram in _PARTICLES or gram in _CHINESE_ALONE
    if gram in _CHINESE:
        return True
    return len(gram) == 2 and not _PARTICLES.isdisjoint(gram) and gram not in _PARTICLES_INSIDE_WORDS
