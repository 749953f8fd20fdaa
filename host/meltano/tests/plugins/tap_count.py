#!/usr/bin/env python3
"""A tap that counts on from where its state stands, with a STATE line for each number.

Config: `stream`; `count`, how many numbers; `gate`, a named pipe that it opens after `before_gate` numbers, and so waits
there until somebody opens the other end.
"""

import argparse
import json
import pathlib


def write(**message):
    print(json.dumps(message), flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--config", type=pathlib.Path)
parser.add_argument("--state", type=pathlib.Path)
parser.add_argument("--discover", action="store_true")
arguments, _ = parser.parse_known_args()
config = json.loads(arguments.config.read_text())
state = json.loads(arguments.state.read_text()) if arguments.state else {}
stream = config["stream"]
first = state.get("bookmarks", {}).get(stream, {}).get("next", 0)
schema = {"type": "object", "properties": {"number": {"type": "integer"}}}

write(type="SCHEMA", stream=stream, schema=schema, key_properties=[])
for number in range(first, first + int(config["count"])):
    if config.get("gate") and number == first + int(config["before_gate"]):
        pathlib.Path(config["gate"]).read_text()
    write(type="RECORD", stream=stream, record={"number": number})
    write(type="STATE", value={"bookmarks": {stream: {"next": number + 1}}})
