"""Puts the component into the wheel."""

import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGED = "meltano_state_backend_clickhouse_wasm/component.wasm"
BUILT = "component/meltano_state_backend_clickhouse.wasm"


class ComponentBuildHook(BuildHookInterface):
    """Takes the component that was built, or that MELTANO_STATE_COMPONENT names."""

    def initialize(self, version: str, build_data: dict) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        named = os.environ.get("MELTANO_STATE_COMPONENT")
        workspace = Path(self.root).parents[1]
        target = workspace / os.environ.get("CARGO_TARGET_DIR", "target")
        component = Path(named) if named else target / BUILT
        if not component.is_file():
            raise FileNotFoundError(f"{component} does not exist; build it with: cargo xtask build")
        build_data["force_include"][str(component.resolve())] = PACKAGED
