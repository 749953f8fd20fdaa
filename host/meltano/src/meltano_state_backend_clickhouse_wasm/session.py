"""What the managers of a process share."""

from __future__ import annotations

import threading
import typing as t
import weakref
from collections import defaultdict
from contextlib import contextmanager

from meltano_state_backend_clickhouse_wasm.component import Instance
from meltano_state_backend_clickhouse_wasm.lock import HeldLock
from meltano_state_backend_clickhouse_wasm.settings import renewal_seconds

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_sessions: weakref.WeakValueDictionary[frozenset, Session] = weakref.WeakValueDictionary()
_sessions_turn = threading.Lock()


class Session:
    """An instance of the component and the locks that this process holds through it.

    Managers with the same settings share one. Meltano makes a manager for each plugin that it starts and closes only
    some of them; so none could know whether the lock that it waits for is held by another one in this process.

    An instance that has stopped is of no use any more: its session is left for a new one, and its locks last until they are
    stale.

    When the last of them is closed or forgotten, or the process ends, the locks are released.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Make a session of one's own; see `Session.shared`."""
        self.instance = Instance(settings)
        self.held: dict[str, HeldLock] = {}
        self._settings = settings
        self._turns: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        weakref.finalize(self, _release_all, self.held)

    @classmethod
    def shared(cls, settings: Mapping[str, str]) -> Session:
        """The session of all who use these settings."""
        key = frozenset(settings.items())
        with _sessions_turn:
            session = _sessions.get(key)
            if session is None or session.instance.stopped:
                session = _sessions[key] = cls(settings)
        return session

    @contextmanager
    def turn(self, state_id: str) -> Iterator[None]:
        """Keep other threads from what needs the lock of a state id. One that waited in the component would keep the
        holder from releasing it."""
        with self._turns[state_id]:
            yield

    def hold(self, state_id: str, retry_seconds: float | None = None) -> HeldLock:
        """The lock of a state id; taken, unless it is held."""
        if state_id not in self.held:
            self.held[state_id] = HeldLock(self.instance, state_id, renewal_seconds(self._settings), retry_seconds)
        return self.held[state_id]

    def give_up(self, state_id: str) -> None:
        """Release the lock of a state id, if it is held."""
        if lock := self.held.pop(state_id, None):
            lock.release()


def _release_all(held: dict[str, HeldLock]) -> None:
    while held:
        held.popitem()[1].release()
