"""Everything that is stored about one unit, as it is stored, in an archive that shows whether it was changed since."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from functions.cli.finding import lock_of
from functions.cli.stage import NoInstallationError, Stage
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import to_text, to_text_ms
from functions.monitor.reasons import Reason
from functions.records.database import Find, Item
from functions.records.incidents import condition_of
from functions.records.inventory import Row
from functions.records.tables import COMPLETIONS, CONTROLS, EFFECTS, INCIDENTS, INVENTORY, LEASES
from functions.records.unit_id import parse_unit_id
from functions.records.units import UnitRecords
from functions.schedules.ranges import row_over

MANIFEST = "manifest.json"
_LARGEST_BYTES = 256 * 1024 * 1024
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)


class NoEvidenceError(FinalError):
    """The file cannot be written, or is none that `audit` wrote."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """`digest` is the manifest's: whoever changes the files and the manifest alike changes it."""

    unit_id: str
    digest: str
    problems: tuple[str, ...]


def collect(stage: Stage, records: UnitRecords) -> dict[str, Any]:
    """What there is, by file.  Items stand as they are stored, also those that this version cannot read."""
    unit_id, database = records.unit_id, stage.stores.database
    job = parse_unit_id(unit_id).job
    conditions = [{"condition": condition_of(reason, unit_id)} for reason in Reason]
    wanted: dict[str, list[dict[str, str]]] = {
        INVENTORY.name: [{"unit_id": unit_id}],
        CONTROLS.name: [{"name": job}],
        INCIDENTS.name: conditions,
    }
    lock = records.row.lock if isinstance(records.row, Row) else lock_of(stage)(unit_id)
    if lock is not None:
        wanted[LEASES.name] = [{"lease_key": lock}]
    # Row, lease, journal, in this order: whoever frees a lease has written the journal, which is read later.
    found = database.get_many(wanted)
    state = records.state(stage.clock.now(), stage.stores.skew)
    return {
        "unit.json": _about(stage, unit_id) | {"state": str(state.state), "reason": state.reason},
        "row.json": _one(found[INVENTORY.name]) or _shared_row(stage, records),
        "lease.json": _one(found.get(LEASES.name, [])),
        "control.json": _one(found[CONTROLS.name]),
        "incidents.json": sorted(found[INCIDENTS.name], key=lambda item: str(item["condition"])),
        "definition.json": _definition(stage, job, records),
        "journal.json": list(database.find(Find(COMPLETIONS.name, ("unit_id", unit_id)))),
        "effects.json": [
            item
            for ledger in _ledgers(unit_id, records)
            for item in database.find(Find(EFFECTS.name, ("unit_id", ledger)))
        ],
    }


def write(path: Path, unit_id: str, documents: Mapping[str, Any], *, by: str, at: str) -> str:
    """The manifest's digest.  Raises NoEvidenceError, also where there is such a file: evidence is not overwritten."""
    contents = {name: _json(document) for name, document in documents.items()}
    manifest = _json(
        {
            "unit_id": unit_id,
            "made_at": at,
            "made_by": by,
            "files": {name: {"sha256": _sha256(data), "bytes": len(data)} for name, data in contents.items()},
        }
    )
    try:
        # Only for its owner: a payload is whatever the job was given.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise NoEvidenceError(f"{path} is there already: evidence is not overwritten, write another --out") from None
    except OSError as error:
        raise NoEvidenceError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {**contents, MANIFEST: manifest}.items():
                archive.writestr(name, data)
    except OSError as error:
        path.unlink(missing_ok=True)  # half of it is no evidence, and would be in the way of the whole
        raise NoEvidenceError(f"{path} cannot be written: {error.strerror}") from error
    return _sha256(manifest)


def verify(path: Path) -> Checked:
    """Every file of the manifest is there as it was, and no other.  Raises NoEvidenceError."""
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_foreign(archive)
            names = Counter(archive.namelist())
            manifest = _read(archive, MANIFEST)
            files, unit_id = _manifest(path, manifest)
            problems = [
                *(f"{name} stands in it {times} times" for name, times in sorted(names.items()) if times > 1),
                *(f"{name} is not in the manifest" for name in sorted(names.keys() - files.keys() - {MANIFEST})),
                *(problem for name in files if (problem := _problem(archive, name, files[name]))),
            ]
    except (OSError, KeyError, ValueError, RuntimeError, *_DAMAGED) as error:
        raise NoEvidenceError(f"{path} is no evidence that `splitshift audit` wrote, or is damaged: {error}") from error
    return Checked(unit_id=unit_id, digest=_sha256(manifest), problems=tuple(problems))


def _manifest(path: Path, data: bytes) -> tuple[dict[str, str], str]:
    """Digests by file, and the unit."""
    try:
        manifest: Any = json.loads(data)
        files = {str(name): str(told["sha256"]) for name, told in manifest["files"].items()}
        return files, str(manifest["unit_id"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NoEvidenceError(f"{path}: its {MANIFEST} cannot be read") from error


def _problem(archive: zipfile.ZipFile, name: str, digest: str) -> str | None:
    try:
        return None if _sha256(_read(archive, name)) == digest else f"{name} was changed"
    except KeyError:
        return f"{name} is missing"
    except _DAMAGED:
        return f"{name} is damaged"


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(archive.getinfo(name).file_size + 1)  # without a number it unpacks whatever there is


def _refuse_foreign(archive: zipfile.ZipFile) -> None:
    """What another wrote may unpack to anything."""
    infos = archive.infolist()
    if any(info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} for info in infos):
        raise zipfile.BadZipFile("it is packed otherwise than what is written")
    if sum(info.file_size for info in infos) > _LARGEST_BYTES:
        raise zipfile.BadZipFile("it is larger than anything that is written")


def _about(stage: Stage, unit_id: str) -> dict[str, Any]:
    return {
        "unit_id": unit_id,
        "stage": stage.name,
        "account": None if stage.local else stage.account,
        "made_at": to_text_ms(stage.clock.now()),
        "made_by": stage.identity,
    }


def _definition(stage: Stage, job: str, records: UnitRecords) -> dict[str, Any]:
    """The version that the unit was written by, and the job as it is defined where the command is run."""
    try:
        version, known = stage.definitions.version, stage.definitions.jobs.get(job)
    except NoInstallationError:
        version, known = None, None
    return {
        "version_of_row": records.row.definition or None if isinstance(records.row, Row) else None,
        "version_here": version,
        "job_here": dataclasses.asdict(known) if known else None,
    }


def _ledgers(unit_id: str, records: UnitRecords) -> list[str]:
    """Its own, and that of the unit whose effects it shares."""
    shared = records.row.effects_of if isinstance(records.row, Row) else None
    return [unit_id, *([shared] if shared and shared != unit_id else [])]


def _shared_row(stage: Stage, records: UnitRecords) -> Item | None:
    """That of the first slot, where a slot that was not to run shares it with others."""
    if not isinstance(records.row, Row):
        return None
    name = row_over(stage.stores.inventory, stage.definitions.jobs, records.unit_id)
    return stage.stores.database.get(INVENTORY.name, {"unit_id": name}) if name else None


def _one(items: list[Item]) -> Item | None:
    return items[0] if items else None


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=2, sort_keys=True, default=_stored).encode()


def _stored(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(cast("Iterable[str]", value))
    if isinstance(value, datetime):
        return to_text(value)
    return str(value)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
