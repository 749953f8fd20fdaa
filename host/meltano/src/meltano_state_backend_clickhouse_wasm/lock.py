"""A lock that this process holds."""

from __future__ import annotations

import os
import socket
import threading
import typing as t

import structlog

from meltano_state_backend_clickhouse_wasm.component import record
from meltano_state_backend_clickhouse_wasm.errors import ClickHouseStateError

if t.TYPE_CHECKING:
    from wasmtime.component import Record

    from meltano_state_backend_clickhouse_wasm.component import Instance

logger = structlog.stdlib.get_logger(__name__)


class HeldLock:
    """The lock of a state id. It is renewed by a thread of its own until it is released.

    States that are written through it are written only while it is held, by the server's judgement.
    """

    def __init__(
        self, instance: Instance, state_id: str, renewal_seconds: float, retry_seconds: float | None = None
    ) -> None:
        """Take the lock, or wait for it.

        Raises:
            ClickHouseStateLockedError: If another holds it for too long.
        """
        self.state_id = state_id
        self._instance = instance
        options = record(
            wait_seconds=None,
            retry_seconds=None if retry_seconds is None else float(retry_seconds),
            stale_seconds=None,
            owner=f"meltano@{socket.gethostname()}, process {os.getpid()}",
        )
        self._lock = instance.call("locking", "acquire", state_id, options)
        self._released = threading.Event()
        renewal = threading.Thread(target=self._renew_every, args=(renewal_seconds,), daemon=True)
        renewal.start()

    def write(self, how: str, state: Record) -> None:
        """Write a state of this id, with the method `set` or `update` of the component's lock."""
        self._call(how, state)

    def release(self) -> None:
        """Give the lock up. If that fails, it lasts until it is stale, and nobody has to care but who waits for it."""
        with self._instance.turn:
            if self._released.is_set():
                return
            self._released.set()
            try:
                self._call("release")
                self._instance.drop(self._lock)
            except ClickHouseStateError as error:
                logger.warning(
                    "The lock is not released and lasts until it is stale: %s", error, state_id=self.state_id
                )

    def _renew_every(self, seconds: float) -> None:
        while not self._released.wait(seconds):
            with self._instance.turn:
                if self._released.is_set():
                    return
                try:
                    self._call("renew")
                except ClickHouseStateError as error:
                    logger.warning("The lock is not renewed: %s", error, state_id=self.state_id)
                    if error.kind in ("lock-lost", "trap"):
                        return

    def _call(self, method: str, *arguments: t.Any) -> None:
        self._instance.call("locking", f"[method]lock.{method}", self._lock, *arguments)
