"""Locks, as held by managers of this process."""

import gc
import threading
import time

import pytest
from meltano.core.state_store import MeltanoState
from meltano.core.state_store.base import StateIDLockedError

import server
from meltano_state_backend_clickhouse_wasm import ClickHouseStateError, ClickHouseStateStoreManager
from meltano_state_backend_clickhouse_wasm.lock import HeldLock

ID = "dev:tap-a-to-target-b"


def state(number):
    return MeltanoState(ID, {"n": number}, {})


@pytest.fixture
def lock_rows(schema):
    return lambda: server.query(f"SELECT owner FROM {schema}.state_lock FINAL")


@pytest.fixture
def rival(open_manager):
    """A manager that shares nothing with the others, as in another process, and hardly waits."""
    return open_manager(lock_wait_seconds=0.2)


def test_a_lock_keeps_others_out_until_the_body_ends(manager, rival, lock_rows):
    with manager.acquire_lock(ID, retry_seconds=1):
        assert lock_rows()[0].startswith("meltano@")
        with pytest.raises(StateIDLockedError, match="process"):
            rival.update(state(1))
        with pytest.raises(StateIDLockedError), rival.acquire_lock(ID, retry_seconds=0.1):
            pytest.fail("two hold the lock")
    rival.update(state(2))
    assert lock_rows() == []


def test_a_lock_is_released_when_the_body_fails(manager, rival):
    with pytest.raises(ZeroDivisionError), manager.acquire_lock(ID, retry_seconds=1):
        1 / 0  # noqa: B018
    rival.update(state(1))


def test_its_holder_can_do_everything_within(manager):
    with manager.acquire_lock(ID, retry_seconds=1), manager.acquire_lock(ID, retry_seconds=1):
        manager.set(state(1))
        manager.update(MeltanoState(ID, {"m": 2}))
        assert manager.get(ID).partial_state == {"n": 1, "m": 2}
        manager.clear(ID)
        assert manager.get(ID) is None


def test_a_holder_that_lost_its_lock_does_not_write(manager, schema, rival):
    with manager.acquire_lock(ID, retry_seconds=1):
        server.query(f"DELETE FROM {schema}.state_lock WHERE 1")
        rival.update(state(1))
        for write in (manager.set, manager.update, manager.set):
            with pytest.raises(ClickHouseStateError) as caught:
                write(state(2))
            assert caught.value.kind == "lock-lost"
    assert manager.get(ID).partial_state == {"n": 1}


def test_updates_leave_no_lock_behind(manager, lock_rows):
    manager.update(state(1))
    assert lock_rows() == []


@pytest.mark.parametrize("end", ["close", "forget"])
def test_a_lock_for_the_run_stays_between_updates_and_goes_with_the_last_manager(
    open_manager, rival, lock_rows, schema, end
):
    settings = {"uri": server.URI, "schema": schema, "lock_per_run": True}
    first, second = (ClickHouseStateStoreManager(**settings) for _ in range(2))
    first.update(state(1))
    held = lock_rows()
    # The same run, as Meltano opens a backend for each plugin.
    second.update(state(2))
    assert lock_rows() == held != []
    with pytest.raises(StateIDLockedError):
        rival.update(state(3))
    first.close()
    assert lock_rows() == held
    if end == "close":
        second.close()
    else:
        del second
        gc.collect()
    assert lock_rows() == []
    rival.update(state(3))


def test_a_lock_for_the_run_that_was_lost_fails_one_update_and_is_taken_anew(open_manager, schema):
    manager = open_manager(lock_per_run=True)
    manager.update(state(1))
    server.query(f"DELETE FROM {schema}.state_lock WHERE 1")
    with pytest.raises(ClickHouseStateError) as caught:
        manager.update(state(2))
    assert caught.value.kind == "lock-lost"
    manager.update(state(3))
    assert manager.get(ID).partial_state == {"n": 3}


def test_a_lock_that_is_held_for_long_is_renewed(open_manager, schema):
    short = {"lock_stale_seconds": 6, "request_timeout_seconds": 2, "lock_settle_seconds": 0.1}
    manager = open_manager(**short)
    with manager.acquire_lock(ID, retry_seconds=1):
        taken = locked_at(schema)
        server.eventually(lambda: locked_at(schema) > taken + 6)
        with pytest.raises(StateIDLockedError):
            open_manager(**short, lock_wait_seconds=0.2).update(state(1))
        manager.set(state(2))


def test_a_renewal_that_has_begun_lets_a_release_pass(manager):
    manager.update(state(1))
    session = manager._session
    lock = HeldLock(session.instance, ID, 0.05)
    with session.instance.turn:
        time.sleep(0.2)  # Until the renewal waits for its turn.
        lock.release()
    time.sleep(0.2)
    manager.update(state(2))
    assert manager.get(ID).partial_state == {"n": 2}


def test_after_a_stop_of_the_component_another_instance_goes_on(manager):
    manager.update(state(1))
    first = manager._session
    lock = HeldLock(first.instance, ID, 60)
    lock.release()
    with pytest.raises(ClickHouseStateError) as caught:
        lock._call("renew")  # It is dropped.
    assert caught.value.kind == "trap"
    manager.update(state(2))
    assert manager._session is not first
    assert manager.get(ID).partial_state == {"n": 2}


def locked_at(schema):
    return int(server.query(f"SELECT max(toUnixTimestamp(locked_at)) FROM {schema}.state_lock")[0])


def test_threads_of_one_manager_take_turns(manager):
    within = threading.Lock()

    def work(number):
        with manager.acquire_lock(ID, retry_seconds=1):
            assert within.acquire(blocking=False), "two threads hold the lock"
            manager.update(MeltanoState(ID, {str(number): number}))
            time.sleep(0.01)  # Long enough for another to try.
            within.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert manager.get(ID).partial_state == {str(number): number for number in range(8)}
