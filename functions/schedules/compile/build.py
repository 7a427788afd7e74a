"""All job files of a project, validated together and made into one document."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.schedules.compile.report import Error, Problem
from functions.schedules.compile.source import Source, read
from functions.schedules.compile.tables import Found, Surroundings, jobs_of, pools_of
from functions.schedules.definitions import SCHEMA
from functions.schedules.model import Job, Pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

JOBS_FOLDER = ("functions", "jobs")
JOBS_FILE = "jobs.toml"
POOLS_FILE = "pools.toml"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    document: dict[str, Any]
    """What definitions.json holds: every right job; whole only if there are no errors."""
    errors: tuple[Error, ...]


def compile_jobs(root: Path, files: Iterable[Path] = ()) -> Compiled:
    """Compile `functions/jobs/**/jobs.toml` under the root, and further files by name."""
    return compile_folder(root.joinpath(*JOBS_FOLDER), root=root, files=files)


def compile_folder(folder: Path, *, root: Path, code: Path | None = None, files: Iterable[Path] = ()) -> Compiled:
    """Compile every jobs.toml of a folder, with its pools.toml.

    `run` is looked up under `code`, by default the folder itself; for a further file also beside the file.
    File names in errors are relative to the root.
    """
    extra = [path for path in files if not path.resolve().is_relative_to(folder.resolve())]
    paths = [*sorted(folder.rglob(JOBS_FILE)), *(path for path in extra if path.name != POOLS_FILE)]
    pool_paths = [path for path in (folder / POOLS_FILE, *extra) if path.name == POOLS_FILE and path.exists()]
    errors: list[Error] = []
    pool_sources = [source for path in pool_paths if (source := _read(path, root, errors))]
    pools = _pools(pool_sources, complete=len(pool_sources) == len(pool_paths))
    errors += pools.errors
    sources = [source for path in paths if (source := _read(path, root, errors))]
    jobs: dict[str, Job] = {}
    for source in sources:
        beside = (source.path.parent,) if source.path in extra else ()
        around = Surroundings(
            code=(*beside, code or folder),
            pools=pools.items or None,
            broken_pools=frozenset(pools.broken),
        )
        found = jobs_of(source, around)
        errors += found.errors
        jobs |= found.items
    for error in _in_two_files(sources):
        errors.append(error)
        jobs.pop(error.job or "", None)
    errors.sort(key=lambda error: (error.file, error.line))
    return Compiled(document=_document(jobs, pools.items), errors=tuple(errors))


def write_definitions(document: Mapping[str, Any], path: Path) -> None:
    """Whole or not at all: a role that starts meanwhile reads the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(document, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def _read(path: Path, root: Path, errors: list[Error]) -> Source | None:
    whole, base = path.resolve(), root.resolve()
    file = whole.relative_to(base).as_posix() if whole.is_relative_to(base) else str(path)
    source = read(path, file)
    if isinstance(source, Source):
        return source
    errors += source
    return None


def _pools(sources: list[Source], *, complete: bool) -> Found:
    """The pools of all files; none at all where one could not be read, so that no job is blamed for it."""
    together = Found()
    for source in sources:
        found = pools_of(source)
        together.errors.extend(found.errors)
        together.items.update(found.items)
        together.broken.update(found.broken)
    together.items.setdefault("default", Pool())
    if not complete:
        together.items.clear()
    return together


def _in_two_files(sources: list[Source]) -> Iterator[Error]:
    """A name is one job's over all files; each place is told of the other."""
    places: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        tables = source.tables.get("jobs")
        for name in cast("dict[str, object]", tables) if isinstance(tables, dict) else ():
            places[name].append(source)
    for name, several in places.items():
        for source in several:
            for other in several:
                if other is not source:
                    line = other.lines.of(("jobs", name))
                    problem = Problem(
                        path=(), message=f"is also defined in {other.file}:{line}", fix="rename one of them"
                    )
                    yield source.error(("jobs", name), name, None, problem)


def _document(jobs: Mapping[str, Job], pools: Mapping[str, Pool]) -> dict[str, Any]:
    content = {
        "schema": SCHEMA,
        "jobs": {name: _plain(jobs[name]) for name in sorted(jobs)},
        "pools": {name: _plain(pools[name]) for name in sorted(pools)},
    }
    canonical = json.dumps(content, sort_keys=True)
    version = hashlib.sha256(canonical.encode()).hexdigest()[:12]
    return {**json.loads(canonical), "version": version}


def _plain(record: Job | Pool) -> dict[str, Any]:
    values = dataclasses.asdict(record)
    del values["name"]
    for key in ("starts", "ends"):
        if values.get(key) is not None:
            values[key] = to_text(values[key])
    return values
