"""What forked children and threads share: locks, values that are computed once, the names of owners."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading

import pytest
from store_support import embedder
from support import LIMIT

from recall_core import Memory
from recall_core.forks import Lock, lazy

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


class Lazy:
    def __init__(self):
        self.begun, self.go = threading.Barrier(3), threading.Event()

    @lazy
    def value(self):
        self.begun.wait(LIMIT)
        self.go.wait(LIMIT)
        return object()


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads, which is what is tested
def test_a_lock_that_a_thread_of_the_parent_holds_is_free_in_a_child():
    lock, held, go = Lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            go.wait(LIMIT)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(LIMIT)
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(7)
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_lock_keeps_threads_apart():
    lock, inside = Lock(), []

    def work():
        for _ in range(200):
            with lock:
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == []


def test_a_copy_of_a_lock_is_a_lock_of_its_own():
    lock = Lock()
    with lock, copy.deepcopy(lock), pickle.loads(pickle.dumps(lock)):
        pass


def test_a_lazy_value_computed_by_two_threads_at_once_is_one_value():
    one, seen = Lazy(), []
    threads = [threading.Thread(target=lambda: seen.append(one.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    one.begun.wait(LIMIT)  # both compute, neither keeps the other waiting
    one.go.set()
    for thread in threads:
        thread.join()
    assert len({*map(id, seen), id(one.value)}) == 1


def test_threads_that_add_at_the_same_moment_never_clash(db_path):
    faults, interval = [], sys.getswitchinterval()

    def work():
        try:
            for number in range(30):
                memory.add(f"text {number}")
        except Exception as error:
            faults.append(error)

    with Memory.open(db_path, embedder=embedder()) as memory:
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert faults == []
        assert (memory.count(), memory.flush()) == (240, 0)
