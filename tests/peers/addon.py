"""The Python add-on's way of storing states and taking locks, word for word, over clickhouse-connect.

Usage: addon.py HOST PORT USER PASSWORD SCHEMA OPERATION [ARGUMENT…]; prints JSON.
"""

import json
import sys
import time
import uuid

import clickhouse_connect

LOCK_WAIT, LOCK_STALE, LOCK_SETTLE, LOCK_RETRY = 30.0, 300, 1.0, 1.0


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

    def bench(self):
        """Times in seconds of the published workflow, each alone on the server."""
        times = {"get": [], "set": [], "acquire + release": [], "update": []}

        def timed(name, action):
            start = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - start)

        def section():
            self.release("bench", self.acquire("bench"))

        def update():
            lock_id = self.acquire("bench")
            try:
                partial, completed = self.get("bench")
                self.set("bench", {**partial, "n": 1}, completed)
            finally:
                self.release("bench", lock_id)

        for _ in range(50):
            timed("set", lambda: self.set("bench", {"singer_state": {}}, {}))
            timed("get", lambda: self.get("bench"))
        for _ in range(3):
            timed("acquire + release", section)
            timed("update", update)
        return times


def main():
    addon = Addon(*sys.argv[1:6])
    operation, *arguments = sys.argv[6:]
    if operation == "set":
        arguments[1:] = [json.loads(argument) for argument in arguments[1:]]
    print(json.dumps(getattr(addon, operation)(*arguments)))


if __name__ == "__main__":
    main()
