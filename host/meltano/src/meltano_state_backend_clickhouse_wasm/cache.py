"""Compiled components on disk, so that a start takes a millisecond instead of the best part of a second."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from importlib import metadata
from pathlib import Path

import platformdirs
import structlog
import wasmtime
from wasmtime.component import Component

logger = structlog.stdlib.get_logger(__name__)

#: How long a file stays when newer ones are stored: 90 days.
KEPT_SECONDS = 90 * 24 * 60 * 60


def default_directory() -> Path:
    """The user's usual place for caches, such as `~/.cache/meltano-state/python`."""
    return platformdirs.user_cache_path("meltano-state", appauthor=False) / "python"


def load(engine: wasmtime.Engine, wasm: bytes, directory: Path) -> Component:
    """The component, from the cache if it is there, else compiled and stored.

    What lies there is run as machine code, so the directory has to belong to the user who runs this process and be open
    to nobody else; otherwise it is not used. No failure of the cache is an error.
    """
    path = directory / _file_name(wasm)
    try:
        _make_private(directory)
        content = path.read_bytes()
        checksum, code = content[:32], content[32:]
        if hashlib.sha256(code).digest() == checksum:
            return Component.deserialize(engine, code)
    except (OSError, wasmtime.WasmtimeError) as reason:
        logger.debug("No compiled component from the cache", path=str(path), reason=str(reason))
    component = Component(engine, wasm)
    try:
        _store(path, bytes(component.serialize()))
    except OSError as reason:
        logger.debug("The compiled component is not kept", path=str(path), reason=str(reason))
    return component


def _file_name(wasm: bytes) -> str:
    # Code made for another processor is refused by wasmtime, and then made anew.
    return hashlib.sha256(wasm + metadata.version("wasmtime").encode()).hexdigest() + ".compiled"


def _make_private(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    if not hasattr(os, "geteuid"):
        return  # Windows: the directory is within the user's profile, which is closed to others.
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{directory} is not a directory of this user alone")


def _store(path: Path, code: bytes) -> None:
    _make_private(path.parent)
    # Written apart and renamed, so that a process that starts now never reads half a file.
    descriptor, new = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
    _remove_old(path.parent)


def _remove_old(directory: Path) -> None:
    """Each version of the component leaves a file of about 1 MB. One that is in use and removed is made anew."""
    for file in directory.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > KEPT_SECONDS:
                file.unlink()
