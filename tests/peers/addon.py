"""The Python add-on's way of storing states and taking locks, word for word, over clickhouse-connect.

Usage: addon.py HOST PORT USER PASSWORD SCHEMA OPERATION [ARGUMENT…]; prints JSON.
"""

import json
import sys
import time
import uuid

import clickhouse_connect

LOCK_WAIT, LOCK_STALE, LOCK_SETTLE, LOCK_RETRY = 30.0, 300, 1.0, 1.0

# As large as the states that the benchmark of the component stores.
BENCH_BOOKMARK = {"replication_key": "updated_at", "value": "2026-01-01T00:00:00Z", "page": 1000000}
BENCH_STATE = {"singer_state": {"bookmarks": dict.fromkeys(["issues", "commits", "u"], BENCH_BOOKMARK)}}


class Addon:
    def __init__(self, host, port, user, password, schema):
        self.client = clickhouse_connect.get_client(
            host=host, port=int(port), username=user, password=password
        )
        self.state = f"`{schema}`.`state`"
        self.lock = f"`{schema}`.`state_lock`"
        self.client.command(f"CREATE DATABASE IF NOT EXISTS `{schema}`")
        self.client.command(
            f"CREATE TABLE IF NOT EXISTS {self.state} (state_id String, partial_state Nullable(String), "
            "completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)) "
            "ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id"
        )
        self.client.command(
            f"CREATE TABLE IF NOT EXISTS {self.lock} (state_id String, lock_id String, "
            "locked_at DateTime DEFAULT now()) ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id "
            "TTL locked_at + INTERVAL 300 SECOND"
        )

    def set(self, state_id, partial, completed):
        def text(value):
            return json.dumps(value) if value else None

        self.client.insert(
            self.state,
            [[state_id, text(partial), text(completed)]],
            column_names=["state_id", "partial_state", "completed_state"],
        )

    def get(self, state_id):
        rows = self.client.query(
            f"SELECT partial_state, completed_state FROM {self.state} FINAL "
            "WHERE state_id = {state_id:String} LIMIT 1",
            parameters={"state_id": state_id},
        ).result_rows
        if not rows:
            return None
        return [json.loads(part) if part else {} for part in rows[0]]

    def list(self):
        rows = self.client.query(f"SELECT DISTINCT state_id FROM {self.state} FINAL").result_rows
        return sorted(row[0] for row in rows)

    def delete(self, state_id):
        self.client.command(
            f"DELETE FROM {self.state} WHERE state_id = {{state_id:String}}", parameters={"state_id": state_id}
        )

    def holder(self, state_id):
        rows = self.client.query(
            f"SELECT lock_id FROM {self.lock} FINAL WHERE state_id = {{state_id:String}} ORDER BY lock_id LIMIT 1",
            parameters={"state_id": state_id},
        ).result_rows
        return rows[0][0] if rows else None

    def acquire(self, state_id):
        waited = 0.0
        while True:
            holder = self.holder(state_id)
            if holder is not None:
                self.client.command(f"DELETE FROM {self.lock} WHERE locked_at < now() - {LOCK_STALE}")
                holder = self.holder(state_id)
            if holder is None:
                lock_id = str(uuid.uuid4())
                self.client.insert(self.lock, [[state_id, lock_id]], column_names=["state_id", "lock_id"])
                time.sleep(LOCK_SETTLE)
                rows = self.client.query(
                    f"SELECT lock_id FROM {self.lock} WHERE state_id = {{state_id:String}}",
                    parameters={"state_id": state_id},
                ).result_rows
                if rows and min(row[0] for row in rows) == lock_id:
                    return lock_id
                self.release(state_id, lock_id)
                waited += LOCK_SETTLE
            time.sleep(LOCK_RETRY)
            waited += LOCK_RETRY
            if waited >= LOCK_WAIT:
                raise TimeoutError(f"Could not acquire lock for state_id: {state_id}")

    def release(self, state_id, lock_id):
        self.client.command(
            f"DELETE FROM {self.lock} WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}}",
            parameters={"state_id": state_id, "lock_id": lock_id},
        )

    def hold(self, state_id, seconds):
        """Prints `held`, holds the lock that long, and counts up a number in the completed state under it."""
        lock_id = self.acquire(state_id)
        try:
            print("held", flush=True)
            completed = (self.get(state_id) or [{}, {}])[1]
            time.sleep(float(seconds))
            completed["n"] = completed.get("n", 0) + 1
            self.set(state_id, {}, completed)
        finally:
            self.release(state_id, lock_id)

    def update(self, state_id):
        lock_id = self.acquire(state_id)
        try:
            partial, completed = self.get(state_id) or [{}, {}]
            self.set(state_id, {**partial, "n": 1}, completed)
        finally:
            self.release(state_id, lock_id)

    def fill(self, count):
        """Stores that many states at once, which the published add-on cannot."""
        rows = [[f"bench:{n}", json.dumps(BENCH_STATE), None] for n in range(count)]
        self.client.insert(self.state, rows, column_names=["state_id", "partial_state", "completed_state"])

    def bench(self):
        """Reads operations line by line, does each, and prints how many seconds it took."""
        operations = {
            "get": lambda: self.get("bench"),
            "set": lambda: self.set("bench", BENCH_STATE, {}),
            "section": lambda: self.release("bench", self.acquire("bench")),
            "update": lambda: self.update("bench"),
            "list": self.list,
            "fill": self.fill,
            "get_all": lambda count: [self.get(f"bench:{n}") for n in range(count)],
            "set_all": lambda count: [self.set(f"bench:{n}", BENCH_STATE, {}) for n in range(count)],
        }
        for line in sys.stdin:
            operation, *count = line.split()
            start = time.perf_counter()
            operations[operation](*map(int, count))
            print(time.perf_counter() - start, flush=True)


def main():
    addon = Addon(*sys.argv[1:6])
    operation, *arguments = sys.argv[6:]
    if operation == "set":
        arguments[1:] = [json.loads(argument) for argument in arguments[1:]]
    print(json.dumps(getattr(addon, operation)(*arguments)))


if __name__ == "__main__":
    main()
