#!/usr/bin/env python3
"""A target that appends records to the file that its config names as `output`, and confirms each state at once."""

import json
import pathlib
import sys

config = json.loads(pathlib.Path(sys.argv[sys.argv.index("--config") + 1]).read_text())
with pathlib.Path(config["output"]).open("a") as output:
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "RECORD":
            print(json.dumps(message["record"]), file=output)
        elif message["type"] == "STATE":
            output.flush()
            print(json.dumps(message["value"]), flush=True)
