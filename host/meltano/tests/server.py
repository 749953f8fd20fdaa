"""The ClickHouse that the tests use, seen from beside the backend."""

import os
import time
import urllib.request
from urllib.parse import unquote, urlsplit

URI = os.environ.get("MELTANO_STATE_BACKEND_URI", "")
PARTS = urlsplit(URI)


def query(statement: str) -> list[str]:
    """The rows of a statement's answer."""
    scheme = "https" if PARTS.scheme.endswith("https") else "http"
    request = urllib.request.Request(
        f"{scheme}://{PARTS.hostname}:{PARTS.port or 8123}/",
        data=statement.encode(),
        headers={"X-ClickHouse-User": unquote(PARTS.username), "X-ClickHouse-Key": unquote(PARTS.password or "")},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode().splitlines()


def eventually(condition, seconds: float = 60):
    """What `condition` returns once that is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
    return value
