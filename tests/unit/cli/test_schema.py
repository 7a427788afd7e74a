from __future__ import annotations

import json

from click.testing import CliRunner

from functions.cli.main import cli
from functions.schedules.compile.schema import jobs_schema


def test_the_schema_is_one_json_document_on_stdout() -> None:
    for arguments in (["schema"], ["schema", "--json"]):
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0
        assert json.loads(result.stdout) == jobs_schema()
        assert result.stderr == ""
