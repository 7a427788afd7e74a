"""Locked dependencies of a function, by path in its asset."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.markers import Marker

PYTHON = "3.14"
PLATFORM = "aarch64-manylinux_2_28"
"""Lambda's arm64 with Amazon Linux 2023, whose glibc is 2.34."""

PROJECT = "splitshift"

# How markers are answered: as on Lambda, not as here.
_LAMBDA = {
    "implementation_name": "cpython",
    "implementation_version": f"{PYTHON}.0",
    "os_name": "posix",
    "platform_machine": "aarch64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": f"{PYTHON}.0",
    "python_version": PYTHON,
    "sys_platform": "linux",
    "extra": "",
}

# Parts that no function of ours can use; the isolated import of each asset shows that they are not missed.
_LEFT_OUT = (
    "aws_lambda_powertools/event_handler/",
    "aws_lambda_powertools/utilities/data_masking/",
    "aws_lambda_powertools/utilities/kafka/",
    "aws_lambda_powertools/utilities/parser/",  # needs pydantic
    "tzdata/zoneinfo/tzdata.zi",
)
_METADATA = ("METADATA", "LICENSE", "LICENCE", "COPYING", "NOTICE", "licenses")


class AssetError(Exception):
    """An asset cannot be built; the message says what to do."""


def locked(lock: Path, group: str) -> dict[str, bytes]:
    """The files of a group's packages, from this environment.  Raises AssetError where it differs from the lock."""
    return dict(_locked(lock.read_text(encoding="utf-8"), group))


@cache
def _locked(lock: str, group: str) -> Mapping[str, bytes]:
    """Kept, since every pool and every stage asks for the same."""
    files: dict[str, bytes] = {}
    for name, version in sorted(closure(tomllib.loads(lock), group).items()):
        files |= _copied(name, version)
    return files


def closure(lock: Mapping[str, Any], group: str) -> dict[str, str]:
    """Versions by name of everything that a dependency group of the project needs on Lambda."""
    packages: list[Any] = lock["package"]
    project = next(package for package in packages if package["name"] == PROJECT)
    # uv's lock leaves out a group that is empty.
    wanted: list[Any] = list(project["dev-dependencies"].get(group, ()))
    found: dict[str, str] = {}
    while wanted:
        dependency = wanted.pop()
        if not _holds(dependency.get("marker")):
            continue
        package = _package(packages, dependency)
        extras: Mapping[str, list[Any]] = package.get("optional-dependencies", {})
        for extra in dependency.get("extra", ()):
            wanted += extras[extra]
        if found.get(package["name"]) != package["version"]:
            found[package["name"]] = package["version"]
            wanted += package.get("dependencies", ())
    return found


def fetched(root: Path, group: str, cache: Path) -> dict[str, bytes]:
    """The files of a pool's own group, as wheels for Lambda's platform: from the network once, then from the cache.

    Raises AssetError.
    """
    export = ["export", "--frozen", "--only-group", group, "--no-emit-project", "--no-header", "--no-annotate"]
    requirements = _uv(export, root)
    place = cache / f"group-{group}-{hashlib.sha256(requirements.encode()).hexdigest()[:16]}"
    if not place.exists():
        unfinished = place.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        listed = unfinished / "requirements.txt"
        listed.write_text(requirements, encoding="utf-8")
        platform = ["--python-platform", PLATFORM, "--python-version", PYTHON, "--only-binary", ":all:"]
        install = ["pip", "install", "--no-deps", "--require-hashes", "--link-mode", "copy", *platform]
        _uv([*install, "--target", str(unfinished / "site"), "--requirement", str(listed)], root)
        unfinished.replace(place)
    found = sorted(path for path in (place / "site").rglob("*") if path.is_file())
    names = {path.relative_to(place / "site").as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in names.items() if _wanted(name)}


def _uv(arguments: list[str], root: Path) -> str:
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise AssetError("a pool's own dependencies need uv: `pip install uv`")
    done = subprocess.run([uv, *arguments], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        raise AssetError(f"uv {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _holds(marker: str | None) -> bool:
    return marker is None or Marker(marker).evaluate(dict(_LAMBDA))


def _package(packages: list[Any], dependency: Mapping[str, Any]) -> Any:
    """The one of that name; of several versions the one whose markers hold on Lambda."""
    for package in packages:
        if package["name"] != dependency["name"] or dependency.get("version", package["version"]) != package["version"]:
            continue
        markers: list[str] = package.get("resolution-markers", [])
        if not markers or any(_holds(marker) for marker in markers):
            return package
    raise AssetError(f"uv.lock has no {dependency['name']} for Lambda's Python {PYTHON}: run `uv lock`")


def _copied(name: str, version: str) -> dict[str, bytes]:
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise AssetError(f"{name} {version} is not installed here: run `uv sync --group infra`") from error
    if distribution.version != version:
        raise AssetError(f"{name} is {distribution.version} here and {version} in uv.lock: run `uv sync --group infra`")
    if not _pure(distribution):
        raise AssetError(f"{name} is compiled: a role's dependencies are pure Python, a pool may have its own group")
    return dict(_files(distribution))


def _pure(distribution: Distribution) -> bool:
    lines = (distribution.read_text("WHEEL") or "").splitlines()
    tags = [line.partition(": ")[2] for line in lines if line.startswith("Tag:")]
    return "Root-Is-Purelib: true" in lines and all(tag.endswith("-none-any") for tag in tags)


def _files(distribution: Distribution) -> Iterator[tuple[str, bytes]]:
    """As published: each file is what the wheel's record says."""
    for file in distribution.files or ():
        name = file.as_posix()
        if file.hash is None or not _wanted(name):
            continue
        content = file.read_binary()
        digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).rstrip(b"=").decode()
        if digest != file.hash.value:
            raise AssetError(f"{name} was changed after it was installed: run `uv sync --reinstall --group infra`")
        yield name, content


def _wanted(name: str) -> bool:
    path = PurePosixPath(name)
    if path.parts[0] in {"..", "bin"} or "__pycache__" in path.parts or path.suffix in {".pyi", ".pth"}:
        return False
    if path.parts[0].endswith(".dist-info"):
        return path.parts[1].startswith(_METADATA)
    return path.name != "py.typed" and not name.startswith(_LEFT_OUT)
