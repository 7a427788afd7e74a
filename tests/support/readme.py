"""Writes the generated parts of README.md: `uv run python -m tests.support.readme`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
COMMANDS = {"demo": ("demo",), "help": ("--help",)}


def output_of(*arguments: str) -> str:
    """What a command prints, in 100 columns and without colours."""
    ended = subprocess.run(
        [sys.executable, "-c", "from functions.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
        env=None,
    )
    return ended.stdout.rstrip()


def block_of(name: str, text: str) -> str:
    """The generated part of this name, as it stands in the README."""
    found = re.search(rf"<!-- generated: {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    if found is None:
        raise AssertionError(f"README.md has no part {name}")
    return found.group(1).removeprefix("```text\n").removesuffix("```\n").rstrip()


def shape(text: str) -> str:
    """Without what differs from run to run: numbers, and the blanks that make room for them."""
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", text))


def write() -> None:
    text = README.read_text()
    for name, arguments in COMMANDS.items():
        block = f"<!-- generated: {name} -->\n```text\n{output_of(*arguments)}\n```\n<!-- end -->"
        text = re.sub(rf"<!-- generated: {name} -->\n.*?<!-- end -->", lambda _, b=block: b, text, flags=re.DOTALL)
    README.write_text(text)


if __name__ == "__main__":
    write()
