"""Python imports this when it starts, where PYTHONPATH has this folder: the process writes down each AWS call it makes.

One JSON document a line, at once: a process that is killed loses none.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import botocore


def _note(params: dict[str, Any], model: Any, **_: Any) -> None:
    command = Path(sys.argv[0]).name
    call = {
        "role": sys.argv[1] if command == "role.py" else "operator",
        "service": model.service_model.service_name,
        "operation": model.name,
        "params": params,
    }
    opened = os.open(os.environ["SPLITSHIFT_TESTS_CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(opened, f"{json.dumps(call, default=repr)}\n".encode())
    finally:
        os.close(opened)


botocore.register_initializer(lambda session: session.register("before-parameter-build", _note))
