"""Whose memory is it, and which ones count: scopes as boundaries, filters on everything that is stored."""

import tempfile
from pathlib import Path

from recall_core import Memory, errors, escape_segment

with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "agent.db") as memory:
    alice = memory.scoped("user/alice")  # this view can't read or write anywhere else
    alice.add("I am allergic to peanuts.", tags=["health"], metadata={"stars": 5}, created_at="2026-01-10")
    alice.add("I like peanut butter ice cream.", tags=["food"], metadata={"stars": 2}, created_at="2025-03-01")
    alice.add("Peanuts are on the shopping list.", scope="home", metadata={"stars": 3}, ttl=3600)
    memory.scoped("user/bob").add("I eat peanuts every day.", tags=["food"])

    def show(what, hits):
        print(f"{what:30} {[hit.record.text for hit in hits]}")

    show("all of alice", alice.search("peanuts"))
    show("below alice: home", alice.search("peanuts", scope="home"))
    show("tag", alice.search("peanuts", tags=["health"]))
    show("stars of 3 and more", alice.search("peanuts", where={"stars": {"$gte": 3}}))
    show(
        "tagged, and alice's own scope",
        alice.search("peanuts", where={"@tags": {"$empty": False}, "@scope": "user/alice"}),
    )
    show("made in 2026", alice.search("peanuts", since="2026-01-01", until="2026-02-01"))
    print("users, seen from above:", memory.count("user"), "records")

    try:
        alice.search("peanuts", scope="../bob")
    except errors.InvalidInputError as error:
        print("refused:", error)
    print("a name from outside as a segment:", "user/" + escape_segment("bob/../alice"))
