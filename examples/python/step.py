"""A step of a pipeline: read the bookmark, work, move the bookmark on.

$ python step.py meltano_state_backend_clickhouse.wasm clickhouse://meltano:secret@localhost:8123/default prod:a
"""

import json
import sys

from state_backend import StateBackend, record

component, uri, state_id = sys.argv[1:]
backend = StateBackend(component, {"state_backend.uri": uri})

# What unfinished runs have reached is laid over what the last finished one has.
reached = json.loads(backend.call("store", "get-merged", state_id) or "{}")
page = reached.get("singer_state", {}).get("page", 0) + 1
# Here a real step would load the page.
reached = json.dumps({"singer_state": {"page": page}})
backend.call("store", "update", record(state_id=state_id, partial_state=reached, completed_state=None))
print(f"{state_id} has reached page {page}")
