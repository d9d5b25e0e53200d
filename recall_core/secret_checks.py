"""Whether what has the place or the shape of a secret is one: values of passwords and keys, card numbers."""

from __future__ import annotations

import re

from .patterns import compile_late

# 口令 is a code word, too: that of a talk or a game (会话的口令是 omega_555) is meant to be known.
# Any other opens a door.
CODE_WORD_OF = compile_late(r"(?:会话|对话|聊天|活动|游戏|红包|接头|集合|聚会)\s{0,3}的?\s{0,3}\Z")
WORDS_JOINED = compile_late(r"[a-z]+(?:_[a-z]+)*(?:_[0-9]{1,4})?")
STRONG = compile_late(r"(?i)pass(?:word|wd|phrase|code)|pwd|secret|密码|口令")
NAME = compile_late(
    r"(?i)(?:pass(?:word|wd|phrase|code)|pwd|secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|(?:api|access|auth|private|account|master|encryption|signing)[_ -]?key|token|credential|密码|口令|密钥|令牌)$"
)
# Said in the place of a value: there is none, or what kind of value it is.
NO_VALUE = compile_late(
    "none|null|nil|undefined|true|false|yes|no|str|string|bytes|int|bool|object|any|optional|required|empty|default"
    "|hidden|redacted|masked|unknown|todo|example|placeholder|changeme|your|here|type|text|basic|bearer|oauth2?|base64.*"
    r"|\d{1,3}(?:_\d{3})+"  # a number in code
    "|bcrypt|argon2|scrypt|sha256|reset|changed?|expired|invalid|wrong|incorrect|correct|missing|forgotten"
)
TEMPLATE = compile_late(r"\$\w+|\$?\{.*|<.*|%[({].*|%s|\[.*")
CALL = compile_late(r"[A-Za-z_][\w.]*[(\[{]")
DOTTED = compile_late(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
WORDS = compile_late(r"[^\d!@#$%^&*+=]*")
IDENTIFIER = compile_late(r"[A-Za-z_]+")
PATH = compile_late(r"(?:~|\.{1,2})?/|[A-Za-z]:\\")
NUMBER = compile_late(r"[+-]?\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?")
MASK = compile_late(r"(.)\1+|[*xX•.…#_-]+")
SEGMENT = compile_late(r"[A-Za-z0-9]+")
CARD = compile_late(r"4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12}|62\d{14,17}")
PORTS = compile_late(r"(?:[\d.]+:)?\d{1,5}(?::\d{1,5})?(?:/(?:tcp|udp))?")
DATABASE = compile_late(r"[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]?\d{0,4}")
SESSION = compile_late("(?i)sess|sid$|^sid|auth|token|jwt|csrf|xsrf|ticket|remember")
LEAST_RANDOM, SURELY_RANDOM = 16, 20  # characters without a break: with letters and digits, or of any kind


def is_start(text: str, place: int) -> bool:
    """Tell whether a token can begin at this place: behind no letter, digit, hyphen or underscore.

    In JSON that is kept as text, a line end in front of a token is a backslash and a letter.
    """
    before = text[max(0, place - 2) : place]
    return before in ("\\n", "\\r", "\\t") or not (before and (before[-1] in "-_" or _is_ascii_word(before[-1])))


def _is_ascii_word(character: str) -> bool:
    return character.isascii() and character.isalnum()


def is_mixed(text: str) -> bool:
    """Tell whether a text has both letters and digits."""
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def is_random(text: str) -> bool:
    """Tell whether a text has a long stretch of letters and digits, as names made of words have not."""
    stretches = SEGMENT.findall(text)
    return any(len(one) >= SURELY_RANDOM or (len(one) >= LEAST_RANDOM and is_mixed(one)) for one in stretches)


def is_spelled_out(text: str) -> bool:
    """Tell whether a text only stands for a value: a variable, a template, asterisks."""
    return TEMPLATE.fullmatch(text) is not None or MASK.fullmatch(text) is not None


def value_group(match: re.Match[str]) -> str:
    """Return the name of the group that has the value: in quotes, several words, or without."""
    return next(name for name in ("quoted", "words", "bare") if match[name] is not None)


def is_assigned_secret(match: re.Match[str]) -> bool:
    """Tell whether the value that a text gives for a password or a key is meant as one."""
    group = value_group(match)
    name, value = match["name"].lower(), match[group]
    if "[redacted: " in value or _is_no_value(name, value):
        return False
    if not STRONG.search(name):
        return _is_key_value(value)
    if group != "bare":
        return len(value) >= 3
    return _is_bare_password(match, value)


def is_flag_value(match: re.Match[str]) -> bool:
    """Tell whether what follows an option such as `--password` on a command line is its value."""
    value, name = match[value_group(match)], match.groupdict().get("name") or "password"
    return not value.startswith("-") and not _is_no_value(name.lower(), value) and not CALL.match(value)


def is_user_password(match: re.Match[str]) -> bool:
    """Tell whether what follows a user's name and a colon is a password, or only stands for one."""
    return not is_spelled_out(match[value_group(match)])


def is_option_password(match: re.Match[str]) -> bool:
    """Tell whether what follows an option such as `-p` of a command is a password: neither ports, as of a container
    called like the command, nor, behind a blank, a word of a sentence or the name of a database.
    """
    value = match[value_group(match)]
    if PORTS.fullmatch(value) or not is_flag_value(match):
        return False
    if not match["gap"] or match["quoted"] is not None:
        return True
    word = DATABASE.fullmatch(value) if match["command"] in ("mysql", "mariadb") else IDENTIFIER.fullmatch(value)
    return not (word or PATH.match(value))


def holds_session(match: re.Match[str]) -> bool:
    """Tell whether the cookies of a header have one that tells who somebody is, or might: long, or called so."""
    pairs = (pair.strip().split("=", 1) for pair in match[1].split(";"))
    return any(
        not is_spelled_out(value)
        and ((len(value) >= 4 and SESSION.search(name)) or (len(value) >= 16 and is_mixed(value)))
        for name, value in pairs
    )


def is_key_name(key: str, value: object) -> bool:
    """Tell whether a value is secret by the name that it has in an object."""
    if NAME.search(key) is None or isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return STRONG.search(key) is not None
    if not isinstance(value, str) or len(value) < 3 or "[redacted: " in value or _is_no_value(key.lower(), value):
        return False
    return STRONG.search(key) is not None or _is_key_value(value)


def name_of_key(key: str) -> str:
    """Return what is written in place of a value that was secret by its name."""
    lowered = key.lower()
    if re.search(r"secret", lowered):
        return "secret"
    if STRONG.search(lowered):
        return "password"
    return "token" if re.search(r"token|令牌|credential", lowered) else "api key"


def has_card_number(match: re.Match[str]) -> bool:
    """Tell whether a number is that of a credit card: the beginning of a known issuer, and a valid check digit."""
    digits = re.sub(r"[ -]", "", match[0])
    if not CARD.fullmatch(digits) or MASK.fullmatch(digits):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_no_value(name: str, value: str) -> bool:
    lowered = value.lower().strip()
    if NO_VALUE.fullmatch(lowered) or is_spelled_out(value):
        return True
    words = STRONG.findall(name) or [name]
    if lowered in words:
        return True
    named = any(word in lowered for word in words) and WORDS.fullmatch(value) is not None
    return named and re.search(r"[\s_-]|[a-z][A-Z]", value) is not None  # =db_password, =dbPassword, "Enter password"


def _is_key_value(value: str) -> bool:
    """Tell whether a value is a key: without blanks, long, of letters and digits, and no name made of words."""
    if (
        len(value) < 8
        or NUMBER.fullmatch(value)
        or re.search(r"\s", value)
        or CALL.match(value)
        or DOTTED.fullmatch(value)
        or PATH.match(value)
    ):
        return False
    digits = sum(c.isdigit() for c in value)
    cased = any(c.islower() for c in value) and any(c.isupper() for c in value)
    return is_mixed(value) and (digits >= 3 or cased) and "://" not in value


def _is_of_a_talk(match: re.Match[str]) -> bool:
    return CODE_WORD_OF.search(match.string[max(0, match.start() - 12) : match.start()]) is not None


def _is_bare_password(match: re.Match[str], value: str) -> bool:
    """Tell whether a value without quotes is a password and not a piece of code, a path or a word of a sentence."""
    if CALL.match(value) or DOTTED.fullmatch(value) or (match["name"].lower() == "pwd" and PATH.match(value)):
        return False
    separator = match["sep"].strip()
    following = match.string[match.end() : match.end() + 1]
    if separator.lower() in ("is", "是", "为"):
        if match["name"] == "口令" and WORDS_JOINED.fullmatch(value) and _is_of_a_talk(match):
            return False
        ends = separator != "is" and re.match(r"[\s\w]", following) is None  # in Chinese no word of the sentence
        return is_mixed(value) or (len(value) >= 6 and (value.isdigit() or ends))
    if not IDENTIFIER.fullmatch(value):
        return any(c.isascii() and c.isalnum() for c in value)
    if following in (")", "("):
        return False  # connect(password=secret_of_user)
    if separator == "=":
        return match["sep"] == "="
    return following in ("", "\n", "\r", '"', "'")
