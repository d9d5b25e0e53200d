"""The same memory for asyncio: every call runs in a worker thread, the event loop goes on."""

import asyncio
import tempfile
from pathlib import Path

from recall_core import AsyncMemory


async def tick(counts):
    while True:
        await asyncio.sleep(0.001)
        counts.append(1)


async def main(path):
    async with await AsyncMemory.open(path) as memory:
        ticks = []
        ticking = asyncio.create_task(tick(ticks))
        await asyncio.gather(*(memory.add(f"The service in rack {rack} restarts at {rack}:30.") for rack in range(8)))
        searches = [memory.search(question, limit=1) for question in ("rack 5", "6 号机架什么时候重启？")]
        for hits in await asyncio.gather(*searches):
            print(hits[0].record.text)
        ticking.cancel()
        print("the loop went on meanwhile:", bool(ticks))

        talk = await memory.session("today", title="Restarts")
        await talk.append("user", "Which rack restarts first?", turn=1)
        print(await talk.title(), [message.text for message in await talk.messages()])


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(Path(folder) / "agent.db"))
