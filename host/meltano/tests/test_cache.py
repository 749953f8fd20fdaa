"""The cache of compiled code."""

import os
import stat

import pytest
import wasmtime

from meltano_state_backend_clickhouse_wasm import cache

EMPTY = b"\0asm\x0d\0\x01\0"


class Compiler:
    """Counts how often the cache compiles."""

    def __init__(self, monkeypatch):
        self.compiled = 0
        component = cache.Component

        class Counting(component):
            def __init__(counting, engine, wasm):
                self.compiled += 1
                super().__init__(engine, wasm)

        monkeypatch.setattr(cache, "Component", Counting)


@pytest.fixture
def compiler(monkeypatch):
    return Compiler(monkeypatch)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "caches" / "python"


def load(directory):
    return cache.load(wasmtime.Engine(), EMPTY, directory)


def files(directory):
    return [path for path in directory.iterdir()]


def test_a_component_is_compiled_once_and_kept_for_its_owner_alone(compiler, directory):
    load(directory)
    load(directory)
    assert compiler.compiled == 1
    (file,) = files(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [lambda code: code[: len(code) // 2], lambda code: code[:-1] + b"?", lambda _: b""])
def test_damaged_code_is_not_run_but_made_anew(compiler, directory, damage):
    load(directory)
    (file,) = files(directory)
    file.write_bytes(damage(file.read_bytes()))
    load(directory)
    load(directory)
    assert compiler.compiled == 2


def test_a_directory_that_others_can_write_to_is_not_used(compiler, directory):
    load(directory)
    directory.chmod(0o777)
    load(directory)
    assert compiler.compiled == 2
    directory.chmod(0o700)
    load(directory)
    assert compiler.compiled == 2


def test_a_directory_behind_a_link_is_not_used(compiler, directory, tmp_path):
    load(directory)
    link = tmp_path / "link"
    link.symlink_to(directory)
    load(link)
    assert compiler.compiled == 2


def test_without_a_place_to_keep_it_a_component_is_compiled(compiler, tmp_path):
    (tmp_path / "file").write_text("")
    load(tmp_path / "file" / "python")
    assert compiler.compiled == 1


def test_old_code_is_removed_when_new_is_stored(directory):
    load(directory)
    (file,) = files(directory)
    old = file.rename(directory / "old.compiled")
    os.utime(old, (0, 0))
    load(directory)
    assert files(directory) == [file]
