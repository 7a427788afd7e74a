"""While a role starts nothing is collected; once it stands, all is as before."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.benchmarks.cold_start import ROOT, STARTS, environment_of_roles

WATCHED = """
import gc
begun = []
gc.callbacks.append(lambda phase, info: begun.append(info["generation"]) if phase == "start" else None)
{code}
print(len(begun), gc.isenabled(), gc.get_freeze_count() > 10_000)
"""


def watched(code: str, environment: Mapping[str, str] | None = None) -> list[str]:
    script = WATCHED.format(code=code)
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout.split()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment_of_roles(tmp_path_factory.mktemp("roles"))


@pytest.mark.parametrize("role", STARTS)
def test_a_role_is_loaded_and_set_up_without_a_collection_and_leaves_the_collector_on(
    role: str, environment: dict[str, str]
) -> None:
    """But for a few while the standard library is loaded, which stands above our first import."""
    collections, on, frozen = watched(STARTS[role], environment)
    assert (int(collections) <= 20, on, frozen) == (True, "True", "True")


def test_a_bare_client_is_loaded_with_many() -> None:
    """So the count above means something."""
    collections, on, frozen = watched("import boto3")
    assert (int(collections) > 60, on, frozen) == (True, "True", "False")


SET_UP = """
from functions.kit.start import loaded, set_up
loaded()
@set_up
def build(how):
    assert not gc.isenabled()
    if how == "fails":
        raise ValueError(how)
    return how
begun.clear()
frozen = gc.get_freeze_count()
made = [[] for _ in range(1000)]
assert build("made") == "made" and gc.isenabled() and build.__name__ == "build"
assert gc.get_freeze_count() > frozen + 900
frozen = gc.get_freeze_count()
more = [[] for _ in range(1000)]
try:
    build("fails")
except ValueError:
    pass
assert gc.get_freeze_count() <= frozen, "each event would leave another one's garbage for ever"
"""


def test_what_is_set_up_is_made_without_it_also_where_that_fails() -> None:
    assert watched(SET_UP)[1] == "True"


def test_whoever_turns_it_off_turns_it_on_again() -> None:
    """Off before anything else of ours is loaded, on by the last line: an import alone turns it off."""
    users = [path for path in (ROOT / "functions").rglob("*.py") if "functions.kit.start" in path.read_text()]
    assert {path.relative_to(ROOT).as_posix() for path in users} == {f"functions/{role}/handler.py" for role in STARTS}
    for path in users:
        body = ast.parse(path.read_text()).body
        ours = [line.module for line in body if isinstance(line, ast.ImportFrom) and "functions" in str(line.module)]
        assert (ours[0], ast.unparse(body[-1])) == ("functions.kit.start", "loaded()"), path


@pytest.mark.parametrize("role", STARTS)
def test_all_that_a_handler_makes_once_is_set_up_so(role: str) -> None:
    body = ast.parse((ROOT / "functions" / role / "handler.py").read_text()).body
    decorators = [
        [ast.unparse(one) for one in part.decorator_list] for part in body if isinstance(part, ast.FunctionDef)
    ]
    once = [names for names in decorators if "cache" in names]
    assert once == [["cache", "set_up"]] * len(once) != []


def test_a_process_that_runs_without_the_collector_goes_on_so() -> None:
    assert watched("gc.disable()\nimport functions.relay.handler")[1:] == ["False", "True"]
