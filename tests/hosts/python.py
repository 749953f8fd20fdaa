"""Makes the calls of contract.json in Python and prints what came of each.

$ python python.py COMPONENT URI < contract.json
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples/python"))

from state_backend import StateBackend, StateBackendError, record
from wasmtime.component import Record, Variant


def to_wit(value):
    if isinstance(value, list):
        return [to_wit(item) for item in value]
    return record(**value) if isinstance(value, dict) else value


def to_json(value):
    if isinstance(value, Variant):
        return {value.tag: to_json(value.payload)}
    if isinstance(value, Record):
        return {name: to_json(field) for name, field in vars(value).items()}
    return [to_json(item) for item in value] if isinstance(value, (list, bytes)) else value


def carry_out(step):
    interface, name = step["call"].split(".")
    try:
        return {"returns": to_json(backend.call(interface, name, *map(to_wit, step["arguments"])))}
    except StateBackendError as error:
        return {"fails": error.kind}


component, uri = sys.argv[1:]
backend = StateBackend(component, {"state_backend.uri": uri})
json.dump([carry_out(step) for step in json.load(sys.stdin)], sys.stdout)
