"""A receiver's log, as others write it: rows one by one, and every one that cannot be read by its line."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from functions.cli.receiver_log import LONGEST_LINE, Applied, BadLogError, BadRow, rows

AT = datetime(2026, 11, 29, 6, 39, 2, tzinfo=UTC)


def a_log(folder: Path, content: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.csv", "key,time\nk1,2026-11-29T06:39:02Z\n"),
        ("log.CSV", 'id,time , key,amount\n7,"2026-11-29T07:39:02+01:00", k1,"1,2"\n'),
        ("log.csv", "\ufeffkey,time\r\n\r\nk1,2026-11-29T06:39:02Z"),
        ("log.csv", "\ufeffamount;key;time\r\n1,5;k1;2026-11-29T06:39:02Z\r\n"),
        ("log.csv", "time\tkey\n2026-11-29T06:39:02Z\tk1\n"),
        ("log.jsonl", '{"time": "2026-11-29 06:39:02+00:00", "key": "k1", "more": [1]}\n\n'),
    ],
)
def test_a_row_is_a_key_and_an_instant_whatever_else_is_in_it(tmp_path: Path, name: str, content: str) -> None:
    [row] = rows(a_log(tmp_path, content, name))
    assert isinstance(row, Applied)
    assert (row.key, row.at) == ("k1", AT)


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = a_log(tmp_path, "Idempotency Key,created\nk1,2026-11-29T06:39:02Z\n")
    assert [*rows(path, key="Idempotency Key", time="created")] == [Applied(line=2, key="k1", at=AT)]


def test_rows_that_cannot_be_read_are_told_by_their_line_and_the_others_go_on(tmp_path: Path) -> None:
    good = b"k1,2026-11-29T06:39:02Z\n"
    bad = {
        b"k1\n": "has no time",
        b",2026-11-29T06:39:02Z\n": "has no key",
        b"k1,2026-11-29T06:39:02\n": "its time is no time with an offset: write it like 2026-11-30T06:39:02Z",
        b"k1,yesterday\n": "its time is no time with an offset: write it like 2026-11-30T06:39:02Z",
        b'"k1,2026-11-29T06:39:02Z\n': "is no CSV: unexpected end of data",
        b"k\xff,2026-11-29T06:39:02Z\n": "is no UTF-8",
        b"k" * LONGEST_LINE * 3 + b",2026-11-29T06:39:02Z\n": "is longer than 65536 bytes",
        b"k" * 600 + b",2026-11-29T06:39:02Z\n": "its key is longer than 512 characters",
    }
    path = a_log(tmp_path, b"key,time\n" + b"".join(line + good for line in bad))

    found = [*rows(path)]

    assert [row for row in found if isinstance(row, BadRow)] == [
        BadRow(line=2 + 2 * place, problem=problem) for place, problem in enumerate(bad.values())
    ]
    assert [row.line for row in found if isinstance(row, Applied)] == [3 + 2 * place for place in range(len(bad))]


def test_a_row_without_the_field_tells_what_it_has_and_how_to_name_it(tmp_path: Path) -> None:
    content = '{"at": "2026-11-29T06:39:02Z", "key": "k1", "name": "charge"}\n{"time": null, "key": "k1"}\n{}\n'
    how = "say with --key-field and --time-field what they are called"
    assert [*rows(a_log(tmp_path, content, "log.jsonl"))] == [
        BadRow(line=1, problem=f"has no time, but at, key, name: {how}"),
        BadRow(line=2, problem="has no time"),
        BadRow(line=3, problem=f"has no key, but nothing: {how}"),
    ]


def test_a_cell_in_quotes_may_go_over_lines(tmp_path: Path) -> None:
    over = '"one\r\n""two"", thr\u2028ee"'
    content = f"note,key,time\r\n{over},k1,2026-11-29T06:39:02Z\r\nf\u2028our,k2,2026-11-29T06:39:02Z\r\n"
    assert [*rows(a_log(tmp_path, content))] == [Applied(line=2, key="k1", at=AT), Applied(line=4, key="k2", at=AT)]


@pytest.mark.parametrize("closed", ["", 'x"', '"'])
def test_a_quote_that_belongs_nowhere_spoils_its_own_line_only(tmp_path: Path, closed: str) -> None:
    good = "k1,2026-11-29T06:39:02Z\n"
    path = a_log(tmp_path, f'key,time\n"k0,2026-11-29T06:39:02Z\n{good * 30}{closed}\n{good}')
    found = [*rows(path)]
    assert [row.line for row in found if isinstance(row, Applied)] == [*range(3, 33), 34]
    assert [row.line for row in found if isinstance(row, BadRow)] == ([2, 33] if closed else [2])


@pytest.mark.parametrize("line", ["", "nothing", "[1]", "7", '{"key": 7, "time": "2026-11-29T06:39:02Z"}', "[" * 9000])
def test_lines_that_are_no_json_object_with_a_key_hide_no_other(tmp_path: Path, line: str) -> None:
    good = '{"key": "k1", "time": "2026-11-29T06:39:02Z"}'
    found = [*rows(a_log(tmp_path, f"{line}\n{good}\n", "log.jsonl"))]
    assert found[-1] == Applied(line=2, key="k1", at=AT)
    assert all(isinstance(row, BadRow) and row.line == 1 for row in found[:-1])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("log.txt", "", "neither .csv nor .jsonl"),
        ("log.csv", "", "its first line names no column key and no column time"),
        ("log.csv", "key,time\n".encode("utf-16"), "its first line is no UTF-8: write the columns"),
        ("log.csv", "key;at\nk1;2026-11-29T06:39:02Z\n", "names no column key"),
        ("log.csv", "key,at\n", "names no column time: write a header, or say with --key-field"),
    ],
)
def test_a_file_of_which_no_row_can_be_read_is_one_error(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(BadLogError, match=said):
        next(rows(a_log(tmp_path, content, name)))


def test_a_long_log_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    path = a_log(tmp_path, "key,time,note\n" + f"k1,2026-11-29T06:39:02Z,{'x' * 500}\n" * 3_000)
    tracemalloc.start()
    try:
        assert sum(isinstance(row, Applied) for row in rows(path)) == 3_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 1_500_000
    assert peak < 300_000
