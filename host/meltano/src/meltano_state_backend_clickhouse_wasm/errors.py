"""The component's errors as Meltano's."""

from __future__ import annotations

import typing as t

from meltano.core.error import MeltanoError
from meltano.core.state_store.base import MissingStateBackendSettingsError, StateIDLockedError

if t.TYPE_CHECKING:
    from wasmtime.component import Record


class ClickHouseStateError(MeltanoError):
    """Why a state could not be read or written."""

    def __init__(self, kind: str, message: str, hint: str | None = None) -> None:
        """Make an error of a kind that `types.error-kind` in the WIT package names."""
        super().__init__(message, hint and hint[0].upper() + hint[1:])
        # `meltano run` shows this and no more of an error that it meets when it reads a state.
        self.args = (str(self),)
        self.kind = kind


class ClickHouseSettingsMissingError(ClickHouseStateError, MissingStateBackendSettingsError):
    """A setting without a default is not set."""


class ClickHouseStateLockedError(ClickHouseStateError, StateIDLockedError):
    """Another process holds the lock of the state id."""


_CLASSES: dict[str, type[ClickHouseStateError]] = {
    "missing-setting": ClickHouseSettingsMissingError,
    "locked": ClickHouseStateLockedError,
}


def from_component(error: Record) -> ClickHouseStateError:
    """The exception to raise for an error that the component returned."""
    fields = vars(error)
    kind = fields["kind"]
    return _CLASSES.get(kind, ClickHouseStateError)(kind, fields["message"], fields["hint"])
