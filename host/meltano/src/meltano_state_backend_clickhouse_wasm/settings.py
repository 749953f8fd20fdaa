"""The settings as Meltano knows them, and as the component reads them."""

from __future__ import annotations

import math
import typing as t
from urllib.parse import parse_qs, urlsplit

from meltano.core.setting_definition import SettingDefinition, SettingKind

from meltano_state_backend_clickhouse_wasm.errors import ClickHouseStateError

if t.TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "state_backend.clickhouse."


def _setting(name: str, description: str, **more: t.Any) -> SettingDefinition:
    """A setting of text, whatever it means: of another kind, Meltano would convert it, fail without a word of which setting it
    was, and take any text but `true` and the like for false."""
    label = name.replace("_", " ").capitalize()
    return SettingDefinition(
        name=PREFIX + name, label=label, description=description, kind=SettingKind.STRING, env_specific=True, **more
    )


HOST = _setting("host", "Host name or address of ClickHouse; localhost unless given")
PORT = _setting("port", "Port of its HTTP interface; 8123, or 8443 with secure, unless given")
USER = _setting("user", "Who logs in")
PASSWORD = _setting("password", "The user's password", sensitive=True)
DATABASE = _setting("database", "Has to be set, as for other clients, but is not used: see schema")
SECURE = _setting("secure", "Whether to use HTTPS; unless given, on the ports 443 and 8443")
SCHEMA = _setting("schema", "The database that holds the tables; meltano unless given")
TABLE = _setting("table", "The state table; state unless given. The lock table is named after it: state_lock")
CLUSTER = _setting("cluster", "Reserved")
LOCK_PROTOCOL = _setting("lock_protocol", "How locks are taken: auto, ticket or settle; auto unless given")
LOCK_SETTLE_SECONDS = _setting(
    "lock_settle_seconds",
    "How long a candidate for a lock waits for its rivals to become visible, where it has to; 1 unless given",
)
LOCK_STALE_SECONDS = _setting("lock_stale_seconds", "The age at which a lock counts as abandoned; 300 unless given")
LOCK_WAIT_SECONDS = _setting("lock_wait_seconds", "How long to wait for a lock that another holds; 30 unless given")
LOCK_PER_RUN = _setting(
    "lock_per_run",
    "Whether a run keeps the lock of its state id from the first state that it writes to its end, "
    "instead of taking it for each",
)
HISTORY_DAYS = _setting("history_days", "For how many days earlier versions of states are kept")
CONNECT_TIMEOUT_SECONDS = _setting(
    "connect_timeout_seconds", "How long a connection may take to be made; 10 unless given"
)
REQUEST_TIMEOUT_SECONDS = _setting(
    "request_timeout_seconds", "How long a statement may take, repetitions included; 60 unless given"
)

DEFINITIONS = [value for value in vars().values() if isinstance(value, SettingDefinition)]

#: What this package itself acts on; the component does not know it.
OWN = {LOCK_PER_RUN.name}

#: The component's defaults.
_DEFAULTS = {LOCK_STALE_SECONDS.name: 300.0, REQUEST_TIMEOUT_SECONDS.name: 60.0, LOCK_SETTLE_SECONDS.name: 1.0}


def for_component(uri: str | None, values: Mapping[str, t.Any]) -> dict[str, str]:
    """What the component reads: its settings by their full names, as text.

    Args:
        uri: `state_backend.uri`.
        values: The settings as Meltano passes them, by the last part of their names.
    """
    named = {definition.name: values.get(definition.name.removeprefix(PREFIX)) for definition in DEFINITIONS}
    named["state_backend.uri"] = uri
    named["state_backend.lock_retry_seconds"] = values.get("lock_retry_seconds")
    return {name: _text(value) for name, value in named.items() if value is not None and name not in OWN}


def truth(definition: SettingDefinition, value: object) -> bool:
    """Whether a setting is true, in the words that the component knows.

    Raises:
        ClickHouseStateError: If it is neither true nor false.
    """
    text = _text(value).strip().lower()
    if value is None or text in ("", "false", "0", "no", "off"):
        return False
    if text in ("true", "1", "yes", "on"):
        return True
    message = f"{definition.name} is neither true nor false: {value}"
    raise ClickHouseStateError("invalid-setting", message, "set it to true or false")


def renewal_seconds(settings: Mapping[str, str]) -> float:
    """How often a lock has to be renewed so that states can be written under it at any time.

    As the host written in Rust has it: a write has to end before the lock is stale, whatever it waits for.
    """
    stale = _seconds(settings, LOCK_STALE_SECONDS)
    write = math.ceil(_seconds(settings, REQUEST_TIMEOUT_SECONDS)) + _seconds(settings, LOCK_SETTLE_SECONDS) + 1
    return min(stale / 3, (stale - write) / 2)


def _seconds(settings: Mapping[str, str], definition: SettingDefinition) -> float:
    """A setting's value, from where the component takes it too, which has found it valid."""
    query = parse_qs(urlsplit(settings.get("state_backend.uri", "")).query)
    in_uri = query.get(definition.name.removeprefix(PREFIX), [None])[-1]
    return float(settings.get(definition.name) or in_uri or _DEFAULTS[definition.name])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
