"""A process that was forked has memories of its own connections, not those of its parent."""

from __future__ import annotations

from agents import call
from fork_support import forks, in_child

pytestmark = forks


def test_an_agent_goes_on_in_a_forked_child_and_in_its_parent(hosts):
    manager = hosts.start()
    hosts.say(manager, "The boiler is in the cellar.")
    later = hosts.start("s2")
    assert "cellar" in later.prefetch_all("Where is the boiler?")

    def work():
        found = later.prefetch_all("Where is the boiler?")
        provider = later.providers[-1]
        provider.sync_turn("The ladder is in the attic.", "Noted.")
        provider.shutdown()
        return found

    assert "cellar" in in_child(work)
    assert "attic" in later.prefetch_all("Where is the ladder?")
    assert "cellar" in later.prefetch_all("Where is the boiler?")
    assert call(later, "status")["last failure"] is None


def test_a_new_agent_starts_in_a_forked_child(hosts):
    hosts.say(hosts.start(), "The boiler is in the cellar.")

    def work():
        return hosts.start("s2").prefetch_all("Where is the boiler?")

    assert "cellar" in in_child(work)
