"""What Meltano expects of a state backend."""

import pytest
from meltano.core.state_store import MeltanoState, StateStoreManager

import server
from meltano_state_backend_clickhouse_wasm import ClickHouseStateError

ID = "dev:tap-a-to-target-b"


def state(partial=None, completed=None, state_id=ID):
    return MeltanoState(state_id, partial_state=partial, completed_state=completed)


def stored(manager, state_id=ID):
    found = manager.get(state_id)
    return found and found.to_dict()


def test_nothing_is_found_where_there_are_no_tables_and_none_are_made(manager, schema):
    assert manager.get(ID) is None
    assert list(manager.get_state_ids()) == []
    assert list(manager.get_all()) == []
    assert server.query(f"SELECT count() FROM system.databases WHERE name = '{schema}'") == ["0"]


def test_what_is_set_is_got_and_stored_as_python_writes_json(manager, schema):
    manager.set(state({"a": [1, "é"]}, {"b": 1.50}))
    assert stored(manager) == {"partial": {"a": [1, "é"]}, "completed": {"b": 1.5}}
    text = server.query(f"SELECT partial_state, completed_state FROM {schema}.state FINAL FORMAT JSONEachRow")
    assert text == [r'{"partial_state":"{\"a\": [1, \"\\u00e9\"]}","completed_state":"{\"b\": 1.5}"}']


def test_an_empty_part_is_null_and_comes_back_empty(manager, schema):
    manager.set(state({}, None))
    assert stored(manager) == {"partial": {}, "completed": {}}
    assert server.query(f"SELECT partial_state, completed_state FROM {schema}.state FINAL") == ["\\N\t\\N"]


def test_deleting_and_clearing_remove_and_do_not_mind_what_is_not_there(manager):
    for remove in (manager.delete, manager.clear):
        manager.set(state({"a": 1}))
        remove(ID)
        assert manager.get(ID) is None
        remove(ID)


UPDATES = [
    pytest.param([state({"a": {"x": 1}}), state({"a": {"y": 2}})], id="partial on partial"),
    pytest.param([state(None, {"a": 1}), state({"b": 2})], id="partial on complete"),
    pytest.param([state({"a": 1}), state(None, {"b": 2})], id="complete on partial"),
    pytest.param([state({"a": 1}, {"c": 3}), state({"a": 2}, {"b": 2})], id="both on both"),
    pytest.param([state({"a": [1, 2]}), state({"a": [3]})], id="a list"),
    pytest.param([state({"a": 1})], id="partial on nothing"),
]


@pytest.mark.parametrize("updates", UPDATES)
def test_updates_mean_the_same_as_meltanos_own(open_manager, updates):
    ours, meltanos = open_manager(table="ours"), open_manager(table="meltanos")
    per_run = open_manager(table="per_run", lock_per_run=True)
    for update in updates:
        ours.update(update)
        per_run.update(update)
        # The method that every backend inherits, over our lock, get and set.
        StateStoreManager.update(meltanos, MeltanoState(ID, update.partial_state, update.completed_state))
    assert stored(meltanos) is not None
    assert stored(ours) == stored(meltanos)
    assert stored(per_run) == stored(meltanos)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, ["dev:a", "dev:b", "prod:a", "prod:a_b%"]),
        ("*", ["dev:a", "dev:b", "prod:a", "prod:a_b%"]),
        ("dev:*", ["dev:a", "dev:b"]),
        ("*:?", ["dev:a", "dev:b", "prod:a"]),
        ("dev:[b-z]", ["dev:b"]),
        ("prod:a_b%", ["prod:a_b%"]),
        ("d_v:*", []),
    ],
)
def test_patterns_are_globs(manager, pattern, expected):
    manager.set_all(state({"n": i}, state_id=i) for i in ["prod:a_b%", "prod:a", "dev:b", "dev:a"])
    assert list(manager.get_state_ids(pattern)) == expected
    assert [found.state_id for found in manager.get_all(pattern)] == expected


def test_many_states_travel_together(manager):
    many = [state({"n": n}, {"m": str(n)}, f"dev:{n:05}") for n in range(10_050)]
    assert manager.set_all(iter(many)) == len(many)
    assert list(manager.get_all()) == many
    assert manager.clear_all() == len(many)
    assert list(manager.get_all()) == []


def test_a_state_that_is_none_stops_get_and_get_all_with_its_name(manager, schema):
    manager.set(state({"a": 1}))
    server.query(f"INSERT INTO {schema}.state (state_id, completed_state) VALUES ('dev:broken', '[')")
    for read in (lambda: manager.get("dev:broken"), lambda: list(manager.get_all())):
        with pytest.raises(ClickHouseStateError, match="dev:broken") as caught:
            read()
        assert caught.value.kind == "corrupt-state"


def test_migrating_makes_the_tables_and_may_be_repeated(manager, schema):
    manager.migrate()
    manager.migrate()
    assert server.query(f"SHOW TABLES FROM {schema}") == ["state", "state_lock"]


def test_closing_may_be_repeated_and_a_closed_manager_can_be_used(manager):
    with manager:
        manager.set(state({"a": 1}))
    manager.close()
    assert stored(manager) == {"partial": {"a": 1}, "completed": {}}
