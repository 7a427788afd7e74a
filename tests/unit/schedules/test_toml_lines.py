from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.schedules.compile.toml_lines import scan

TEXT = Path(__file__).with_name("every_form.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "fragment"),
    [
        (("defaults",), "[defaults]"),
        (("defaults", "owner"), "owner ="),
        (("defaults", "retries", "attempts"), "retries.attempts"),
        (("defaults", "retries", "back off"), "retries ."),
        (("jobs", "one"), "[jobs.one]"),
        (("jobs", "one", "schedule"), "schedule ="),
        (("jobs", "one", "schedule", 0), '"0 2 * * *"'),
        (("jobs", "one", "payload", "b.c", "d"), "payload ="),
        (("jobs", "one", "text"), "text ="),
        (("jobs", "one", "literal"), "literal ="),
        (("jobs", "one", "when"), "when ="),
        (("jobs", "two é", "run"), 'run="x"'),
        (("list", "of", 0, "sub", "b"), "b = 2"),
        (("list", "of", 1, "a"), "a = 3"),
    ],
)
def test_a_key_is_found_on_its_line_in_every_form_that_toml_has(path: tuple[str | int, ...], fragment: str) -> None:
    tomllib.loads(TEXT)
    assert fragment in TEXT.splitlines()[scan(TEXT).at[path] - 1]


def test_a_missing_key_stands_at_the_table_that_it_is_missing_from() -> None:
    assert scan(TEXT).of(("jobs", "one", "owner")) == scan(TEXT).at["jobs", "one"]
    assert scan(TEXT).of(("nothing",)) == 1


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[a]\nx = 1\ny = 2\n[a]\n", ("a",)),
        ("[a]\nx = 1\ny = 2\nx = 3\n", ("a", "x")),
        ("[a]\nx.y = 1\nz = 1\nx.y = 3\n", ("a", "x", "y")),
        ("\na = { x = 1 }\n\na = 2", ("a",)),
    ],
)
def test_a_key_that_is_given_twice_is_found_with_both_lines(text: str, path: tuple[str, ...]) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    [(found, second, first)] = scan(text).twice
    assert (found, second) == (path, 4)
    assert first in {1, 2}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=6)
VALUES = st.recursive(
    st.integers(-9, 9).map(str) | st.booleans().map(lambda b: str(b).lower()) | KEYS.map(_quoted),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: "[\n" + ",\n".join(items) + "\n]"),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_every_key_of_any_document_is_found(tables: dict[str, dict[str, str]]) -> None:
    lines: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    for table, pairs in tables.items():
        expected[table,] = sum(line.count("\n") + 1 for line in lines) + 1
        lines.append(f"[{_quoted(table)}]")
        for key, value in pairs.items():
            expected[table, key] = sum(line.count("\n") + 1 for line in lines) + 1
            lines.append(f"{_quoted(key)} = {value}")
    text = "\n".join(lines)
    tomllib.loads(text)
    found = scan(text)
    assert {path: line for path, line in found.at.items() if all(isinstance(part, str) for part in path)} == expected
    assert found.twice == []
