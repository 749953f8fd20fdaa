"""What the tests share."""

import os
import uuid

import pytest

import server
from meltano_state_backend_clickhouse_wasm import ClickHouseStateStoreManager


@pytest.fixture
def schema():
    """The name of a database for one test. It is removed at the end."""
    assert server.URI, "run the tests with cargo xtask meltano, or set MELTANO_STATE_BACKEND_URI"
    name = f"meltano_test_{uuid.uuid4().hex[:12]}"
    yield name
    server.query(f"DROP DATABASE IF EXISTS {name}")


@pytest.fixture
def open_manager(schema):
    """Makes managers that use the test's database. They are closed at the end."""
    managers = []

    def open_manager(**settings) -> ClickHouseStateStoreManager:
        settings = {"uri": server.URI, "schema": schema, **settings}
        managers.append(ClickHouseStateStoreManager(**settings))
        return managers[-1]

    yield open_manager
    for manager in managers:
        manager.close()


@pytest.fixture
def manager(open_manager):
    """A manager with default settings."""
    return open_manager()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    """The tests say themselves which settings count."""
    for name in list(os.environ):
        if name.startswith("MELTANO_STATE_BACKEND"):
            monkeypatch.delenv(name)
