"""The settings, between Meltano and the component."""

from decimal import Decimal

import pytest
from meltano.core.config_service import ConfigService
from meltano.core.state_store import StateBackend

from meltano_state_backend_clickhouse_wasm import (
    ClickHouseHttpsStateStoreManager,
    ClickHouseStateStoreManager,
    settings,
)


def test_meltano_finds_the_backend_by_both_schemes():
    assert StateBackend.get_manager_factory(scheme="clickhouse") is ClickHouseStateStoreManager
    assert StateBackend.get_manager_factory(scheme="clickhouse+https") is ClickHouseHttpsStateStoreManager


def test_every_setting_is_registered_and_described():
    registered = [point.load().name for point in ConfigService.addon.installed if point.name.startswith("clickhouse")]
    assert sorted(registered) == sorted(definition.name for definition in settings.DEFINITIONS)
    assert all(definition.description and definition.kind for definition in settings.DEFINITIONS)
    assert [found.name for found in settings.DEFINITIONS if found.sensitive] == ["state_backend.clickhouse.password"]


def test_values_reach_the_component_as_text():
    values = {"secure": True, "port": 8443, "lock_stale_seconds": Decimal("90.5"), "user": None, "lock_per_run": True}
    assert settings.for_component(
        "clickhouse://h", {**values, "lock_retry_seconds": 1, "lock_timeout_seconds": 10}
    ) == {
        "state_backend.uri": "clickhouse://h",
        "state_backend.lock_retry_seconds": "1",
        "state_backend.clickhouse.secure": "true",
        "state_backend.clickhouse.port": "8443",
        "state_backend.clickhouse.lock_stale_seconds": "90.5",
    }


@pytest.mark.parametrize(
    ("query", "explicit", "expected"),
    [
        ("", {}, 100),
        ("?lock_stale_seconds=120", {}, 29),
        ("?lock_stale_seconds=120", {"lock_stale_seconds": Decimal(90)}, 14),
        ("?request_timeout_seconds=5&lock_settle_seconds=0.5", {"lock_stale_seconds": 90}, 30),
    ],
)
def test_a_lock_is_renewed_while_there_is_time_to_write(query, explicit, expected):
    found = settings.for_component(f"clickhouse://host/database{query}", explicit)
    assert settings.renewal_seconds(found) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, False), ("", False), (False, False), ("off", False), (True, True), ("True", True), ("1", True)],
)
def test_truth(value, expected):
    assert settings.truth(settings.LOCK_PER_RUN, value) is expected
