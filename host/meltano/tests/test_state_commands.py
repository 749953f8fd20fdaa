"""Every `meltano state` command, beside what Meltano's own system database makes of it."""

import json

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

COMMANDS = [
    ["list"],
    ["get", MAIN],
    ["set", "--force", MAIN, A],
    ["merge", MAIN, B],
    ["get", MAIN],
    ["export"],
    ["copy", "--force", MAIN, COPY],
    ["merge", "--from-state-id", COPY, MAIN],
    ["list"],
    ["list", "--pattern", "*:copy"],
    ["move", "--force", COPY, "dev:other"],
    ["get", "dev:other"],
    ["get", COPY],
    ["set", "--force", MAIN, "{}"],
    ["copy", "--force", "dev:missing", MAIN],
    ["edit", "--force", "dev:other"],
    ["export"],
    ["clear", "--force", MAIN],
    ["clear", "--force", "dev:other"],
    ["list"],
    ["import", "states.json"],
    ["export"],
    ["clear", "--force", "--all"],
    ["list"],
]
IMPORTED = {"dev:i": {"completed": {"singer_state": {"n": 1}}, "partial": {"singer_state": {"m": 2}}}}


def transcript(project: Project) -> list:
    """What each command ends with and prints, JSON as values and lines in order."""
    (project.directory / "states.json").write_text(json.dumps(IMPORTED))
    results = project.many([["state", *command] for command in COMMANDS])
    return [(command, code, meaning(printed)) for command, (code, printed) in zip(COMMANDS, results, strict=True)]


def meaning(printed: str):
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
    ours = transcript(Project(tmp_path / "ours", server.URI, schema=schema))
    assert ours == transcript(Project(tmp_path / "meltanos"))
    # Both did something: a command that fails everywhere compares nothing.
    assert [command for command, code, _ in ours if code] == [
        ["set", "--force", MAIN, "{}"],
        ["copy", "--force", "dev:missing", MAIN],
    ]
    assert IMPORTED in [printed for _, _, printed in ours]


def test_upgrading_makes_the_tables(tmp_path, schema):
    Project(tmp_path / "project", server.URI, schema=schema).meltano("upgrade", "--skip-package")
    assert server.query(f"SHOW TABLES FROM {schema}") == ["state", "state_lock"]


def test_a_failure_is_told_with_what_to_do(tmp_path, schema):
    uri = server.URI.replace(server.PARTS.password, "wrong-secret")
    log = Project(tmp_path / "project", uri, schema=schema).meltano("state", "list", expect=1)
    assert "password" in log
    assert "wrong-secret" not in log


def test_settings_are_meltanos_and_the_password_is_a_secret(tmp_path, schema):
    address = {"host": server.PARTS.hostname, "port": server.PARTS.port, "user": server.PARTS.username, "secure": False}
    project = Project(tmp_path / "project", "clickhouse+https://nobody@nowhere.invalid/x", schema=schema, **address)
    project.meltano("config", "set", "meltano", "state_backend.clickhouse.password", server.PARTS.password)
    project.meltano("state", "set", "--force", MAIN, A)
    assert server.query(f"SELECT state_id FROM {schema}.state") == [MAIN]
