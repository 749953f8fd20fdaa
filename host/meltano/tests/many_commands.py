"""Runs several `meltano` commands in one process, for each of which a start would take seconds.

Reads a JSON list of commands, each a list of arguments; writes one of exit codes and outputs.
"""

import contextlib
import io
import json
import sys

from meltano.cli import main
from meltano.core.project import Project


def run(arguments: list[str]) -> tuple[int, str]:
    Project.deactivate()
    sys.argv = ["meltano", *arguments]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            main()
    except SystemExit as end:
        return int(end.code or 0), output.getvalue()
    return 0, output.getvalue()


print(json.dumps([run(arguments) for arguments in json.load(sys.stdin)]))
