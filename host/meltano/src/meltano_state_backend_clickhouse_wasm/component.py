"""An instance of the component, and calls of its functions."""

from __future__ import annotations

import functools
import os
import threading
import typing as t
from importlib import resources
from pathlib import Path

import wasmtime
from wasmtime.component import Linker, Record, ResourceAny, Variant

from meltano_state_backend_clickhouse_wasm import cache, errors

if t.TYPE_CHECKING:
    from collections.abc import Mapping

    from wasmtime.component import Component, Func

#: Names another component file than the one in this package.
FILE_VARIABLE = "MELTANO_STATE_COMPONENT"

#: What an instance may use at most, as in the host written in Rust.
MEMORY_BYTES = 256 * 1024 * 1024

_INTERFACE = "meltano:state-backend/{}@0.1.0"
_CONFIG = "wasi:config/store@0.2.0-rc.1"


class Instance:
    """An instance of the component with settings of its own. Threads take turns."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Make an instance that reads these settings, by their full names. No request is sent."""
        #: Whoever has it has the instance to itself, for several calls if need be.
        self.turn = threading.RLock()
        #: Whether it has stopped for good.
        self.stopped = False
        self._store, self._instance = _instantiate(dict(settings))
        self._functions: dict[tuple[str, str], Func] = {}

    def call(self, interface: str, function: str, *arguments: t.Any) -> t.Any:
        """What a function returns when it succeeds.

        Raises:
            ClickHouseStateError: If it fails.
        """
        with self.turn:
            try:
                result = self._function(interface, function)(self._store, *arguments)
            except wasmtime.WasmtimeError as error:
                self.stopped = True
                message = f"the component stopped in {function}: {str(error).splitlines()[0]}"
                raise errors.ClickHouseStateError("trap", message) from error
        return _value(result)

    def drop(self, resource: ResourceAny) -> None:
        """Give a resource of the component back."""
        with self.turn:
            resource.drop(self._store)

    def _function(self, interface: str, name: str) -> Func:
        key = interface, name
        if key not in self._functions:
            of_interface = self._instance.get_export_index(self._store, _INTERFACE.format(interface))
            index = self._instance.get_export_index(self._store, name, of_interface)
            self._functions[key] = self._instance.get_func(self._store, index)
        return self._functions[key]


def record(**fields: t.Any) -> Record:
    """A record of the component, whose field names have `-` where Python has `_`."""
    made = Record()
    vars(made).update({name.replace("_", "-"): value for name, value in fields.items()})
    return made


def _value(result: t.Any) -> t.Any:
    """The success in a `result<…, error>`, which wasmtime tags only where success could be a record as well."""
    failed = result.tag == "err" if isinstance(result, Variant) else isinstance(result, Record)
    payload = result.payload if isinstance(result, Variant) else result
    if failed:
        raise errors.from_component(payload)
    return payload


def _instantiate(settings: dict[str, str]) -> tuple[wasmtime.Store, wasmtime.component.Instance]:
    engine, component = _compiled()
    linker = Linker(engine)
    linker.add_wasip2()
    linker.add_wasi_http()
    with linker.root() as root, root.add_instance(_CONFIG) as config:
        config.add_func("get", lambda _store, name: settings.get(name))
        config.add_func("get-all", lambda _store: list(settings.items()))
    store = wasmtime.Store(engine)
    store.set_limits(memory_size=MEMORY_BYTES)
    # No directory, environment variable, argument or stream of this process is passed on.
    store.set_wasi(wasmtime.WasiConfig())
    store.set_wasi_http()
    return store, linker.instantiate(store, component)


@functools.cache
def _compiled() -> tuple[wasmtime.Engine, Component]:
    engine = wasmtime.Engine()
    return engine, cache.load(engine, _wasm(), cache.default_directory())


def _wasm() -> bytes:
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named).read_bytes()
    return resources.files(__package__).joinpath("component.wasm").read_bytes()
