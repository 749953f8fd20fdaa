"""Meltano's merge, word for word, on pairs of JSON objects: a source and a destination on each line.

Prints each result, or "crash" where Meltano's own code raises. Numbers keep their text, which json would change.
"""

import json
import sys


class Number(str):
    """The text of a number."""


def merge(src, dest):
    """As meltano.core.utils.merge: in place, the source wins."""
    for key, value in src.items():
        if isinstance(value, dict):
            node = dest.setdefault(key, {})
            merge(value, node)
        else:
            dest[key] = value
    return dest


def dump(value):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(key)}:{dump(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


for line in sys.stdin:
    source, destination = (json.loads(text, parse_int=Number, parse_float=Number) for text in line.split("\t"))
    try:
        print(dump(merge(source, destination)))
    except (AttributeError, TypeError):
        print("crash")
