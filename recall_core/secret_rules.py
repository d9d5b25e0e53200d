"""What secrets look like: the rules of redaction, in the order in which they are applied."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .secret_checks import (
    has_card_number,
    holds_session,
    is_assigned_secret,
    is_flag_value,
    is_mixed,
    is_option_password,
    is_random,
    is_spelled_out,
    is_start,
    is_user_password,
)

MARK = "[redacted: "
# In JSON that is stored as text, `\n` in front of a key is a backslash and a letter.
START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
RUN = "[A-Za-z0-9_-]"
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
QUOTE = r"\\{0,3}[\"'`]"
QUOTE_OR_NOT = rf"(?:{QUOTE})?"
NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|(?:client[_-]?|app[_-]?)?secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|(?:api|access|auth|private|account|master|encryption|signing)[_ -]?key|token|credential"
    r"|密码|口令|密钥|令牌"
)
BARE = r"[!#$%(*+\-./0-9:<=?@A-Z\[^_a-z{|~\u00c0-\u024f]"  # what is neither blank nor ends a value
# A value in quotes to the quote's end, or one without to the next blank or mark of punctuation. Between marks such as
# “ and ” a sentence may be quoted as well, so there only several words are taken as they are.
VALUE = (
    rf"(?:(?P<quote>{QUOTE})(?!\[redacted: )(?P<quoted>(?:(?!(?P=quote))[^\r\n]){{1,4096}}+)(?P=quote)"
    r"|[“‘「『](?!\[redacted: )(?=[^”’」』\r\n]{1,256}?\s)(?P<words>[^”’」』\r\n]{3,512}+)[”’」』]"
    rf"|(?:{QUOTE}|[“‘「『])?(?P<bare>(?:(?!\[redacted: ){BARE}){{4,512}}+))"
)
PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)"  # cut off: the lines of the key that are there
)
ASSIGNMENT = (
    rf"(?i)(?P<name>{NAMES})(?P<close>{QUOTE}\]?)?"
    rf"(?P<sep>\s{{0,3}}(?:=>|:=|[:=：＝]|(?<=\s)is\s|[是为])\s{{0,3}}){VALUE}"
)
ASSIGNED = ("pass", "pwd", "secret", "key", "token", "credential", "密码", "口令", "密钥", "令牌")
OPTION = rf"(?i)(?<=\s--)(?P<name>[a-z-]{{0,20}}?(?:{NAMES}))\s{{1,3}}{VALUE}"
NEVER = r"(?P<words>(?!))|(?P<bare>(?!))"
ELEMENT = rf"(?i)<(?:[\w.:-]{{0,40}}?)(?P<name>{NAMES})>(?:(?P<quoted>[^<>\r\n]{{3,512}}+)|{NEVER})</"
CARD_NUMBER = (
    r"(?<![A-Za-z0-9_.+/-])[0-9]{4}"
    r"(?:(?P<gap>[ -])(?:[0-9]{4}(?P=gap)[0-9]{4}(?P=gap)[0-9]{4}|[0-9]{6}(?P=gap)[0-9]{5})|[0-9]{11,15})"
    r"(?![A-Za-z0-9_+/-]|\.[0-9])"
)
# The options of one command, as far as they come before the one that is meant.
OPTIONS = r"\s(?:[^\r\n|;&<>]{0,300}?\s)??"
USER = r"(?<=\s)(?:-u|--user)[ =]{1,2}[\"']?[^\s:\"'/]{1,64}:([^\s\"':/]{3,256}+)"
CURL_USER = (
    rf"(?<![\w.-])curl{OPTIONS}(?:-[A-Za-z]{{0,6}}[uU]|--(?:proxy-)?user)[ =]{{0,2}}"
    r"(?:(?P<quote>[\"'])[^\s:\"'/]{1,64}:(?P<quoted>(?:(?!(?P=quote))[^\r\n]){1,256}+)(?P=quote)"
    r"|[^\s:\"'/]{1,64}:(?P<bare>[^\s\"'/][^\s\"']{0,255}+)|(?P<words>(?!)))"
)
# What a blank sets apart from -p of mysql is the name of a database; but often a password is meant.
PASSWORD_OPTION = (
    rf"(?<![\w.-])(?:(?P<command>mysql|mariadb)[\w-]{{0,8}}{OPTIONS}-p"
    rf"|(?:sshpass|mongo\w{{0,8}}|(?:docker|podman) login){OPTIONS}-p"
    rf"|redis-cli{OPTIONS}-a|sqlcmd{OPTIONS}-P|ldap[a-z]{{3,8}}{OPTIONS}-w)(?P<gap> {{0,2}}){VALUE}"
)
PAIR = r"[\w.%-]{1,64}=[^\s;,\"'\\]{1,4096}+"
COOKIES = rf"(?i)(?<![a-z-])(?:set-)?cookie{QUOTE_OR_NOT}\s{{0,2}}:\s{{0,2}}{QUOTE_OR_NOT}({PAIR}(?:; ?{PAIR})*+)"
SESSION_COOKIE = (
    r"(?<![\w.-])(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|laravel_session|sessionid)="
    r"([\w%.+/-]{16,4096}+)"
)
AWS_SECRET = (  # the second half of a pair, on the same line or the next one
    r"(?<=\[redacted: aws key\])[^\r\n]{0,40}?(?:[\r\n]+[^\r\n]{0,40}?)?"
    r"(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a kind of secret looks like. `secret` names the group to take out, "value" the one that has the value;
    `check` may still refuse a candidate. Without a `name` it is called by that which the text gives the value.
    """

    name: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]  # a text without any of these, in lower case, has no such secret
    check: Callable[[re.Match[str]], bool] | None = None
    secret: int | str = 0


def _token(
    name: str, prefix: str, rest: str, *hints: str, check: Callable[[re.Match[str]], bool] | None = None
) -> Rule:
    def is_token(match: re.Match[str]) -> bool:
        return is_start(match.string, match.start()) and (check is None or check(match))

    # The prefix comes first, and what stands before it is looked at afterwards: so most of a text is passed over fast.
    return Rule(name, re.compile(f"(?:{prefix}){rest}" if "|" in prefix else prefix + rest), hints, is_token)


def _random(match: re.Match[str]) -> bool:
    return (is_mixed(match[0]) and len(match[0]) >= 60) or is_random(match[0][3:])


def _mixed(match: re.Match[str]) -> bool:
    return is_mixed(match[0])


# What is surely a key of a known kind is named so, not "password".
RULES = (
    Rule("private key", re.compile(PRIVATE_KEY), ("private key",)),
    Rule("private key", re.compile(r"(?<=Private-Lines: )\d{1,4}(?:\s+[A-Za-z0-9+/=]{16,}+)++"), ("private-lines: ",)),
    _token("age key", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,}+", "age-secret-key-"),
    _token("anthropic key", "sk-ant-", f"{RUN}{{16,}}+", "sk-ant-"),
    _token("openai key", "sk-(?:proj|svcacct|admin)-", f"{RUN}{{16,}}+", "sk-", check=_random),
    _token("api key", "sk-", f"{RUN}{{16,}}+", "sk-", check=_random),
    _token("stripe key", "(?:sk|rk)_(?:live|test)_", "[A-Za-z0-9]{10,}+", "k_live_", "k_test_"),
    _token("stripe key", "whsec_", "[A-Za-z0-9+/=]{20,}+", "whsec_"),
    _token("github token", "gh[pousr]_", "[A-Za-z0-9]{30,}+", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("github token", "github_pat_", "[A-Za-z0-9_]{22,}+", "github_pat_"),
    _token("gitlab token", "gl(?:pat|dt|rtr?|ptt|cbt|ft|imt|agent|soat|ffct)-",
           rf"(?:{RUN}|\.(?=[A-Za-z0-9])){{20,}}+", "gl", check=_mixed),
    _token("aws key", "A(?:KI|SI|BI|CC)A", "[A-Z0-9]{16}(?![A-Za-z0-9])", "akia", "asia", "abia", "acca"),
    _token("google key", "AIza", f"{RUN}{{35}}(?!{RUN})", "aiza"),
    _token("google token", r"ya29\.", f"{RUN}{{20,}}+", "ya29."),
    _token("google secret", "GOCSPX-", f"{RUN}{{20,}}+", "gocspx-"),
    _token("slack token", r"xox[a-z](?:\.xox[a-z])?-", f"{RUN}{{10,}}+", "xox"),
    _token("slack token", r"xapp-\d-", f"{RUN}{{10,}}+", "xapp-"),
    Rule("slack webhook", re.compile(r"hooks\.slack\.com/services/(T[\w/]{20,}+)"), ("hooks.slack.com",), secret=1),
    Rule("discord webhook", re.compile(rf"/api/webhooks/\d{{15,22}}/({RUN}{{40,}}+)"), ("/api/webhooks/",), secret=1),
    Rule("telegram token", re.compile(rf"(?<![A-Za-z0-9_])(?:bot)?(\d{{8,10}}:AA{RUN}{{30,}}+)"), (":aa",), secret=1),
    _token("hugging face token", "(?:hf|api_org)_", "[A-Za-z0-9]{30,}+", "hf_", "api_org_"),
    _token("npm token", "npm_", "[A-Za-z0-9]{36,}+", "npm_"),
    _token("pypi token", "pypi-", f"{RUN}{{50,}}+", "pypi-"),
    _token("volcano key", "AKLT", "[A-Za-z0-9]{20,}+", "aklt", check=_mixed),
    _token("ark key", "ark-", rf"{UUID}{RUN}*+", "ark-"),
    _token("aliyun key", "LTAI", "[A-Za-z0-9]{12,}+", "ltai", check=_mixed),
    _token("tencent key", "AKID", "[A-Za-z0-9]{13,}+", "akid", check=_mixed),
    Rule("zhipu key", re.compile(rf"{START}[0-9a-f]{{32}}\.[A-Za-z0-9]{{16}}(?![A-Za-z0-9])"), (".",), _mixed),
    _token("api key", "gsk_|xai-|pplx-|r8_|tvly-|jina_|pcsk_|nvapi-|fw_", f"{RUN}{{30,}}+", "gsk_", "xai-", "pplx-",
           "r8_", "tvly-", "jina_", "pcsk_", "nvapi-", "fw_", check=_random),
    _token("api key", "lsv2_(?:pt|sk)_|lin_api_|ntn_|sbp_|shp(?:at|ca|pa|ss)_", f"{RUN}{{20,}}+", "lsv2_", "lin_api_",
           "ntn_", "sbp_", "shp", check=_random),
    _token("api key", r"dop_v1_|dapi|hvs\.", f"{RUN}{{32,}}+", "dop_v1_", "dapi", "hvs.", check=_random),
    _token("docker token", "dckr_pat_", f"{RUN}{{20,}}+", "dckr_pat_"),
    Rule("sendgrid key", re.compile(rf"{START}SG\.{RUN}{{16,32}}\.{RUN}{{30,}}+"), ("sg.",)),
    Rule("jwt", re.compile(rf"{START}eyJ{RUN}{{8,}}+\.{RUN}{{8,}}+\.{RUN}{{8,}}+"), ("eyj",)),
    Rule("token", re.compile(r"(?i)(?<![a-z])bearer(?:\s|\\[nrt]|:){1,3}([A-Za-z0-9._~+/=-]{12,}+)"), ("bearer",),
         lambda match: is_mixed(match[1]), 1),
    Rule("password", re.compile(r"(?i)authorization\W{1,6}basic\s{1,3}([A-Za-z0-9+/=_-]{6,}+)"), ("basic",), secret=1),
    # To the last @ before the path: passwords have some, too.
    Rule("password", re.compile(r"://[^\s:/@\"'<>]{0,128}:([^\s/?#\"'<>]{1,256})@"), ("://",),
         lambda match: not is_spelled_out(match[1]), 1),
    Rule("password", re.compile(CURL_USER), ("curl",), is_user_password, "value"),
    Rule("password", re.compile(PASSWORD_OPTION), ("mysql", "mariadb", "sshpass", "mongo", " login", "redis-cli",
         "sqlcmd", "ldap"), is_option_password, "value"),
    Rule("password", re.compile(USER), ("-u",),
         lambda match: not (is_spelled_out(match[1]) or match[1].isdigit()), 1),  # 1000:1000 is a user and a group
    Rule("cookie", re.compile(COOKIES), ("cookie",), holds_session, 1),
    Rule("cookie", re.compile(SESSION_COOKIE), ("sess", "connect.sid"), lambda match: is_mixed(match[1]), 1),
    Rule("aws secret", re.compile(AWS_SECRET), (MARK + "aws key]",), _mixed, 1),
    Rule("", re.compile(ASSIGNMENT), ASSIGNED, is_assigned_secret, "value"),
    Rule("", re.compile(OPTION), ("--",), is_flag_value, "value"),
    Rule("", re.compile(ELEMENT), ("</",), is_assigned_secret, "value"),
    Rule("card number", re.compile(CARD_NUMBER), (), has_card_number),
)  # fmt: skip
