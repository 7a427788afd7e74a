"""What each function is made of: one zip per role with its own code and its locked dependencies, and nothing else.

Built without Docker, network or git.  Dependencies are copied from this environment, which uv has installed from
uv.lock: pure Python, so what runs here runs on Lambda's arm64 and Python 3.14 too.  Only a pool's own dependency group
may bring compiled wheels; those are fetched for Lambda's platform.  The same input gives the same bytes, and the hash
is that of the content: changing a file of the worker changes the worker's alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.dependencies import AssetError, fetched, locked
from infra.sources import code_of

DEFINITIONS = "definitions.json"
"""At the root of the asset, which is where a function starts: SPLITSHIFT_DEFINITIONS names it."""

# The relay moves ids and knows no job.
_WITH_DEFINITIONS = frozenset({"scheduler", "worker", "monitor"})
_WITH_JOBS = frozenset({"worker"})
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_ELF = b"\x7fELF"
_AARCH64 = 183  # e_machine, /usr/include/elf.h


@dataclass(frozen=True, kw_only=True)
class Asset:
    """`digest` is the SHA-256 of names and contents: what decides whether a function must be updated."""

    path: Path
    digest: str


@dataclass(frozen=True, kw_only=True)
class Assets:
    """`root` holds the code and uv.lock, `project` the job files, `out` gets the zips; `document` is what `check` made
    of the job files.
    """

    root: Path
    project: Path
    out: Path
    document: Mapping[str, Any]

    def build(self, role: str, dependencies: str = "") -> Asset:
        """The role's zip, with one more dependency group if that is named.  Raises AssetError."""
        files = self.contents(role, dependencies)
        digest = digest_of(files)
        # A path of its own: CDK takes what it has staged from a path before for what is there now.
        path = self.out / f"{'-'.join(filter(None, (role, dependencies)))}-{digest[:16]}.zip"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_bytes(zipped(files))
            unfinished.replace(path)
        return Asset(path=path, digest=digest)

    def contents(self, role: str, dependencies: str = "") -> dict[str, bytes]:
        """By path in the zip."""
        files = locked(self.root / "uv.lock", role)
        if dependencies:
            files |= fetched(self.root, dependencies, self.out)
        files |= code_of(role, root=self.root, project=self.project if role in _WITH_JOBS else None)
        if role in _WITH_DEFINITIONS:
            files[DEFINITIONS] = json.dumps(self.document, sort_keys=True, indent=1).encode() + b"\n"
        for name, content in files.items():
            _refuse_foreign(name, content)
        return files


def digest_of(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\0{hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return whole.hexdigest()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """The same bytes for the same files: sorted, one date, one mode."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _MODE
            entry.create_system = 3  # Unix, wherever it is built
            archive.writestr(entry, files[name])
    return stream.getvalue()


def _refuse_foreign(name: str, content: bytes) -> None:
    machine = int.from_bytes(content[18:20], "little") if content[:4] == _ELF else None
    if machine not in {None, _AARCH64} or name.endswith((".pyd", ".dylib")):
        raise AssetError(f"{name} is compiled for another machine than Lambda's arm64: find a wheel for aarch64")
