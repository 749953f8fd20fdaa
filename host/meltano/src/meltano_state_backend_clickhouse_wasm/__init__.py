"""Meltano's state in ClickHouse, through a sandboxed WebAssembly component."""

from meltano_state_backend_clickhouse_wasm.errors import (
    ClickHouseSettingsMissingError,
    ClickHouseStateError,
    ClickHouseStateLockedError,
)
from meltano_state_backend_clickhouse_wasm.manager import (
    ClickHouseHttpsStateStoreManager,
    ClickHouseStateStoreManager,
)

__all__ = [
    "ClickHouseHttpsStateStoreManager",
    "ClickHouseSettingsMissingError",
    "ClickHouseStateError",
    "ClickHouseStateLockedError",
    "ClickHouseStateStoreManager",
]
