"""Carries out the requests of an HTTP embedder with httpx, in threads or in asyncio, a few at a time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from recall_core.errors import ClosedError

from .exchange import Call, Link, Pause, Piece, Send, Steps, embed_batch
from .providers import HttpSpec
from .retries import read_retry_after
from .wire import Reply

if TYPE_CHECKING:
    import httpx

_JSON = {"Content-Type": "application/json", "Accept": "application/json"}


class Gate:
    """Lets a number of threads through at a time, urgent ones first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inside = 0
        self._urgent = 0
        self._changed = threading.Condition()

    def enter(self, *, urgent: bool, timeout: float | None = None) -> bool:
        """Wait for a place and take it, to be given back with `leave`; False if there was none in time."""
        with self._changed:
            self._urgent += urgent
            free = False
            try:
                free = self._changed.wait_for(
                    lambda: self._inside < self._limit and (urgent or not self._urgent), timeout
                )
            finally:  # whoever waits may be interrupted
                self._urgent -= urgent
                self._inside += free
                if not free:
                    self._changed.notify_all()
            return free

    def leave(self) -> None:
        """Give a place back."""
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()


class ThreadTransport:
    """Requests in threads, for one process: after a fork the child makes one of its own."""

    def __init__(self, spec: HttpSpec, link: Link) -> None:
        self._spec = spec
        self._link = link
        self._gate = Gate(spec.max_in_flight)
        self._turn = threading.Lock()  # held by the thread whose request starts next
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def run(self, call: Call, batches: Sequence[Sequence[Piece]]) -> None:
        """Embed batches, several at once, until all are done or the call is stopped."""
        waiting = deque(batches)
        errors: list[BaseException] = []

        def work() -> None:
            with suppress(IndexError):
                while not errors:
                    batch = waiting.popleft()
                    try:
                        self._drive(embed_batch(self._spec, self._link, call, batch), call)
                    except BaseException as error:  # raised again by the caller's thread
                        errors.append(error)
                        call.stop()

        # The caller's thread works as well, so that one batch needs no other, and none can be had at a program's end.
        threads = [
            threading.Thread(target=work, name="recall-core-http", daemon=True)
            for _ in range(min(self._spec.max_in_flight, len(batches)) - 1)
        ]
        try:
            with suppress(RuntimeError):
                for thread in threads:
                    thread.start()
            work()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        except BaseException:
            call.stop()
            raise
        if errors:
            raise errors[0]

    def close(self) -> None:
        """End pauses and requests; whoever waits for them gets ClosedError."""
        self._closed.set()
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _drive(self, steps: Steps, call: Call) -> None:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self._wait(step.seconds)
                    step = next(steps)
                else:
                    step = steps.send(self._send(step, call))
        except StopIteration:
            return

    def _send(self, step: Send, call: Call) -> Reply:
        if call.kind == "query":
            limit = _time_left(self._spec, call)
            if not self._gate.enter(urgent=True, timeout=limit):
                return _no_place(self._spec, limit)
            try:
                return self._post(step, call)
            finally:
                self._gate.leave()
        with self._turn:
            while (left := self._link.pace.remaining()) > 0:
                self._wait(left)
            self._gate.enter(urgent=False)
            self._link.pace.started(step.interval)
        try:
            return Reply(broken="the call was stopped") if call.stopped else self._post(step, call)
        finally:
            self._gate.leave()

    def _post(self, step: Send, call: Call) -> Reply:
        import httpx

        limit = _time_left(self._spec, call)
        end = time.monotonic() + limit
        try:
            client = self._open_client()
            with client.stream("POST", step.url, content=step.body, timeout=limit) as answer:
                body = bytearray()
                for data in answer.iter_bytes():
                    body += data
                    if time.monotonic() > end:  # httpx limits each read, not their sum
                        raise httpx.ReadTimeout("")
            return Reply(answer.status_code, bytes(body), read_retry_after(answer.headers))
        except (httpx.HTTPError, httpx.StreamError, RuntimeError) as error:
            self._check_open()
            return _explain(error, limit)

    def _wait(self, seconds: float) -> None:
        self._closed.wait(seconds)
        self._check_open()

    def _open_client(self) -> httpx.Client:
        import httpx

        with self._lock:
            self._check_open()
            if self._client is None:
                self._client = httpx.Client(headers=_make_headers(self._spec), limits=_make_limits(self._spec))
            return self._client

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise closed_error()


class LoopTransport:
    """Requests in one event loop."""

    def __init__(self, spec: HttpSpec, link: Link) -> None:
        import httpx

        self._spec = spec
        self._link = link
        self._slots = asyncio.Semaphore(spec.max_in_flight)
        # Passages queue here, so that a query waits behind a few requests and not behind all of them.
        self._passages = asyncio.Semaphore(spec.max_in_flight)
        self._turn = asyncio.Lock()
        self._client = httpx.AsyncClient(headers=_make_headers(spec), limits=_make_limits(spec))

    async def run(self, call: Call, batches: Sequence[Sequence[Piece]]) -> None:
        """Embed batches, several at once, until all are done or the call is stopped."""
        steps = [embed_batch(self._spec, self._link, call, batch) for batch in batches]
        try:
            await asyncio.gather(*(self._drive(step, call) for step in steps))
        except BaseException:
            call.stop()
            raise

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _drive(self, steps: Steps, call: Call) -> None:
        if call.kind == "query":
            await self._take_steps(steps, call)
            return
        async with self._passages:
            await self._take_steps(steps, call)

    async def _take_steps(self, steps: Steps, call: Call) -> None:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = next(steps)
                else:
                    step = steps.send(await self._send(step, call))
        except StopIteration:
            return

    async def _send(self, step: Send, call: Call) -> Reply:
        if call.kind == "query":
            limit = _time_left(self._spec, call)
            try:
                await asyncio.wait_for(self._slots.acquire(), limit)
            except TimeoutError:
                return _no_place(self._spec, limit)
            try:
                return await self._post(step, call)
            finally:
                self._slots.release()
        async with self._turn:
            while (left := self._link.pace.remaining()) > 0:
                await asyncio.sleep(left)
            await self._slots.acquire()
            self._link.pace.started(step.interval)
        try:
            return Reply(broken="the call was stopped") if call.stopped else await self._post(step, call)
        finally:
            self._slots.release()

    async def _post(self, step: Send, call: Call) -> Reply:
        import httpx

        limit = _time_left(self._spec, call)
        try:
            async with asyncio.timeout(limit):
                answer = await self._client.post(step.url, content=step.body, timeout=limit)
            return Reply(answer.status_code, answer.content, read_retry_after(answer.headers))
        except TimeoutError:
            return _explain(httpx.ReadTimeout(""), limit)
        except (httpx.HTTPError, httpx.StreamError, RuntimeError) as error:
            if self._client.is_closed:
                raise closed_error() from None
            return _explain(error, limit)


def closed_error() -> ClosedError:
    """Return the error of an embedder that is used after it was closed."""
    return ClosedError("this HttpEmbedder was closed; make another one")


def _time_left(spec: HttpSpec, call: Call) -> float:
    if call.deadline is None:
        return spec.timeout
    return max(0.001, min(spec.timeout, call.deadline - time.monotonic()))


def _no_place(spec: HttpSpec, limit: float) -> Reply:
    return Reply(broken=f"all {spec.max_in_flight} requests that may run at a time were taken for {limit:.3g} s")


def _explain(error: Exception, limit: float) -> Reply:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return Reply(broken=f"no answer within {limit:.3g} s ({type(error).__name__})")
    return Reply(broken=f"the connection failed ({type(error).__name__}: {error})")


def _make_headers(spec: HttpSpec) -> dict[str, str]:
    return _JSON | {name: secret.reveal() for name, secret in spec.headers.items()}


def _make_limits(spec: HttpSpec) -> httpx.Limits:
    import httpx

    return httpx.Limits(max_connections=None, max_keepalive_connections=spec.max_in_flight)
