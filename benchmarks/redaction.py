"""How long redaction takes by the kind and the length of a text.

python benchmarks/redaction.py
"""

from __future__ import annotations

import base64
import random
import time
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


def main() -> None:
    redact_text("the rules are compiled by the first call")
    print(f"{'':10}" + "".join(f"{length:>14,}" for length in LENGTHS) + "  characters")
    for name, unit in make_texts().items():
        shown = [measure((unit * (length // len(unit) + 1))[:length]) for length in LENGTHS]
        print(f"{name:10}" + "".join(f"{seconds * 1e6:>11,.0f} µs" for seconds in shown))


if __name__ == "__main__":
    main()
