"""The catalogue keeps up with the code: `python -m tests.mutations` itself takes minutes, and is run by hand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.planting import ROOT, AnchorError, Edit, Mutation, planted


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that mutations change, and no others."""
    for file in {edit.file for mutation in MUTATIONS for edit in mutation.edits}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tmp_path / file)
    return tmp_path


def test_every_mutation_finds_what_it_replaces_once_makes_other_code_that_compiles_and_is_undone(tree: Path) -> None:
    for mutation in MUTATIONS:
        before = {edit.file: (tree / edit.file).read_text() for edit in mutation.edits}
        with planted(mutation, tree):
            for file, text in before.items():
                after = (tree / file).read_text()
                assert after != text, mutation.name
                compile(after, f"{mutation.name}: {file}", "exec")
        assert {file: (tree / file).read_text() for file in before} == before, mutation.name


def test_every_mutation_names_tests_that_exist_and_no_other_mutation_has_its_name() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    for mutation in MUTATIONS:
        assert mutation.tests, f"{mutation.name} names no test"
        for test in mutation.tests:
            file, _, name = test.partition("::")
            function = re.escape(name.partition("[")[0])
            assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.MULTILINE), test


@pytest.mark.parametrize("anchor", ["not there", "a = 1\n"])
def test_code_that_changed_under_a_mutation_fails_loudly_and_is_left_as_it_is(tmp_path: Path, anchor: str) -> None:
    (tmp_path / "code.py").write_text("a = 1\na = 1\n")
    mutation = Mutation(
        name="lost", breaks="nothing", edits=(Edit(file="code.py", old=anchor, new="b"),), tests=("tests/x.py",)
    )
    with pytest.raises(AnchorError, match=r"lost: code\.py has [02] times"), planted(mutation, tmp_path):
        pass
    assert (tmp_path / "code.py").read_text() == "a = 1\na = 1\n"
