"""`meltano run` of a tap and a target from PyPI."""

import csv
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import server
from project import Project

RUN = ("run", "tap-spreadsheets", "target-csv")


@pytest.fixture
def programs():
    """Where the tap and the target are installed."""
    assert "SINGER_BIN" in os.environ, "run the tests with cargo xtask meltano, or set SINGER_BIN"
    return Path(os.environ["SINGER_BIN"])


class SingerProject(Project):
    """A project that loads files into a table, which the target writes anew in each run."""

    def __init__(self, directory: Path, programs: Path, uri: str | None, **settings) -> None:
        self.programs = programs
        self.source = directory / "people"
        super().__init__(directory, uri, **settings)

    def tap(self) -> dict:
        return {
            "name": "tap-spreadsheets",
            "namespace": "tap_spreadsheets",
            "executable": str(self.programs / "tap-spreadsheets"),
            "capabilities": ["catalog", "discover", "state"],
            "settings": [{"name": "files", "kind": "array"}],
            "config": {"files": [{"path": str(self.source / "*.csv"), "format": "csv", "table_name": "people"}]},
        }

    def target(self) -> dict:
        return {
            "name": "target-csv",
            "namespace": "target_csv",
            "executable": str(self.programs / "target-csv"),
            "settings": [{"name": "output_path"}],
            "config": {"output_path": str(self.directory)},
        }

    def add(self, file: str, *names: str, at: int) -> None:
        """Add a file, of a time in seconds since 1970: the tap goes by it and keeps it in the state."""
        self.source.mkdir(exist_ok=True)
        path = self.source / file
        path.write_text("\n".join(["name,number", *(f"{name},{number}" for number, name in enumerate(names)), ""]))
        os.utime(path, (at, at))

    def loaded(self) -> list[str]:
        """What the target wrote."""
        with (self.directory / "people.csv").open() as table:
            return [row["name"] for row in csv.DictReader(table)]


def load_twice(project: SingerProject) -> str:
    """The state after a second run, which finds one file that the first did not."""
    many = [f"person {number}" for number in range(10)]
    project.add("monday.csv", *many, at=1_700_000_000)
    project.meltano(*RUN)
    assert project.loaded() == many
    project.add("tuesday.csv", "late", "later", at=1_700_000_100)
    project.meltano(*RUN)
    assert project.loaded() == ["late", "later"]
    return project.meltano("state", "get", "dev:tap-spreadsheets-to-target-csv")


def test_a_second_run_loads_only_what_is_new(tmp_path, schema, programs):
    backends = {"ours": server.URI, "meltanos": None}
    projects = [SingerProject(tmp_path / name, programs, uri, schema=schema) for name, uri in backends.items()]
    with ThreadPoolExecutor() as both:
        ours, meltanos = both.map(load_twice, projects)
    assert "2023-11-14T22:15:00" in ours
    assert ours == meltanos
