"""The state backend, as Meltano calls it."""

from __future__ import annotations

import json
import typing as t
from contextlib import contextmanager

import structlog
from meltano.core.project import Project
from meltano.core.state_store import MeltanoState, StateStoreManager

from meltano_state_backend_clickhouse_wasm import settings
from meltano_state_backend_clickhouse_wasm.component import record
from meltano_state_backend_clickhouse_wasm.errors import ClickHouseStateError, from_component
from meltano_state_backend_clickhouse_wasm.session import Session

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wasmtime.component import Record

logger = structlog.stdlib.get_logger(__name__)


class ClickHouseStateStoreManager(StateStoreManager):
    """Keeps states in ClickHouse. Nothing is sent before the first call, and settings are checked then."""

    label = "ClickHouse"

    def __init__(self, uri: str | None = None, *, lock_per_run: bool | str | None = None, **kwargs: t.Any) -> None:
        """Take the settings as Meltano passes them.

        Args:
            uri: `state_backend.uri`.
            lock_per_run: Keep the lock of a state id from its first update until the run ends.
            kwargs: The other settings of `state_backend.clickhouse` and of `state_backend`, by the last part of their
                names.
        """
        super().__init__(**kwargs)
        self._settings = settings.for_component(uri, kwargs)
        self._lock_per_run = lock_per_run
        self._opened: Session | None = None

    @property
    def _session(self) -> Session:
        if self._opened is None or self._opened.instance.stopped:
            self._opened = Session.shared(self._settings)
        return self._opened

    def close(self) -> None:
        """Let go of the component. May be repeated, and a later call opens it again."""
        self._opened = None

    def get(self, state_id: str) -> MeltanoState | None:
        """The state of an id, or none."""
        stored = self._store("get", state_id)
        return _from_record(stored) if stored else None

    def get_all(self, pattern: str | None = None) -> Iterator[MeltanoState]:
        """All states whose ids match a shell glob, in the order of their ids."""
        after = None
        while page := self._store("get-all", pattern, after, None):
            for entry in map(vars, page):
                content = entry["content"]
                if content.tag == "err":
                    raise from_component(content.payload)
                yield _from_record(content.payload)
            after = entry["state-id"]

    def get_state_ids(self, pattern: str | None = None) -> list[str]:
        """The ids that match a shell glob, sorted."""
        return self._store("get-state-ids", pattern)

    def set(self, state: MeltanoState) -> None:
        """Store a state in place of any that its id has; within `acquire_lock` only while the lock is held."""
        self._write("set", state)

    def set_all(self, states: Iterable[MeltanoState]) -> int:
        """Store many states in a handful of statements. All are checked before the first is written."""
        return self._store("set-all", [_to_record(state) for state in states])

    def update(self, state: MeltanoState) -> None:  # type: ignore[misc]
        """Record what a pipeline has reached.

        Meltano's own method, which is marked as final, means the same. It takes the lock, reads, writes and releases
        one after the other; the component does it in three requests, or in one under a lock that is held.
        """
        session = self._session
        with session.turn(state.state_id):
            if not settings.truth(settings.LOCK_PER_RUN, self._lock_per_run):
                self._write("update", state)
                return
            session.hold(state.state_id)
            try:
                self._write("update", state)
            except ClickHouseStateError as error:
                if error.kind == "lock-lost":
                    # Another process may have written meanwhile, which this error says. The next state takes it anew.
                    session.give_up(state.state_id)
                raise

    def delete(self, state_id: str) -> None:
        """Remove a state."""
        self._store("delete", state_id)

    def clear(self, state_id: str) -> None:  # type: ignore[misc]
        """Remove a state under its lock. Meltano's own method, which is marked as final, means the same."""
        with self._session.turn(state_id):
            if state_id in self._session.held:
                self._store("delete", state_id)
            else:
                _warn(state_id, self._store("clear", state_id))

    def clear_all(self) -> int:
        """Remove all states and return how many there were. Takes no lock."""
        return self._store("clear-all")

    def migrate(self) -> None:
        """Create what is missing, and bring the lock table up to date."""
        self._store("init", False)

    @contextmanager
    def acquire_lock(self, state_id: str, *, retry_seconds: float = 1) -> Iterator[None]:
        """Hold the lock of a state id while the body runs, which may take as long as it likes.

        Raises:
            ClickHouseStateLockedError: If another process holds it for longer than `lock_wait_seconds`.
        """
        session = self._session
        with session.turn(state_id):
            if state_id in session.held:
                yield  # For a whole run, or by a body further out.
                return
            session.hold(state_id, retry_seconds)
            try:
                yield
            finally:
                session.give_up(state_id)

    def _store(self, function: str, *arguments: t.Any) -> t.Any:
        return self._session.instance.call("store", function, *arguments)

    def _write(self, function: str, state: MeltanoState) -> None:
        lock = self._session.held.get(state.state_id)
        if lock:
            lock.write(function, _to_record(state))
        else:
            _warn(state.state_id, self._store(function, _to_record(state)))


class ClickHouseHttpsStateStoreManager(ClickHouseStateStoreManager):
    """The same for `clickhouse+https://`.

    Meltano passes the settings that are named after the scheme. Those of this backend are named after `clickhouse`
    whatever the scheme, so they are looked up here.
    """

    def __init__(self, **kwargs: t.Any) -> None:
        """Take the settings as Meltano passes them."""
        project_settings = Project.find().settings
        named = {
            definition.name.removeprefix(settings.PREFIX): project_settings.get(definition.name)
            for definition in settings.DEFINITIONS
        }
        super().__init__(**{**named, **kwargs})


def _warn(state_id: str, warnings: list[Record] | None) -> None:
    """Say what a call left behind although it was carried out."""
    for warning in map(vars, warnings or []):
        logger.warning("%s (%s)", warning["message"], warning["hint"], state_id=state_id)


def _from_record(state: Record) -> MeltanoState:
    fields = vars(state)
    return MeltanoState(
        state_id=fields["state-id"],
        partial_state=json.loads(fields["partial-state"] or "{}"),
        completed_state=json.loads(fields["completed-state"] or "{}"),
    )


def _to_record(state: MeltanoState) -> Record:
    return record(
        state_id=state.state_id,
        partial_state=_to_json(state.partial_state),
        completed_state=_to_json(state.completed_state),
    )


def _to_json(part: dict[str, t.Any] | None) -> str | None:
    return json.dumps(part) if part else None
