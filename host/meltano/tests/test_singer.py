"""`meltano run` of a tap and a target from PyPI."""

import csv
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import server
from project import Project

RUN = ("run", "tap-jsonl", "target-csv")


@pytest.fixture
def programs():
    """Where the tap and the target are installed."""
    assert "SINGER_BIN" in os.environ, "run the tests with cargo xtask meltano, or set SINGER_BIN"
    return Path(os.environ["SINGER_BIN"])


class SingerProject(Project):
    """A project that loads the lines of a file into a table."""

    def __init__(self, directory: Path, programs: Path, uri: str | None, **settings) -> None:
        self.programs = programs
        self.source = directory / "people.jsonl"
        super().__init__(directory, uri, **settings)

    def tap(self) -> dict:
        return {
            "name": "tap-jsonl",
            "namespace": "tap_jsonl",
            "executable": str(self.programs / "tap-jsonl"),
            "capabilities": ["catalog", "discover", "state"],
            "settings": [{"name": "path"}, {"name": "emit_state_every", "kind": "integer"}],
            "config": {"path": str(self.source), "emit_state_every": 4},
        }

    def target(self) -> dict:
        names = ("output_path", "overwrite_behavior")
        return {
            "name": "target-csv",
            "namespace": "target_csv",
            "executable": str(self.programs / "target-csv"),
            "settings": [{"name": name} for name in names],
            "config": {"output_path": str(self.directory), "overwrite_behavior": "append_records"},
        }

    def add(self, *names: str, at: int) -> None:
        """Append lines to the source, at a time in seconds since 1970: the tap keeps it in the state."""
        with self.source.open("a") as source:
            source.writelines(f'{{"name": "{name}"}}\n' for name in names)
        os.utime(self.source, (at, at))

    def loaded(self) -> list[str]:
        """What the target wrote."""
        with (self.directory / "jsonl.csv").open() as table:
            return [row["name"] for row in csv.DictReader(table)]


def load_twice(project: SingerProject) -> str:
    """The state after a second run, which has more to load than the first."""
    many = [f"person {number}" for number in range(10)]
    project.add(*many, at=1_700_000_000)
    project.meltano(*RUN)
    assert project.loaded() == many
    project.add("late", "later", at=1_700_000_100)
    project.meltano(*RUN)
    assert project.loaded() == [*many, "late", "later"]
    return project.meltano("state", "get", "dev:tap-jsonl-to-target-csv").replace(str(project.directory), "…")


def test_a_second_run_loads_only_what_is_new(tmp_path, schema, programs):
    backends = {"ours": server.URI, "meltanos": None}
    projects = [SingerProject(tmp_path / name, programs, uri, schema=schema) for name, uri in backends.items()]
    with ThreadPoolExecutor() as both:
        ours, meltanos = both.map(load_twice, projects)
    assert "people.jsonl" in ours
    assert ours == meltanos
