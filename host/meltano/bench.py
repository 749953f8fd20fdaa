"""How long `meltano run` takes with this backend, beside the same runs on Meltano's own system database.

Run it with `cargo xtask meltano --bench`.
"""

import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests"))

import server
from project import Project

RUN = ("run", "tap-count", "target-file")

BASE = "system database"
BACKENDS = {BASE: None, "lock per state": {}, "lock per run": {"lock_per_run": True}}

#: STATE lines in a run, and how often it is measured. The backends take turns, there and back, so that all meet the same
#: disturbances.
SIZES = {30: 9, 1000: 3}


def seconds(project: Project, lines: int) -> float:
    """The time of a run, which begins when the server has merged what the runs before have written."""
    server.eventually(lambda: server.query("SELECT count() FROM system.merges") == ["0"])
    start = time.perf_counter()
    project.meltano(*RUN, count=lines)
    return time.perf_counter() - start


def measure(directory: Path, schema: str) -> None:
    """Print a line for each size and backend."""
    projects = {
        name: Project(directory / name, None if settings is None else server.URI, schema=schema, **(settings or {}))
        for name, settings in BACKENDS.items()
    }
    for project in projects.values():
        seconds(project, 1)  # Meltano makes its database, the add-on the tables and the compiled component.
    print(f"{'lines':>5}  {'backend':<16} {'median':>9} {'more':>9} {'a line more':>12}")
    for lines, repetitions in SIZES.items():
        times = {name: [] for name in projects}
        for turn in range(repetitions):
            for name in list(projects)[:: 1 if turn % 2 == 0 else -1]:
                times[name].append(seconds(projects[name], lines))
        base = statistics.median(times[BASE])
        for name, taken in times.items():
            median = statistics.median(taken)
            more = median - base
            print(f"{lines:>5}  {name:<16} {median:>7.2f} s {more:>7.2f} s {1000 * more / lines:>9.1f} ms", flush=True)


def main() -> None:
    """Measure in a directory and a database that are removed."""
    schema = f"meltano_bench_{uuid.uuid4().hex[:12]}"
    with tempfile.TemporaryDirectory() as directory:
        try:
            measure(Path(directory), schema)
        finally:
            server.query(f"DROP DATABASE IF EXISTS {schema}")


if __name__ == "__main__":
    main()
