"""Generated parts of the README are as the commands print them."""

from __future__ import annotations

from tests.support import readme


def test_the_help_in_the_readme_is_the_command_s_own():
    shown = readme.block_of("help", readme.README.read_text())
    assert shown == readme.output_of("--help"), "run: uv run python -m tests.support.readme"
