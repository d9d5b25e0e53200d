"""Which stores the adopted conformance checks run against."""

from __future__ import annotations

import asyncio

import hypothesis
import pytest
from stores import STORES

# The same examples every time, however long they take.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")


def pytest_generate_tests(metafunc):
    if "spec" in metafunc.fixturenames:
        metafunc.parametrize("spec", STORES, ids=[spec.name for spec in STORES])


def pytest_collection_modifyitems(items):
    for item in items:
        spec = item.callspec.params.get("spec") if hasattr(item, "callspec") else None
        reason = spec and spec.known_failures.get(item.originalname)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(autouse=True)
def loop():
    """Give LlamaIndex's sync methods a loop to use, since nobody closes one that they make."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def opened():
    """Take what has to be closed when a test ends."""
    things = []
    yield things
    for thing in reversed(things):
        thing.close()


@pytest.fixture
def store(spec, tmp_path, opened):
    store = spec.make(tmp_path)
    opened.append(store)
    return store
