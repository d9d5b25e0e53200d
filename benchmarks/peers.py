"""How other stores do the work of retrieval.py and speed.py, beside recall_core in the same run.

    python benchmarks/peers.py DATA [--peer NAME] [--set NAME] [--sizes 1000 10000] [--cases N] [--questions N]

DATA is a folder as retrieval.py takes it. Each text gets one vector, made once by the model that ships with
recall_core and given to all. Each case is a scope of its own (a metadata filter, a user_id) in one store per set. Each
store runs in a process of its own; a crash is told in its place and ends nothing. `--limit` seconds end a step that
takes longer; what was left out is told. `--set none` or `--sizes 0` leave out one half.

Times are without embedding. Peak memory has in brackets what the process held before it opened the store: numpy, the
texts and the vectors. A cold start is a new process that opens the filled store and answers one question; MB are its.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peer_stores import QUIET, STORES, describe, missing_modules, peak_megabytes, spoken
from retrieval import HEAD, Score, load_cases, make_records
from speed import SCOPE_SHARE, SEED, make_texts, make_vectors

from recall_core import NewRecord
from recall_core.embedding import load_bundled

Vectors = NDArray[np.float32]
Send = Callable[[str, Any], None]

SETS = ("locomo", "memdaily", "cmrc2018", "notes")
DIMENSIONS = 384
QUERIES = 100
ADDS = 50
ENGLISH = ("locomo",)  # the sets without Chinese
COLD_RUNS = 3

# A new process that opens a store and asks one question: seconds to import, the time of the answer, its memory.
COLD = """
import importlib, json, sys, time
from pathlib import Path
from peer_stores import STORES, peak_megabytes
name, folder, text = sys.argv[1:]
vector = json.load(sys.stdin)
store = STORES[name]()
started = time.perf_counter()
importlib.import_module(store.modules[0])
imported = time.perf_counter() - started
store.open(Path(folder), "zh")
found = store.search(text, vector, None)
answered, memory = time.time(), peak_megabytes()
assert found, "nothing found"
store.close()
print(json.dumps([imported, answered, memory]))
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one case of a set."""

    case: int
    scope: str
    text: str
    vector: Vectors
    relevant: frozenset[str]


@dataclass(slots=True)
class Trial:
    """A set with its vectors: the records of each case, and questions in the order of the cases."""

    cases: list[list[NewRecord]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """What a process told before it ended, by step, and how it failed."""

    told: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def run_apart(work: Callable[..., None], arguments: Sequence[Any], limit: float) -> Report:
    """Run `work(send, *arguments)` in a new process and return what it sent, also if it crashed or got stuck."""
    report = Report()
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, work, *arguments))
    process.start()
    sender.close()
    try:
        while receiver.poll(2 * limit + 60):
            step, value = receiver.recv()
            report.told[step] = value
        process.kill()
        report.failure = f"stopped: a step took longer than {2 * limit + 60:.0f} s"
    except EOFError:
        pass
    process.join()
    if process.exitcode and not report.failure:
        report.failure = report.told.pop("failure", f"the process died with exit code {process.exitcode}")
    return report


def _work(sender: Any, work: Callable[..., None], *arguments: Any) -> None:
    try:
        work(lambda step, value: sender.send((step, value)), *arguments)
    except Exception as error:
        sender.send(("failure", f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"))
        sys.exit(1)


# Retrieval


def make_trial(data: Path, name: str, cases: int | None, questions: int | None) -> Trial:
    """Load a set and give each text its vector. `questions` are taken evenly from all."""
    trial, asked = Trial(), []
    for number, (case, docs, queries) in enumerate(load_cases(data, name)):
        if cases is not None and number >= cases:
            break
        scope = case.replace("/", "-")
        trial.cases.append(list(make_records(scope, docs, name)))
        asked += [(number, scope, query) for query in queries]
    if questions is not None and len(asked) > questions:
        asked = [asked[position * len(asked) // questions] for position in range(questions)]
    model = load_bundled()
    texts = list(dict.fromkeys(spoken(record) for case in trial.cases for record in case))
    vectors = dict(zip(texts, model.embed_passages(texts), strict=True))
    trial.cases = [[replace(record, vector=vectors[spoken(record)]) for record in case] for case in trial.cases]
    near = model.embed_queries([query["text"] for *_, query in asked])
    for (number, scope, query), vector in zip(asked, near, strict=True):
        relevant = frozenset(f"{scope}:{id}" for id in query["relevant"])
        trial.questions.append(Question(number, scope, query["text"], vector, relevant))
    return trial


def answer(send: Send, name: str, language: str, trial: Trial, folder: Path, limit: float) -> None:
    """Store a set's cases and ask its questions, each step for at most `limit` seconds."""
    store = STORES[name]()
    store.open(folder, language)
    loaded = 0

    def records() -> Iterator[NewRecord]:
        nonlocal loaded
        until = time.perf_counter() + limit
        for case in trial.cases:
            if time.perf_counter() > until:
                return
            yield from case
            loaded += 1

    started = time.perf_counter()
    store.add_many(records())
    send("loaded", (loaded, time.perf_counter() - started))
    answers: dict[int, list[str]] = {}
    errors: list[str] = []
    started = time.perf_counter()
    for number, question in enumerate(trial.questions):
        if question.case >= loaded or time.perf_counter() - started > limit:
            break
        try:
            answers[number] = store.search(question.text, question.vector.tolist(), question.scope)
        except Exception as error:
            answers[number] = []
            errors.append(f"{type(error).__name__}: {error}"[:160])
    send("asked", (answers, time.perf_counter() - started, errors))
    store.close()


def compare_answers(data: Path, name: str, peers: Sequence[str], arguments: argparse.Namespace) -> None:
    """Print a row of figures for each store, and recall_core's on the same questions where a store left some out."""
    trial = make_trial(data, name, arguments.cases, arguments.questions)
    records = sum(map(len, trial.cases))
    print(f"\n{name}: {records:,} records in {len(trial.cases)} scopes, {len(trial.questions):,} questions", flush=True)
    print(HEAD.replace("mode", "peer"))
    own: dict[int, list[str]] = {}
    language = "en" if name in ENGLISH else "zh"
    for peer in peers:
        with tempfile.TemporaryDirectory() as folder:
            report = run_apart(answer, (peer, language, trial, Path(folder), arguments.limit), arguments.limit)
        answers, seconds, errors = report.told.get("asked", ({}, 0.0, []))
        if not answers:
            print(f"{peer:24} {report.failure or 'answered nothing within the limit'}", flush=True)
            continue
        loaded, loading = report.told["loaded"]
        timing = f"{seconds / len(answers) * 1000:.1f} ms, loaded in {loading:.0f} s"
        print(f"{peer:24} {rate(trial, answers).row()}  {timing}", flush=True)
        for note in (report.failure, f"{len(errors)} searches raised, the first {errors[0]}" if errors else ""):
            print(f"  {note}\n" if note else "", end="")
        if peer == "recall_core":
            own = answers
        if len(answers) < len(trial.questions):
            left = f"only {loaded} of {len(trial.cases)} scopes and {len(answers)} questions within the limit"
            print(f"  {left}")
            if peer != "recall_core" and answers.keys() <= own.keys():
                same = rate(trial, {number: own[number] for number in answers})
                print(f"  {'recall_core on the same':22} {same.row()}", flush=True)


def rate(trial: Trial, answers: dict[int, list[str]]) -> Score:
    """Return the figures of the questions that were answered."""
    score = Score()
    for number, found in answers.items():
        score.add(found, set(trial.questions[number].relevant))
    return score


# Speed


def work_hard(send: Send, name: str, data: Path, folder: Path, limit: float) -> None:
    """Fill a store, search it, add to it; each step for at most `limit` seconds."""
    texts, vectors = json.loads((data / "texts.json").read_text(encoding="utf-8")), np.load(data / "vectors.npy")
    asked, near = json.loads((data / "asked.json").read_text(encoding="utf-8")), np.load(data / "near.npy")
    send("before", peak_megabytes())
    store = STORES[name]()
    store.open(folder, "zh")
    added = 0

    def record(number: int, id: str) -> NewRecord:
        scope = "small" if number % SCOPE_SHARE == 7 else "large"
        return NewRecord(text=texts[number], id=id, scope=scope, vector=vectors[number])

    def records() -> Iterator[NewRecord]:
        nonlocal added
        until = time.perf_counter() + limit
        while added < len(texts) and time.perf_counter() < until:
            yield record(added, str(added))
            added += 1

    store.add(record(0, "first"))  # what is loaded once, models and dictionaries, is no part of the speed
    started = time.perf_counter()
    store.add_many(records())
    send("bulk", (added, time.perf_counter() - started))
    queries = [(texts[number], vector.tolist()) for number, vector in zip(asked, near, strict=True)]
    store.search(*queries[0], None)
    send("whole", time_each(lambda n: store.search(*queries[n], None), len(queries), limit))
    send("scoped", time_each(lambda n: store.search(*queries[n], "small"), len(queries), limit))
    send("add", time_each(lambda n: store.add(record(n, f"again {n}")), ADDS, limit))
    send("peak", peak_megabytes())
    store.close()
    send("disk", sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))


def time_each(run: Callable[[int], object], count: int, limit: float) -> list[float]:
    """Return the milliseconds of `run(0)`, `run(1)`, ... until the limit."""
    times: list[float] = []
    until = time.perf_counter() + limit
    while len(times) < count and time.perf_counter() < until:
        started = time.perf_counter()
        run(len(times))
        times.append((time.perf_counter() - started) * 1000)
    return times


def start_cold(name: str, folder: Path, text: str, vector: Sequence[float]) -> tuple[float, float, float]:
    """Return the medians of several new processes: seconds to import, seconds to the first result, megabytes then."""
    runs = []
    for _ in range(COLD_RUNS):
        command, started = [sys.executable, "-c", COLD, name, str(folder), text], time.time()
        done = subprocess.run(
            command, input=json.dumps(vector), check=True, capture_output=True, text=True, cwd=Path(__file__).parent
        )
        imported, answered, memory = json.loads(done.stdout.splitlines()[-1])
        runs.append((imported, answered - started, memory))
    imports, firsts, memories = zip(*runs, strict=True)
    return statistics.median(imports), statistics.median(firsts), statistics.median(memories)


def compare_speed(size: int, peers: Sequence[str], limit: float) -> None:
    """Print what each store takes for `size` records with vectors given: short texts, Chinese and English by turns."""
    with tempfile.TemporaryDirectory() as data:
        folder, rng = Path(data), random.Random(SEED)
        texts, vectors = list(make_texts(size, rng)), make_vectors(size, DIMENSIONS)
        asked = [rng.randrange(size) for _ in range(QUERIES)]
        noise = np.random.default_rng(SEED + 1).normal(size=(QUERIES, DIMENSIONS)).astype(np.float32)
        near = vectors[asked] + 0.3 * noise / np.sqrt(DIMENSIONS)
        for file, values in (("texts.json", texts), ("asked.json", asked)):
            (folder / file).write_text(json.dumps(values), encoding="utf-8")
        for file, array in (("vectors.npy", vectors), ("near.npy", near)):
            np.save(folder / file, array)
        payload = sum(len(text.encode()) for text in texts) + vectors.nbytes
        print(f"\n{size:,} records, {payload / 2**20:.1f} MB of text and vectors; p50 / p95 in ms")
        print(f"{'peer':12} {'bulk rows/s':>11} {'add':>15} {'search':>15} {'in 1 %':>15} {'disk MB':>8}", end="")
        print(f" {'peak MB':>11} {'import s':>9} {'cold s':>7} {'cold MB':>8}", flush=True)
        for peer in peers:
            with tempfile.TemporaryDirectory() as place:
                report = run_apart(work_hard, (peer, folder, Path(place), limit), limit)
                cold = None
                if not report.failure:
                    try:
                        cold = start_cold(peer, Path(place), texts[asked[0]], near[0].tolist())
                    except subprocess.CalledProcessError as error:
                        last = (error.stderr.strip().splitlines() or ["no message"])[-1][:200]
                        report.failure = f"cold start: exit code {error.returncode}, {last}"
            print_speed(peer, size, report, cold)


def print_speed(peer: str, size: int, report: Report, cold: tuple[float, float, float] | None) -> None:
    """Print a row of a store with a dash for what it did not reach, and notes below."""
    told = report.told
    added, seconds = told.get("bulk", (0, 0.0))
    bulk = f"{added / seconds:,.0f}" if added else "-"
    cells = " ".join(f"{spread(told.get(step)):>15}" for step in ("add", "whole", "scoped"))
    disk = f"{told['disk'] / 2**20:.1f}" if "disk" in told else "-"
    peak = f"{told['peak']:.0f} ({told['before']:.0f})" if "peak" in told else "-"
    starts = f"{cold[0]:9.3f} {cold[1]:7.3f} {cold[2]:8.0f}" if cold else f"{'-':>9} {'-':>7} {'-':>8}"
    print(f"{peer:12} {bulk:>11} {cells} {disk:>8} {peak:>11} {starts}")
    notes = [report.failure] if report.failure else []
    if 0 < added < size:
        notes.append(f"only {added:,} of {size:,} records within the limit")
    for step, count in (("whole", QUERIES), ("scoped", QUERIES), ("add", ADDS)):
        if len(told.get(step, [0] * count)) < count:
            notes.append(f"{step}: {len(told[step])} of {count} within the limit")
    print("".join(f"  {note}\n" for note in notes), end="", flush=True)


def spread(times: Sequence[float] | None) -> str:
    """Return the median and the 95th percentile."""
    if not times:
        return "-"
    p50, p95 = np.percentile(times, [50, 95])
    return f"{p50:.2f} / {p95:.2f}"


def choose_peers(names: Sequence[str]) -> list[str]:
    """Return the peers that are installed, and say of the others how to get them."""
    chosen = []
    for name in names:
        missing = missing_modules(STORES[name])
        if missing:
            print(f"{name}: passed over, not installed: {', '.join(missing)}. Get it with: {STORES[name].install}")
        else:
            print(describe(STORES[name]))
            chosen.append(name)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--peer", choices=list(STORES), action="append", dest="peers")
    parser.add_argument("--set", choices=(*SETS, "none"), action="append", dest="sets")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], help="0 for none")
    parser.add_argument("--cases", type=int, help="only the first so many cases of a set")
    parser.add_argument("--questions", type=int, help="only so many questions of a set, taken evenly")
    parser.add_argument("--limit", type=float, default=180, help="seconds for one step")
    arguments = parser.parse_args()
    os.environ.update(QUIET)
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    peers = choose_peers(arguments.peers or list(STORES))
    for name in arguments.sets or SETS:
        if name != "none":
            compare_answers(arguments.data, name, peers, arguments)
    for size in arguments.sizes:
        if size > 0:
            compare_speed(size, peers, arguments.limit)


if __name__ == "__main__":
    main()
