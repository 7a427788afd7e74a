"""The evidence about one unit: everything that is stored, and an archive in which no change stays unseen."""

from __future__ import annotations

import json
import resource
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.cli.auditing import MANIFEST, NoEvidenceError, collect, verify, write
from functions.cli.finding import find_unit
from functions.cli.stage import Stage
from functions.records.controls import Control
from functions.records.database import Put
from functions.records.incidents import Incident, condition_of
from functions.records.tables import COMPLETIONS, INVENTORY
from functions.sdk import Run
from tests.support.stages import ANN, a_stage
from tests.support.worlds import CHARGE, SLOT, World, a_charge

FILES = {
    "unit.json",
    "row.json",
    "lease.json",
    "control.json",
    "incidents.json",
    "definition.json",
    "journal.json",
    "effects.json",
}


@pytest.fixture
def world() -> World:
    return World(a_charge(backoff_s=1))


@pytest.fixture
def stage(world: World) -> Stage:
    return a_stage(world.stores, world.definitions, world.clock)


def collected(stage: Stage, unit_id: str = CHARGE) -> dict[str, Any]:
    return collect(stage, find_unit(stage, unit_id))


def evidence(stage: Stage, path: Path) -> str:
    return write(path, CHARGE, collected(stage), by=ANN, at="2026-11-29T07:00:00.000Z")


def test_of_a_slot_that_shares_its_row_with_others_it_holds_that_row(world: World, stage: Stage) -> None:
    world.jobs["hourly"] = replace(a_charge(name="hourly"), schedules=("0 * * * *",))
    vars(stage)["definitions"] = world.definitions
    until = SLOT + timedelta(hours=5)
    first = world.due("hourly", sends=0, state="suppressed", reason="catchup_skipped", until=until)

    documents = collected(stage, "hourly@2026-11-29T09:00:00Z")

    assert documents["unit.json"]["state"] == "suppressed"
    assert documents["row.json"] == world.stores.database.get(INVENTORY.name, {"unit_id": first})


@pytest.fixture
def archive(world: World, stage: Stage, tmp_path: Path) -> Path:
    @world.job
    def charge(run: Run) -> None:
        run.effect("charge", world.receiver.charge, repeatable=True)

    world.due(triggers=frozenset({"r-2", "r-1"}))
    world.settle()
    path = tmp_path / "evidence.zip"
    evidence(stage, path)
    return path


def test_it_holds_all_that_is_stored_of_the_unit_while_it_runs(world: World, stage: Stage) -> None:
    found: list[dict[str, Any]] = []

    @world.job
    def charge(run: Run) -> None:
        run.step("decide", lambda: ["t1"])
        run.effect("charge", world.receiver.charge, repeatable=True)
        if run.attempt == 1:
            raise ValueError("no")
        found.append(collected(stage))

    world.stores.controls.write(Control(job="charge", paused=False, resumed_by="ann"))
    for state, reason in (("open", "not_complete"), ("resolved", "worker_lost")):
        condition = condition_of(reason, CHARGE)
        incident = Incident(
            condition=condition, reason=reason, subject=CHARGE, state=state, severity="page", opened_at=SLOT
        )
        world.stores.incidents.open(incident, now=SLOT)
    world.due(definition="v1", payload={"cents": 12})
    world.settle()

    [documents] = found
    assert documents.keys() == FILES
    assert documents["unit.json"] == {
        "unit_id": CHARGE,
        "stage": "local",
        "account": None,
        "made_at": "2026-11-29T06:00:01.000Z",
        "made_by": ANN,
        "state": "running",
        "reason": None,
    }
    assert json.loads(documents["row.json"]["payload"]) == {"cents": 12}
    assert documents["lease.json"]["unit_id"] == CHARGE
    assert documents["control.json"]["resumed_by"] == "ann"
    assert [incident["reason"] for incident in documents["incidents.json"]] == ["not_complete", "worker_lost"]
    assert (documents["definition.json"]["version_of_row"], documents["definition.json"]["version_here"]) == (
        "v1",
        "v1",
    )
    assert documents["definition.json"]["job_here"]["name"] == "charge"
    assert [entry["entry"].partition("#")[0] for entry in documents["journal.json"]] == ["attempt"]
    assert {record["label"] for record in documents["effects.json"]} == {"step decide", "charge"}


def test_an_entry_that_this_version_cannot_read_is_in_it_as_it_is_stored(world: World, stage: Stage) -> None:
    world.due()
    item = {"unit_id": CHARGE, "entry": "attempt#x", "ending": "vanished", "ttl": 1}
    world.database.put(Put(COMPLETIONS.name, item))
    assert collected(stage)["journal.json"] == [item]


def test_a_retry_comes_with_the_effects_that_it_shares(world: World, stage: Stage, archive: Path) -> None:
    again = world.due(suffix="~again-1", effects_of=CHARGE)
    world.settle()
    assert [record["unit_id"] for record in collected(stage, again)["effects.json"]] == [CHARGE]


def test_what_was_written_is_found_as_it_was_written(archive: Path, stage: Stage) -> None:
    checked = verify(archive)
    assert (checked.unit_id, checked.problems) == (CHARGE, ())
    assert verify(archive).digest == checked.digest
    with zipfile.ZipFile(archive) as written:
        assert set(written.namelist()) == FILES | {MANIFEST}
        assert json.loads(written.read("row.json"))["triggers"] == ["r-1", "r-2"]
    assert archive.stat().st_mode & 0o077 == 0, "payloads are for their owner only"


def test_evidence_is_never_overwritten(stage: Stage, archive: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(NoEvidenceError, match="is not overwritten"):
        evidence(stage, archive)
    assert archive.read_bytes() == before


Change = Callable[[dict[str, bytes]], object]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.update({"row.json": files["row.json"] + b" "}), "row.json was changed"),
        (lambda files: files.pop("journal.json"), "journal.json is missing"),
        (lambda files: files.update({"more.json": b"{}"}), "more.json is not in the manifest"),
    ],
)
def test_a_change_of_any_file_is_found(archive: Path, tmp_path: Path, change: Change, said: str) -> None:
    with zipfile.ZipFile(archive) as written:
        files = {name: written.read(name) for name in written.namelist()}
    change(files)
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(forged, "w") as other:
        for name, data in files.items():
            other.writestr(name, data)
    assert verify(forged).problems == (said,)


def test_whoever_changes_the_manifest_too_changes_the_digest_that_was_printed(
    world: World, stage: Stage, archive: Path, tmp_path: Path
) -> None:
    documents = collected(stage) | {"row.json": None}
    forged = tmp_path / "forged.zip"
    write(forged, CHARGE, documents, by=ANN, at="2026-11-29T07:00:00.000Z")
    assert verify(forged).problems == ()
    assert verify(forged).digest != verify(archive).digest


@pytest.mark.parametrize("damage", ["no zip", "cut", "flipped", "no manifest", "manifest is no table"])
def test_a_damaged_archive_is_one_error_or_a_problem_and_no_traceback(
    archive: Path, tmp_path: Path, damage: str
) -> None:
    data = archive.read_bytes()
    broken = tmp_path / "broken.zip"
    if damage in {"no manifest", "manifest is no table"}:
        with zipfile.ZipFile(broken, "w") as other:
            other.writestr("row.json" if damage == "no manifest" else MANIFEST, "[]")
    else:
        flipped = bytearray(data)
        flipped[60] ^= 0xFF
        broken.write_bytes({"no zip": b"hello", "cut": data[:-40], "flipped": bytes(flipped)}[damage])
    try:
        problems = verify(broken).problems
    except NoEvidenceError as error:
        problems = (str(error),)
    assert problems != ()


def small(path: Path) -> dict[str, bytes]:
    """An archive of a few bytes; what is in it."""
    write(path, CHARGE, {"row.json": {"n": 1}, "journal.json": [1, 2, 2, 2, 2, 2]}, by=ANN, at="2026-11-29T07:00:00Z")
    return contents(path)


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_no_byte_of_it_can_be_changed_so_that_something_else_is_called_as_it_was_written(tmp_path: Path) -> None:
    path, broken = tmp_path / "small.zip", tmp_path / "broken.zip"
    written = small(path)
    data = path.read_bytes()
    found = 0
    for place in range(len(data)):
        broken.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            problems = verify(broken).problems
        except NoEvidenceError:
            problems = ("damaged",)
        if problems:
            found += 1
        else:
            assert contents(broken) == written, f"byte {place} of {len(data)} was changed, and nobody said so"
    assert found > len(data) / 2


@pytest.mark.parametrize("packed", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_what_is_packed_as_we_never_pack_is_not_unpacked(tmp_path: Path, packed: int) -> None:
    path, other = tmp_path / "small.zip", tmp_path / "other.zip"
    written = small(path)
    with zipfile.ZipFile(other, "w", packed) as archive:
        for name, data in written.items():
            archive.writestr(name, data)
    with pytest.raises(NoEvidenceError, match="packed otherwise"):
        verify(other)


@pytest.mark.parametrize(
    ("said_to_have", "says"), [(1 << 30, "larger than anything"), (10, "manifest cannot be read|or is damaged")]
)
def test_what_unpacks_to_more_than_we_write_is_not_unpacked(tmp_path: Path, said_to_have: int, says: str) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, bytes(20 << 20))
        archive.getinfo(MANIFEST).file_size = said_to_have
    tracemalloc.start()
    try:
        with pytest.raises(NoEvidenceError, match=says):
            verify(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_a_name_that_stands_twice_or_leads_elsewhere_is_told_and_nothing_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "small.zip"
    small(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../outside.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("row.json", "{}")
    assert verify(path).problems == (
        "row.json stands in it 2 times",
        "../../outside.json is not in the manifest",
        "row.json was changed",
    )
    assert [found.name for found in tmp_path.iterdir()] == ["small.zip"]


@pytest.mark.parametrize(
    ("where", "said"), [("", "is there already"), ("none/e.zip", "No such file"), ("link", "there")]
)
def test_a_place_that_cannot_be_written_is_one_error(tmp_path: Path, where: str, said: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoEvidenceError, match=said):
        small(tmp_path / where)
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_is_full_is_one_error_and_leaves_no_half_of_it(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(NoEvidenceError, match="cannot be written: File too large"):
            small(tmp_path / "small.zip")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [*tmp_path.iterdir()] == []
