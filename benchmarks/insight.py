"""Measures what insights into a large memory cost, and how good they are where labels exist.

python benchmarks/insight.py scale [N]        time and memory of similar, topics and digest over N records
python benchmarks/insight.py paraphrases      whitened cosines of paraphrases and of texts that differ in a word
python benchmarks/insight.py topics FOLDER    topics against the labels of retrieval sets (a folder with load.py)
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path

import numpy as np
from speed import make_texts

from recall_core import Memory
from recall_core.insight.similarity import read_texts

DIMENSIONS = 384
COPIES = 0.1  # of the records are near-duplicates of others

PAIRS = {
    "paraphrase": [
        ("用户喜欢喝绿茶", "用户爱喝绿茶"),
        ("订单服务的数据库在五号机", "订单服务的库放在五号机上"),
        ("我对花生过敏", "我吃花生会过敏"),
        ("User prefers tea", "The user likes tea best"),
        ("deploys run on port 8080", "the deployment port is 8080"),
        ("Python 3.11 is required", "Requires Python 3.11"),
        ("The database is backed up every night", "Backups of the database are made nightly"),
        ("Deploy with Docker Compose", "We deploy using docker compose"),
    ],
    "other word": [
        ("用户喜欢喝绿茶", "用户喜欢喝咖啡"),
        ("我对花生过敏", "我对芒果过敏"),
        ("User prefers tea", "User prefers coffee"),
        ("Anna leads the billing team", "Bob leads the billing team"),
        ("The service is written in Go", "The service is written in Rust"),
    ],
    "other value": [
        ("部署在 8080", "部署在 9090"),
        ("会议改到周三下午三点", "会议改到周四下午三点"),
        ("订单服务的数据库在五号机", "订单服务的数据库在六号机"),
        ("Python 3.11 is required", "Python 3.12 is required"),
        ("use X", "don't use X"),
        ("enable the cache for staging", "disable the cache for staging"),
    ],
}
BACKGROUND = [
    "Invoices are sent on the first of the month",
    "The office is closed on Fridays",
    "Momo, the cat, needs a vet",
    "Tests run on every push",
    "Release notes are written by Carla",
    "The staging server has 16 GB of memory",
    "每周五下午做代码评审",
    "磁盘满了就清理旧日志",
    "她最喜欢的城市是杭州",
    "新员工入职要申请门禁卡",
    "周报先写结论再列数据",
    "接口超时设为三十秒",
    "图片放在对象存储里",
    "爸爸的生日是三月五号",
    "Holidays are booked in the calendar",
    "The door code changes every month",
    "Lunch is at noon in the canteen",
    "Old branches are deleted after merging",
    "他正在学日语",
    "护照放在书房抽屉里",
    "健身房的卡下个月到期",
    "The printer on the second floor is out of paper",
]


EVERYTHING = 1_000_000  # groups and topics
LOOKS: dict[str, Callable[[Memory], int]] = {
    "open": lambda memory: memory.count(),
    "similar": lambda memory: len(memory.similar(limit=EVERYTHING)),
    "topics": lambda memory: len(memory.topics(limit=EVERYTHING)),
    "digest": lambda memory: len(memory.digest(since="2000-01-01", until="2030-01-01")),
    "stats": lambda memory: memory.stats(details=True).records,
}


def main() -> None:
    what, *arguments = sys.argv[1:] or ["scale"]
    if what == "scale":
        measure_scale(int(arguments[0]) if arguments else 100_000)
    elif what == "look" and len(arguments) == 2:
        look_into(Path(arguments[1]), arguments[0])
    elif what == "paraphrases":
        measure_paraphrases()
    elif what == "topics" and arguments:
        measure_topics(Path(arguments[0]))
    else:
        sys.exit(__doc__)


def measure_scale(count: int) -> None:
    """Fill a file with records of which one in ten repeats another but for little, and look into it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path, embedder=None) as memory:
            memory.add_many(make_records(count))
        for name in LOOKS:  # each in a process of its own, so that it has a peak of its own
            subprocess.run([sys.executable, __file__, "look", name, str(path)], check=True)


def look_into(path: Path, name: str) -> None:
    """Report what a look into a memory takes."""
    with Memory.open(path, embedder=None) as memory:
        started, used = time.perf_counter(), time.process_time()
        found = LOOKS[name](memory)
        took, used = time.perf_counter() - started, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:8} {took:7.1f} s ({used:.1f} s of processor), peak {peak:.0f} MB, {found} found", flush=True)


def measure_paraphrases() -> None:
    """Report the whitened cosines of pairs by what they have to do with each other, in memories of other texts."""
    others = list(make_texts(400, random.Random(1)))
    for count in (10, 20, 50, 100, 400):
        for kind, pairs in PAIRS.items():
            cosines = sorted(measure_pair(*pair, [*BACKGROUND, *others][: count - 2]) for pair in pairs)
            print(f"{count:4} texts  {kind:12} {' '.join(f'{cosine:.2f}' for cosine in cosines)}")


def measure_pair(one: str, other: str, background: Sequence[str]) -> float:
    with Memory.open(":memory:") as memory:
        memory.add_many({"text": text} for text in [one, other, *background])
        texts = read_texts(memory._engine.store, memory._select())
    places = {texts.rows[held[0]].text: text for text, held in enumerate(texts.holders)}
    return texts.meaning(places[one], places[other]) or 0.0


def measure_topics(folder: Path) -> None:
    """Report how well topics agree with labels: adjusted Rand index and normalised mutual information, 1 is best."""
    sys.path.insert(0, str(folder))
    for name, texts, labels in labelled_sets():
        for model in ("vectors", "keywords"):
            with Memory.open(":memory:", **({} if model == "vectors" else {"embedder": None})) as memory:
                memory.add_many({"text": text, "id": str(number)} for number, text in enumerate(texts))
                topics = memory.topics(limit=len(texts))
            numbers = [-1 - number for number in range(len(texts))]
            for number, topic in enumerate(topics):
                for id in topic.ids:
                    numbers[int(id)] = number
            rand, information = agree(numbers, labels)
            covered = sum(topic.size for topic in topics) / len(texts)
            print(
                f"{name:10} {model:9} {len(texts):5} texts, {len(set(labels)):4} labels, {len(topics):4} topics, "
                f"{covered:.0%} covered, ARI {rand:.2f}, NMI {information:.2f}"
            )


def labelled_sets() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the retrieval sets as texts with labels: passages with their questions, messages by conversation."""
    from load import load

    (_, docs, queries), *_ = load("cmrc2018")
    titles = set(random.Random(0).sample(sorted({doc["session"] for doc in docs}), 120))
    of = {doc["id"]: doc["session"] for doc in docs}
    texts = [(doc["text"][:200], doc["session"]) for doc in docs]
    texts += [(query["text"], of[query["relevant"][0]]) for query in queries]
    yield "cmrc2018", *map(list, zip(*[pair for pair in texts if pair[1] in titles], strict=True))
    cases = random.Random(0).sample(list(load("memdaily", 0)), 40)
    texts = [(doc["text"], case) for case, docs, _ in cases for doc in docs]
    yield "memdaily", *map(list, zip(*texts, strict=True))
    texts = [(doc["text"], case) for case, docs, _ in load("locomo") for doc in docs]
    yield "locomo", *map(list, zip(*texts, strict=True))


def agree(ones: Sequence[Hashable], others: Sequence[Hashable]) -> tuple[float, float]:
    """Return the adjusted Rand index and the normalised mutual information of two labellings."""
    left, right = (np.unique(labels, return_inverse=True)[1] for labels in (ones, others))
    table = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(table, (left, right), 1)
    rows, columns, total = table.sum(1), table.sum(0), len(left)
    pairs, of_rows, of_columns = ((sums * (sums - 1)).sum() / 2 for sums in (table, rows, columns))
    expected = of_rows * of_columns / (total * (total - 1) / 2)
    rand = (pairs - expected) / ((of_rows + of_columns) / 2 - expected)
    held = table[table > 0] / total
    information = (held * np.log(held * total**2 / np.outer(rows, columns)[table > 0])).sum()
    entropies = [-(sums / total * np.log(sums / total)).sum() for sums in (rows, columns)]
    return float(rand), float(2 * information / sum(entropies))


def make_records(count: int) -> Iterator[dict[str, object]]:
    """Yield records with vectors in a narrow cone, as those of embedding models are."""
    rng = random.Random(1)
    numbers = np.random.default_rng(1)
    cone = numbers.standard_normal(DIMENSIONS)
    texts = list(make_texts(count, rng))
    originals: list[tuple[str, np.ndarray]] = []
    for number in range(count):
        if originals and rng.random() < COPIES:
            source, vector = rng.choice(originals)
            text, vector = f"{source} again", vector + 0.05 * numbers.standard_normal(DIMENSIONS)
        else:
            text, vector = texts[number], 2 * cone + numbers.standard_normal(DIMENSIONS)
            originals.append((text, vector))
        yield {"text": text, "vector": vector.tolist(), "created_at": 1_700_000_000 + 60 * number}


if __name__ == "__main__":
    main()
