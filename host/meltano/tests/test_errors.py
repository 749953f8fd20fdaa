"""Failures as Meltano's users see them."""

import socket

import pytest
from meltano.core.error import MeltanoError
from meltano.core.state_store import MeltanoState
from meltano.core.state_store.base import MissingStateBackendSettingsError, StateIDLockedError

import server
from meltano_state_backend_clickhouse_wasm import ClickHouseStateError, ClickHouseStateStoreManager
from meltano_state_backend_clickhouse_wasm.component import record
from meltano_state_backend_clickhouse_wasm.errors import from_component
from project import Project

SECRET = "not-the-password"


def check_refused(kind, message, **settings):
    with pytest.raises(MeltanoError, match=message) as caught:
        ClickHouseStateStoreManager(**{"uri": server.URI, **settings}).get("dev:a")
    assert caught.value.kind == kind
    assert caught.value.reason
    assert SECRET not in str(caught.value)
    return caught.value


def test_missing_user_and_database():
    error = check_refused("missing-setting", "user", uri="clickhouse://localhost")
    assert isinstance(error, MissingStateBackendSettingsError)
    assert "MELTANO_STATE_BACKEND_CLICKHOUSE_USER" in error.instruction
    check_refused("missing-setting", "database", uri="clickhouse://me@localhost")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lock_protocol", "best"),
        ("port", "abc"),
        ("history_days", "seven"),
        ("secure", "maybe"),
        ("lock_wait_seconds", "x"),
    ],
)
def test_a_setting_that_cannot_be_used(name, value, tmp_path):
    check_refused("invalid-setting", name, **{name: value})
    # Meltano hands it on as it is.
    shown = Project(tmp_path / "project", server.URI, **{name: value}).meltano("state", "list", expect=1)
    assert name in shown
    assert "Traceback" not in shown


def test_an_empty_setting_is_none(manager, schema):
    empty = ClickHouseStateStoreManager(uri=server.URI, schema=schema, lock_wait_seconds="", port="", secure="")
    manager.set(MeltanoState("dev:a", {"n": 1}))
    assert list(empty.get_state_ids()) == ["dev:a"]


def test_a_lock_per_run_that_is_neither_true_nor_false(open_manager):
    with pytest.raises(ClickHouseStateError, match="lock_per_run is neither true nor false: maybe"):
        open_manager(lock_per_run="maybe").update(MeltanoState("dev:a", {"n": 1}))


def test_a_wrong_password():
    check_refused("authentication", "password", password=SECRET)


def test_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    error = check_refused("unreachable", str(port), host="127.0.0.1", port=port, request_timeout_seconds=1)
    assert error.instruction


def test_a_state_that_is_no_json(manager):
    with pytest.raises(ClickHouseStateError) as caught:
        manager.set(MeltanoState("dev:a", {"n": float("nan")}))
    assert caught.value.kind == "invalid-state"


def test_an_error_is_told_in_sentences():
    error = from_component(record(kind="locked", message="it is locked", hint="wait a little", server=None))
    assert isinstance(error, StateIDLockedError)
    assert str(error) == "it is locked. Wait a little."
    # What `meltano run` shows when it reads a state.
    assert error.args[0] == str(error)
