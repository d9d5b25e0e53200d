"""Secrets that are none, put together here so that no scanner takes this file for a leak."""

from __future__ import annotations

HEX = "0123456789abcdef"
MIXED = "aB3dE5fG7hJ9"
UUID = "5f3e1c2a-1b2c-3d4e-5f60-0123456789ab"
PEM_LINES = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 4)


def pem(kind: str = "RSA ") -> str:
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{PEM_LINES}\n-----END {kind}PRIVATE KEY-----"


# What it is called -> a secret of the kind.
TOKENS = {
    "openai key": "sk-" + "proj-" + MIXED * 4 + "_" + MIXED,
    "api key": "sk-" + MIXED * 4,
    "anthropic key": "sk-" + "ant-api03-" + MIXED * 7 + "-" + MIXED + "AA",
    "github token": "ghp" + "_" + MIXED * 3,
    "gitlab token": "glpat" + "-" + MIXED[:10] + "_" + MIXED[:9],
    "aws key": "AKIA" + "IOSFODNN7EXAMPLE",
    "google key": "AIza" + "SyA" + "b3_-" * 8,
    "google token": "ya29" + ".a0Af" + MIXED * 3,
    "google secret": "GOCSPX" + "-" + MIXED * 2 + "abcd",
    "slack token": "xoxb" + "-123456789012-1234567890123-" + MIXED * 2,
    "stripe key": "sk_" + "live_" + MIXED * 2,
    "hugging face token": "hf" + "_" + MIXED * 3,
    "jwt": "eyJ"
    + "hbGciOiJIUzI1NiJ9"
    + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"
    + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "npm token": "npm" + "_" + MIXED * 3,
    "pypi token": "pypi" + "-AgEIcHlwaS5vcmc" + MIXED * 5,
    "telegram token": "123456789" + ":AA" + "Hd_-" * 8 + "k",
    "volcano key": "AKLT" + MIXED * 3,
    "ark key": "ark" + "-" + UUID + "-ab12c",
    "aliyun key": "LTAI" + "5t" + MIXED + "abcdef",
    "tencent key": "AKID" + MIXED * 3,
    "zhipu key": HEX * 2 + "." + MIXED + "abCD",
    "age key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "sendgrid key": "SG" + "." + MIXED + "abcdefghij" + "." + MIXED * 3 + "abcdefg",
    "private key": pem(),
}
MORE_TOKENS = {
    "github fine-grained": ("github token", "github" + "_pat_" + MIXED * 2 + "_" + MIXED * 4),
    "dashscope": ("api key", "sk-" + HEX * 2),
    "openai service account": ("openai key", "sk-" + "svcacct-" + MIXED * 5),
    "openrouter": ("api key", "sk-" + "or-v1-" + HEX * 4),
    "slack app": ("slack token", "xapp" + "-1-A0123-1234567890-" + HEX * 2),
    "groq": ("api key", "gsk" + "_" + MIXED * 4),
    "langsmith": ("api key", "lsv2" + "_pt_" + HEX * 2 + "_0123456789"),
    "digitalocean": ("api key", "dop" + "_v1_" + HEX * 4),
    "openssh": ("private key", pem("OPENSSH ")),
    "pkcs8": ("private key", pem("")),
    "encrypted": ("private key", pem("ENCRYPTED ")),
    "card": ("card number", "4111 1111 1111 1111"),
    "amex": ("card number", "3782-822463-10005"),
}
TOKENS_BY_NAME = {**{name: (name, token) for name, token in TOKENS.items()}, **MORE_TOKENS}

ASSIGNMENTS = {
    'password = "hunter2x"': 'password = "[redacted: password]"',
    "PASSWORD=hunter2x": "PASSWORD=[redacted: password]",
    "<user>ci</user><password>hunter2x</password>": "<user>ci</user><password>[redacted: password]</password>",
    f"<ApiKey>{HEX}</ApiKey>": "<ApiKey>[redacted: api key]</ApiKey>",
    "export PGPASSWORD=letmein": "export PGPASSWORD=[redacted: password]",
    "dbPassword: hunter2x\n": "dbPassword: [redacted: password]\n",
    '{"password": "password123"}': '{"password": "[redacted: password]"}',
    '{"a": 1, "passwd": 123456, "b": 2}': '{"a": 1, "passwd": "[redacted: password]", "b": 2}',
    r'"{\"password\": \"hunter2\"}"': r'"{\"password\": \"[redacted: password]\"}"',
    f'"api_key": "{UUID}"': '"api_key": "[redacted: api key]"',
    f"ARK_API_KEY={UUID}": "ARK_API_KEY=[redacted: api key]",
    f"X-Api-Key: {HEX}": "X-Api-Key: [redacted: api key]",
    f"https://x.org/?token={HEX}&page=2": "https://x.org/?token=[redacted: token]&page=2",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKY": "aws_secret_access_key = [redacted: secret]",
    "密码：hunter2x，别忘了": "密码：[redacted: password]，别忘了",
    "数据库密码是abc12345。": "数据库密码是[redacted: password]。",
    "登录口令是 letmein99": "登录口令是 [redacted: password]",
    "登录口令是 hunter_2024，别外传": "登录口令是 [redacted: password]，别外传",
    "数据库的口令为 prod_db_99": "数据库的口令为 [redacted: password]",
    "口令是 sunshine_1": "口令是 [redacted: password]",
    "登录口令: letmein99": "登录口令: [redacted: password]",
    f"密钥：{HEX}": "密钥：[redacted: api key]",
    "my password is hunter2x, ok?": "my password is [redacted: password], ok?",
    "mysql -u root --password hunter2x shop": "mysql -u root --password [redacted: password] shop",
    "postgres://anna:s3cret@db/shop": "postgres://anna:[redacted: password]@db/shop",
    "amqp://anna:p@ss:w0rd!@mq:5672/%2f?x=a@b": "amqp://anna:[redacted: password]@mq:5672/%2f?x=a@b",
    "curl -u anna:hunter2x https://x.org": "curl -u anna:[redacted: password] https://x.org",
    "password=mypassword": "password=[redacted: password]",
    "我的密码是letmein，别忘了": "我的密码是[redacted: password]，别忘了",
    "密码＝hunter2x": "密码＝[redacted: password]",
    "Authorization: Bearer abcdef123456": "Authorization: Bearer [redacted: token]",
    "key " + "sk-" + "abcdefghijklmnopqrstuvwx": "key [redacted: api key]",
    "redis://:s3cret@127.0.0.1:6379/0": "redis://:[redacted: password]@127.0.0.1:6379/0",
    f"Authorization: Bearer {UUID}": "Authorization: Bearer [redacted: token]",
    "Authorization: Basic dXNlcjpwYXNz": "Authorization: Basic [redacted: password]",
}

INNOCENT = [
    "<password>${env.DEPLOY_PASSWORD}</password>, <password>string</password>, <token>NN</token>",
    "Deploy with docker-compose; the tokens used were 4096 and max_tokens: 2048.",
    "commit 0aae73f0c5d1e5f3b8a9c2d4e6f708192a3b4c5d fixes it, see ef730a4",
    f"the record {UUID} was moved",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "integrity sha512-z9PCLxZ4Yy3dYJ9n8s1a0k6lYh3iU0u2Q1rQn5s0Qm8v0h0o2u5b8k0w1y3z7A==",
    "密码错误三次后账号会被锁定，请联系管理员重置密码。",
    "密码是什么？请不要把密码写进代码里。",
    "global-configuration-values-2-for-everything, fw_update_manager_for_device_version_2, ntn_some_name_of_words_1",
    "密码：见保险柜",
    "第二个会话的口令是 omega_555",
    "第二个会话 的 口令 是 omega_555，红包口令是 happy_new_year_1",
    '{"input_cost_per_token": 1.375e-06, "output_cost_per_token": 12345678}',
    "client_secret: OAuth2 client secret. page_token: Base64-encoded cursor",
    "密码是 bcrypt 哈希过的，密码是 Argon 算法保护的",
    "docker run -u 1000:1000 shop",
    "Enter password: then press enter. password=user_password, passwd=db.password",
    "http://localhost:8080/a?mail=anna@example.org",
    "项目部署统一使用 Docker Compose，密钥由运维保管。",
    "The password: must be at least 8 characters.",
    "The password is required, and the token is optional.",
    "def login(user: str, password: str = None) -> Token:",
    "connect(user=user, password=password, token=self.token)",
    "password = os.environ['DB_PASSWORD']",
    'token = request.headers.get("Authorization")',
    "password=${DB_PASSWORD}",
    "api_key: {{ vault_api_key }}",
    "password: ********",
    "api_key = settings.api_key",
    "secret=get_secret('db')",
    "pwd=/home/anna/project1",
    "pip install scikit-learn sk-learn-contrib-lightning-extension-2",
    "the class .sk-chasing-dots-child-number-12 spins",
    "see https://example.org:8080/a@b and mailto:anna@example.org",
    "at 1712121512300 or 1712121512300000 or 1712121512300000000",
    "order 4111 1111 1111 1112 and phone 138 0013 8000",
    "pi is 3.141592653589793238 and 0.4111111111111111",
    "git@github.com:anna/shop.git",
    "Bearer authentication-mechanism-overview",
    "The key is under the mat. The secret is to keep it simple.",
    "primary key: user_id, foreign key: order_id2",
    "keyboard shortcut key: ctrl+shift+F5",
    "monkey: banana123",
    "tokenizer=e5-small-v2, token_type=bearer, token: abc",
    "eyJustAWord. eyJ is how base64 of JSON begins",
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8d anna@host",
]
