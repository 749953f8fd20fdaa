"""The state backend component, run by the package `wasmtime`."""

from wasmtime import Engine, Store, WasiConfig
from wasmtime.component import Component, Linker, Record, Variant


class StateBackendError(Exception):
    """Why a call failed: an `error` of wit/types.wit."""

    def __init__(self, error: Record):
        super().__init__(error.message)
        self.kind: str = error.kind
        self.hint: str | None = error.hint


class StateBackend:
    """An instance of the component, for one thread at a time."""

    def __init__(self, component: str, settings: dict[str, str]):
        engine = Engine()
        linker = Linker(engine)
        linker.add_wasip2()
        linker.add_wasi_http()
        with linker.root() as root, root.add_instance("wasi:config/store@0.2.0-rc.1") as config:
            config.add_func("get", lambda _store, name: settings.get(name))
            config.add_func("get-all", lambda _store: list(settings.items()))
        self._store = Store(engine)
        self._store.set_wasi(WasiConfig())
        self._store.set_wasi_http()
        self._instance = linker.instantiate(self._store, Component.from_file(engine, component))

    def call(self, interface: str, name: str, *arguments):
        """Call a function by its names in wit/, such as `call("store", "get", "prod:a")`."""
        exports = self._instance.get_export_index(self._store, f"meltano:state-backend/{interface}@0.1.0")
        function = self._instance.get_func(self._store, self._instance.get_export_index(self._store, name, exports))
        answer = function(self._store, *arguments)
        # A result comes tagged only where success and failure have the same Python type.
        tag = "err" if hasattr(answer, "kind") else "ok"
        if isinstance(answer, Variant):
            tag, answer = answer.tag, answer.payload
        if tag == "err":
            raise StateBackendError(answer)
        return answer


def record(**fields) -> Record:
    """A record of WIT, whose names have dashes: `record(state_id="prod:a", …)`."""
    made = Record()
    made.__dict__.update({name.replace("_", "-"): value for name, value in fields.items()})
    return made
