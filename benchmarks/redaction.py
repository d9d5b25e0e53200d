"""How long redaction takes by the kind and the length of a text; or what it takes out of the texts of a folder.

python benchmarks/redaction.py             times
python benchmarks/redaction.py FOLDER      texts that would be changed: files, or the strings in lines of JSON
"""

from __future__ import annotations

import base64
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from recall_core.redaction import redact_text

ROOT = Path(__file__).parent.parent
LENGTHS = (300, 10_000, 1_000_000)


def make_texts() -> dict[str, str]:
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "recall_core").rglob("*.py")))
    return {
        "English": "The user asked how the billing service is deployed; docker compose is used since Friday. ",
        "Chinese": "项目部署统一使用 Docker Compose，不再使用虚拟机，密码由运维保管。",
        "code": code,
        "base64": base64.b64encode(random.Random(1).randbytes(750_000)).decode(),
        "keys": "DB_PASSWORD=hunter2x\nAPI_KEY=" + "aB3dE5fG7hJ9" * 3 + "\n",
    }


def measure(text: str) -> float:
    """Return the seconds of CPU time of the fastest of some calls."""
    runs = max(3, 20_000 // len(text))
    times = []
    for _ in range(runs):
        started = time.process_time()
        redact_text(text)
        times.append(time.process_time() - started)
    return min(times)


def find_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from find_strings(item)


def read_texts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".jsonl":
            for line in path.read_text("utf-8").splitlines():
                yield from find_strings(json.loads(line))
        elif path.suffix in (".py", ".md", ".txt", ".json", ".js"):
            yield path.read_text("utf-8", "replace")


def show_changes(folder: Path) -> None:
    texts = changed = 0
    for text in read_texts(folder):
        redacted = redact_text(text)
        texts += 1
        changed += redacted != text
        for before, after in zip(text.splitlines(), redacted.splitlines(), strict=False):
            if before != after:
                print(f"- {before.strip()[:110]}\n+ {after.strip()[:110]}")
    print(f"{changed} of {texts:,} texts")


def main() -> None:
    if sys.argv[1:]:
        show_changes(Path(sys.argv[1]))
        return
    redact_text("the rules are compiled by the first call")
    print(f"{'':10}" + "".join(f"{length:>14,}" for length in LENGTHS) + "  characters")
    for name, unit in make_texts().items():
        shown = [measure((unit * (length // len(unit) + 1))[:length]) for length in LENGTHS]
        print(f"{name:10}" + "".join(f"{seconds * 1e6:>11,.0f} µs" for seconds in shown))


if __name__ == "__main__":
    main()
