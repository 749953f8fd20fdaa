"""`meltano run`, on a tap and target of the tests that can be stopped at any line."""

import os
import signal

import pytest

import server
from meltano_state_backend_clickhouse_wasm import ClickHouseStateStoreManager
from project import SECONDS, Project, finish, kill

RUN = ("run", "tap-count", "target-file")
ID = "dev:tap-count-to-target-file"

#: A holder that was killed is overcome in a few seconds instead of minutes.
SHORT = {"lock_stale_seconds": 6, "request_timeout_seconds": 2, "lock_settle_seconds": 0.1}

LOCKS = [pytest.param({}, id="lock per state"), pytest.param({"lock_per_run": True}, id="lock per run")]


@pytest.fixture
def make_project(tmp_path, schema):
    def make(name="project", **settings):
        return Project(tmp_path / name, server.URI, schema=schema, **settings)

    return make


@pytest.fixture
def gate(tmp_path):
    """A named pipe that the tap waits at until it is opened here."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def reached(manager: ClickHouseStateStoreManager, stream="numbers"):
    """The number that the stored state of a run goes on with."""
    found = manager.get(ID)
    if found is None:
        return None
    parts = [found.partial_state, found.completed_state]
    bookmarks = [part.get("singer_state", {}).get("bookmarks", {}).get(stream, {}) for part in parts]
    return next((bookmark["next"] for bookmark in bookmarks if bookmark), None)


def locks(schema):
    return server.query(f"SELECT state_id FROM {schema}.state_lock FINAL")


@pytest.mark.parametrize("settings", LOCKS)
def test_a_second_run_resumes_and_no_lock_is_left(make_project, manager, schema, settings):
    project = make_project(**settings)
    project.meltano(*RUN)
    assert reached(manager) == 5
    project.meltano(*RUN)
    assert project.numbers() == list(range(10))
    assert reached(manager) == 10
    assert locks(schema) == []


@pytest.mark.parametrize("settings", LOCKS)
def test_a_killed_run_is_resumed_where_its_last_state_stands(make_project, manager, schema, gate, settings):
    project = make_project(**settings, **SHORT)
    killed = project.start(*RUN, gate=gate, before_gate=3)
    try:
        server.eventually(lambda: reached(manager) == 3)
        if settings:
            assert locks(schema) == [ID]
        else:
            server.eventually(lambda: locks(schema) == [])
    finally:
        kill(killed)
    # Meltano itself takes the killed run for one that still runs, unless it is told otherwise.
    project.meltano("run", "--force", *RUN[1:])
    assert project.numbers() == list(range(8))
    assert locks(schema) == []


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_leaves_no_lock(make_project, manager, schema, gate, told):
    running = make_project(lock_per_run=True).start(*RUN, gate=gate, before_gate=3)
    try:
        server.eventually(lambda: reached(manager) == 3)
        assert locks(schema) == [ID]
        os.killpg(running.pid, told)
        running.communicate(timeout=SECONDS)
    finally:
        kill(running)
    assert locks(schema) == []


def test_two_runs_at_once_lose_nothing_of_each_other(make_project, manager):
    # Two checkouts: within one, Meltano itself refuses a second run of a state id.
    runs = [
        make_project(name).start("run", "--merge-state", *RUN[1:], stream=name, count=15) for name in ("one", "two")
    ]
    for run in runs:
        finish(run)
    assert [reached(manager, name) for name in ("one", "two")] == [15, 15]


def test_a_lock_for_the_run_keeps_another_run_from_writing(make_project, manager, gate):
    holder = make_project("holder", lock_per_run=True)
    running = holder.start(*RUN, gate=gate, before_gate=3)
    try:
        server.eventually(lambda: reached(manager) == 3)
        # At the gate, too: Meltano overlooks that a state was not stored if the tap or the target ends first.
        refused = make_project("refused", lock_wait_seconds=0.5).meltano(*RUN, expect=1, gate=gate, before_gate=3)
        assert f"process {running.pid}" in " ".join(refused.split())
        gate.write_text("")
        finish(running)
    finally:
        kill(running)
    assert holder.numbers() == list(range(5))
    assert reached(manager) == 5
