"""A Meltano project in a directory, and commands in it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

PLUGINS = Path(__file__).parent / "plugins"
MELTANO = Path(sys.executable).parent / "meltano"

#: Enough for a command on a busy machine; one that takes longer hangs.
SECONDS = 300


class Project:
    """A project with the tap and the target of the tests. Without a URI it uses Meltano's own system database."""

    def __init__(self, directory: Path, uri: str | None = None, **settings) -> None:
        self.directory = directory
        self.records = directory / "records.jsonl"
        self.settings = {"count": 5, "stream": "numbers"}
        directory.mkdir(parents=True)
        content = {
            "project_id": "11111111-2222-3333-4444-555555555555",
            "default_environment": "dev",
            "environments": [{"name": "dev"}],
            "plugins": {"extractors": [self.tap()], "loaders": [self.target()]},
        }
        if uri:
            content["state_backend"] = {"uri": uri, "clickhouse": settings}
        self.write(content)

    def write(self, content: dict) -> None:
        """Make this the content of meltano.yml."""
        (self.directory / "meltano.yml").write_text(yaml.safe_dump(content, sort_keys=False))

    def tap(self) -> dict:
        """The tap that counts."""
        settings = [{"name": name} for name in ("stream", "gate")]
        settings += [{"name": name, "kind": "integer"} for name in ("count", "before_gate")]
        return {
            "name": "tap-count",
            "namespace": "tap_count",
            "executable": str(PLUGINS / "tap_count.py"),
            "capabilities": ["state"],
            "settings": settings,
        }

    def target(self) -> dict:
        """The target that writes a file."""
        return {
            "name": "target-file",
            "namespace": "target_file",
            "executable": str(PLUGINS / "target_file.py"),
            "settings": [{"name": "output"}],
            "config": {"output": str(self.records)},
        }

    def environment(self, **settings) -> dict[str, str]:
        """The variables for commands; `settings` are the tap's."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("MELTANO_STATE_BACKEND")}
        tap = {f"TAP_COUNT_{name.upper()}": str(value) for name, value in {**self.settings, **settings}.items()}
        return {**env, **tap, "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false"}

    def start(self, *arguments: str, **settings) -> subprocess.Popen:
        """Start `meltano`, in a process group of its own."""
        return subprocess.Popen(
            [MELTANO, *arguments],
            cwd=self.directory,
            env=self.environment(**settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def meltano(self, *arguments: str, expect: int = 0, **settings) -> str:
        """What `meltano` prints: its results, or where it is expected to fail its log."""
        output, log = finish(self.start(*arguments, **settings), expect)
        return log if expect else output

    def many(self, commands: list[list[str]]) -> list[tuple[int, str]]:
        """The exit code and the results of each command."""
        script = Path(__file__).with_name("many_commands.py")
        done = subprocess.run(
            [sys.executable, script],
            cwd=self.directory,
            env=self.environment(),
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def numbers(self) -> list[int]:
        """What the target got."""
        return [json.loads(line)["number"] for line in self.records.read_text().splitlines()]


def finish(process: subprocess.Popen, expect: int = 0) -> tuple[str, str]:
    """What a process printed, when it ended as expected."""
    try:
        output, log = process.communicate(timeout=SECONDS)
    finally:
        kill(process)
    assert process.returncode == expect, log
    return output, log


def kill(process: subprocess.Popen) -> None:
    """Kill a process and all that it started, as `kill -9` does."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
