"""Each function's zip: its own code and dependencies, whole, small, the same every time, and for Lambda's platform."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

import pytest

from functions.schedules.compile import compile_jobs
from infra.assets import Assets, digest_of, zipped
from infra.dependencies import AssetError, closure, fetched, locked

ROOT = Path(__file__).parents[2]
ROLES = ("scheduler", "relay", "worker", "monitor", "receiver")
WITHOUT_JOBS = {"relay", "receiver"}
ALL = pytest.mark.parametrize("role", ROLES)
LARGEST = 1_500_000
LEGACY_ZONES = ("US/Pacific", "Asia/Calcutta", "Europe/Kyiv")

# With -I and -S: no site-packages, no PYTHONPATH, no folder of the test run.  The asset first, boto3 beside it.
ALONE = """
import importlib, json, os, pathlib, sys, sysconfig
asset, beside = sys.argv[1:3]
os.chdir(asset)
sys.path[:0] = [asset, beside]
handler = importlib.import_module(f"functions.{sys.argv[3]}.handler").handler
assert callable(handler)
"""
LOAD_JOBS = """
from functions.schedules.definitions import load
from functions.worker.registry import BundledRegistry
jobs = load(pathlib.Path("definitions.json")).jobs
for job in jobs.values():
    BundledRegistry(jobs).load(job)
"""
STRANGERS = """
stdlib = sysconfig.get_paths()["stdlib"]
files = [m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
print(json.dumps(sorted(f for f in files if not f.startswith((asset, beside, stdlib)))))
"""
ZONES = """
import zoneinfo
from functions.schedules.zones import load_zone
assert zoneinfo.TZPATH == (), zoneinfo.TZPATH
for name in sys.argv[4:]:
    load_zone(name)
"""


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Assets:
    compiled = compile_jobs(ROOT)
    assert not compiled.errors
    return Assets(root=ROOT, project=ROOT, out=tmp_path_factory.mktemp("assets"), document=compiled.document)


@pytest.fixture(scope="module")
def boto3_beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with boto3 and what it needs, as Lambda's runtime has it."""
    folder = tmp_path_factory.mktemp("runtime")
    for name in ("boto3", "botocore", "s3transfer", "jmespath", "python-dateutil", "six", "urllib3"):
        found = distribution(name)
        for top in {PurePosixPath(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not top.endswith(".dist-info"):
                (folder / top).symlink_to(Path(str(found.locate_file(top))))
    return folder


def run_alone(assets: Assets, role: str, boto3: Path, folder: Path, script: str, *arguments: str) -> str:
    with zipfile.ZipFile(assets.build(role).path) as archive:
        archive.extractall(folder)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", ALONE + script, folder, boto3, role, *arguments],
        env={"PYTHONTZPATH": "", "AWS_DEFAULT_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@ALL
def test_g01_an_asset_imports_with_nothing_but_boto3_beside_it(
    assets: Assets, role: str, boto3_beside: Path, tmp_path: Path
) -> None:
    script = (LOAD_JOBS if role == "worker" else "") + STRANGERS
    assert json.loads(run_alone(assets, role, boto3_beside, tmp_path, script)) == []


@ALL
def test_g01_what_we_ship_is_pure_python_and_so_runs_on_any_machine(assets: Assets, role: str) -> None:
    suffixes = {PurePosixPath(name).suffix for name in assets.contents(role)}
    assert suffixes.isdisjoint({".so", ".pyd", ".dylib", ".pyc"})


def test_g01_a_file_that_is_compiled_for_another_machine_is_refused(assets: Assets, tmp_path: Path) -> None:
    """Each machine writes its number into the header of an ELF file: 62 is x86-64, 183 is arm64."""
    jobs = tmp_path / "functions" / "jobs"
    jobs.mkdir(parents=True)
    header = b"\x7fELF" + bytes(14)
    (jobs / "native.so").write_bytes(header + (183).to_bytes(2, "little"))
    project = replace(assets, project=tmp_path)
    assert "functions/jobs/native.so" in project.contents("worker")
    (jobs / "native.so").write_bytes(header + (62).to_bytes(2, "little"))
    with pytest.raises(AssetError, match=r"native\.so is compiled for another machine"):
        project.contents("worker")


@pytest.mark.slow
def test_g01_a_pools_own_dependencies_are_wheels_for_lambdas_machine(tmp_path: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("not run: a pool's own dependencies are fetched by uv, which is not here")
    groups = '[dependency-groups]\nheavy = ["pyyaml==6.0.3"]\n'
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "splitshift"\nversion = "1"\nrequires-python = ">=3.11"\n{groups}'
    )
    made = subprocess.run([uv, "lock"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"not run: wheels for Lambda come from the package index ({made.stderr.strip()[-200:]})")
    files = fetched(tmp_path, "heavy", tmp_path / "cache")
    (compiled,) = [name for name in files if name.endswith(".so")]
    assert compiled.endswith("cpython-314-aarch64-linux-gnu.so")
    assert files[compiled][18:20] == (183).to_bytes(2, "little")
    with pytest.raises(AssetError, match="uv export failed"):
        fetched(tmp_path, "nothing", tmp_path / "cache")


@pytest.mark.parametrize("role", ["scheduler", "worker", "monitor"])
def test_g02_zones_and_their_old_names_come_from_the_asset_where_the_system_has_none(
    assets: Assets, role: str, boto3_beside: Path, tmp_path: Path
) -> None:
    run_alone(assets, role, boto3_beside, tmp_path, ZONES, *LEGACY_ZONES)


@ALL
def test_an_asset_is_small_and_has_no_boto3(assets: Assets, role: str) -> None:
    assert assets.build(role).path.stat().st_size <= LARGEST
    tops = {name.split("/")[0] for name in assets.contents(role)}
    assert tops.isdisjoint({"boto3", "botocore", "s3transfer", "pydantic", "tests", "infra"})


@ALL
def test_an_asset_holds_its_own_role_and_no_other(assets: Assets, role: str) -> None:
    packages = {name.split("/")[1] for name in assets.contents(role) if name.startswith("functions/")}
    assert role in packages
    assert packages.isdisjoint({*ROLES, "cli", "local"} - {role})
    assert ("jobs" in packages) == (role == "worker")
    assert not any(name.startswith("functions/schedules/compile") for name in assets.contents(role))


def test_definitions_stand_at_the_root_of_the_assets_whose_roles_read_them(assets: Assets) -> None:
    for role in ROLES:
        there = assets.contents(role).get("definitions.json")
        if role in WITHOUT_JOBS:
            assert there is None, "so changed jobs do not touch it"
        else:
            assert there is not None
            assert json.loads(there) == assets.document


def test_the_same_input_gives_the_same_bytes(assets: Assets, tmp_path: Path) -> None:
    first = assets.build("scheduler")
    again = replace(assets, out=tmp_path).build("scheduler")
    assert first.digest == again.digest
    assert first.path.read_bytes() == again.path.read_bytes()


def test_bytes_do_not_depend_on_the_order_of_files_on_the_clock_or_on_modes() -> None:
    files = {"b.py": b"2", "a.py": b"1"}
    turned = dict(reversed(files.items()))
    assert zipped(files) == zipped(turned)
    assert digest_of(files) == digest_of(turned)
    with zipfile.ZipFile(io.BytesIO(zipped(files))) as archive:
        entries = archive.infolist()
    assert [(entry.filename, entry.date_time) for entry in entries] == [
        ("a.py", (1980, 1, 1, 0, 0, 0)),
        ("b.py", (1980, 1, 1, 0, 0, 0)),
    ]
    assert {oct(entry.external_attr >> 16) for entry in entries} == {"0o100644"}


def test_a_name_and_a_content_that_change_places_are_another_asset() -> None:
    assert digest_of({"a": b"1", "b": b"2"}) != digest_of({"a": b"2", "b": b"1"})
    assert digest_of({"a": b"1b"}) != digest_of({"a": b"1", "b": b""})


@pytest.mark.parametrize(
    ("changed", "roles"),
    [
        ("functions/worker/decide.py", {"worker"}),
        ("functions/sdk/run.py", {"worker"}),
        ("functions/scheduler/tick.py", {"scheduler"}),
        ("functions/monitor/judge.py", {"monitor"}),
        ("functions/receiver/routes.py", {"receiver"}),
        ("functions/kit/clock.py", set(ROLES)),
        ("functions/cli/check.py", set()),
        ("functions/sdk/testing/harness.py", set()),
    ],
)
def test_a_changed_file_changes_the_assets_of_those_roles_that_use_it(
    assets: Assets, tmp_path: Path, changed: str, roles: set[str]
) -> None:
    before = {role: digest_of(assets.contents(role)) for role in ROLES}
    copy = tmp_path / "project"
    shutil.copytree(ROOT / "functions", copy / "functions", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "uv.lock", copy)
    with (copy / changed).open("a") as file:
        file.write("# changed\n")
    elsewhere = replace(assets, root=copy, project=copy)
    assert {role for role in ROLES if digest_of(elsewhere.contents(role)) != before[role]} == roles


def test_dependencies_are_those_of_the_lock_or_the_build_stops(tmp_path: Path) -> None:
    lock = (ROOT / "uv.lock").read_text()
    assert locked(ROOT / "uv.lock", "relay")
    other = tmp_path / "uv.lock"
    other.write_text(lock.replace('name = "jmespath"\nversion = "', 'name = "jmespath"\nversion = "9'))
    with pytest.raises(AssetError, match=r"jmespath is 1\.\S+ here and 91\.\S+ in uv\.lock: run `uv sync"):
        locked(other, "relay")


def test_markers_are_answered_as_on_lambda_and_not_as_here() -> None:
    def package(name: str, **more: object) -> dict[str, object]:
        return {"name": name, "version": "1", **more}

    group = [
        {"name": "new", "marker": "python_full_version >= '3.14'"},
        {"name": "old", "marker": "python_full_version < '3.14'"},
        {"name": "arm", "marker": "platform_machine == 'aarch64' and sys_platform == 'linux'"},
        {"name": "fancy", "extra": ["more"]},
    ]
    lock = {
        "package": [
            package("splitshift", **{"dev-dependencies": {"group": group}}),
            package("new", dependencies=[{"name": "below"}]),
            package("old"),
            package("arm"),
            package("fancy", **{"optional-dependencies": {"more": [{"name": "forked"}]}}),
            package("below"),
            {"name": "forked", "version": "1", "resolution-markers": ["python_full_version < '3.12'"]},
            {"name": "forked", "version": "2", "resolution-markers": ["python_full_version >= '3.12'"]},
        ]
    }
    assert closure(lock, "group") == {"new": "1", "below": "1", "arm": "1", "fancy": "1", "forked": "2"}
