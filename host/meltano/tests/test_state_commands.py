"""Every `meltano state` command, beside what Meltano's own system database makes of it."""

import json
from concurrent.futures import ThreadPoolExecutor

import server
from project import Project

COPY = "dev:tap-count-to-target-file:copy"
MAIN = "dev:tap-count-to-target-file"
A = '{"singer_state": {"bookmarks": {"a": {"id": 1}}}}'
B = '{"singer_state": {"bookmarks": {"b": {"id": 2}}}}'
EDITOR = """\
#!/bin/sh
echo '{"singer_state": {"edited": true}}' > "$1"
"""

#: Each command, and the exit code that it ends with.
COMMANDS = [
    (["list"], 0),
    (["get", MAIN], 0),
    (["set", "--force", MAIN, A], 0),
    (["merge", MAIN, B], 0),
    (["get", MAIN], 0),
    (["export"], 0),
    (["copy", "--force", MAIN, COPY], 0),
    (["merge", "--from-state-id", COPY, MAIN], 0),
    (["list"], 0),
    (["list", "--pattern", "*:copy"], 0),
    (["move", "--force", COPY, "dev:other"], 0),
    (["get", "dev:other"], 0),
    (["get", COPY], 0),
    (["set", "--force", MAIN, "{}"], 1),
    (["edit", "--force", "dev:other"], 0),
    (["export"], 0),
    (["clear", "--force", MAIN], 0),
    (["list"], 0),
    (["import", "states.json"], 0),
    (["export"], 0),
    (["clear", "--force", "--all"], 0),
    (["list"], 0),
]
IMPORTED = {"dev:i": {"completed": {"singer_state": {"n": 1}}, "partial": {"singer_state": {"m": 2}}}}


def transcript(project: Project, monkeypatch_env=None) -> list:
    """What the commands print in a project, JSON as values."""
    (project.directory / "states.json").write_text(json.dumps(IMPORTED))
    return [(command, result(project, command, code)) for command, code in COMMANDS]


def result(project, command, code):
    printed = project.meltano("state", *command, expect=code)
    if code:
        return printed.strip().splitlines()[-1]
    try:
        return json.loads(printed)
    except json.JSONDecodeError:
        return sorted(printed.splitlines())


def test_state_commands_do_the_same_as_on_the_system_database(tmp_path, schema, monkeypatch):
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.setenv("VISUAL", str(editor))
    projects = [Project(tmp_path / "ours", server.URI, schema=schema), Project(tmp_path / "meltanos")]
    with ThreadPoolExecutor() as both:
        ours, meltanos = both.map(transcript, projects)
    assert ours == meltanos


def test_upgrading_makes_the_tables(tmp_path, schema):
    Project(tmp_path / "project", server.URI, schema=schema).meltano("upgrade", "--skip-package")
    assert server.query(f"SHOW TABLES FROM {schema}") == ["state", "state_lock"]


def test_a_failure_is_told_with_what_to_do(tmp_path, schema):
    uri = server.URI.replace(server.PARTS.password, "wrong-secret")
    log = Project(tmp_path / "project", uri, schema=schema).meltano("state", "list", expect=1)
    assert "password" in log
    assert "wrong-secret" not in log


def test_settings_are_meltanos_and_the_password_is_a_secret(tmp_path, schema, monkeypatch):
    project = Project(tmp_path / "project", "clickhouse+https://nobody@nowhere.invalid/x", secure=False, schema=schema)
    project.meltano("config", "set", "meltano", "state_backend.clickhouse.password", server.PARTS.password)
    for name in ("host", "port", "user"):
        value = str(getattr(server.PARTS, {"host": "hostname", "user": "username"}.get(name, name)))
        project.meltano("config", "set", "meltano", f"state_backend.clickhouse.{name}", value)
    assert server.PARTS.password not in (project.directory / "meltano.yml").read_text()
    project.meltano("state", "set", "--force", MAIN, A)
    assert project.meltano("state", "list").split() == [MAIN]
    assert server.query(f"SELECT state_id FROM {schema}.state") == [MAIN]
