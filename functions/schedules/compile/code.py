"""Does the function that a job names exist?  Read from its source, never by importing: imports have effects."""

from __future__ import annotations

import ast
import difflib
import warnings
from typing import TYPE_CHECKING

from functions.schedules.rules import Refused

if TYPE_CHECKING:
    from pathlib import Path


def check_function(run: str, code: tuple[Path, ...]) -> None:
    """Raises Refused unless `module:function` is a top-level `def` under one of the folders that takes the run."""
    module, _, name = run.partition(":")
    path = _module_file(module, code)
    defined = {
        node.name: node for node in _parsed(path).body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    function = defined.get(name)
    if function is None:
        near = difflib.get_close_matches(name, defined, n=1)
        fix = f'write "{module}:{near[0]}"' if near else f"define it at the top level: def {name}(run)"
        raise Refused(f"{path.name} has no function {name}", fix)
    if isinstance(function, ast.AsyncFunctionDef):
        raise Refused(f"{name} is an async function", f"write def {name}(run), and asyncio.run(…) inside it")
    if not _takes_one(function.args):
        raise Refused(f"{name} does not take one argument", f"write def {name}(run)")


def _module_file(module: str, code: tuple[Path, ...]) -> Path:
    parts = module.split(".")
    for folder in code:
        for path in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py")):
            if path.is_file():
                return path
    files = [(path, folder) for folder in code for glob in ("*.py", "*/*.py") for path in folder.glob(glob)]
    known = [".".join(path.relative_to(folder).with_suffix("").parts) for path, folder in files]
    near = difflib.get_close_matches(module, known, n=1)
    fix = f'write "{near[0]}:…"' if near else f"create {'/'.join(parts)}.py in it"
    raise Refused(f"there is no module {module} in the jobs' folder", fix)


def _parsed(path: Path) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the job's own text, which its linter reports
            return ast.parse(path.read_bytes())
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise Refused(f"{path.name} has a syntax error{where}", "correct it") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"{path.name} cannot be read as Python", "write it as UTF-8 text") from error


def _takes_one(arguments: ast.arguments) -> bool:
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    only_keyword = any(default is None for default in arguments.kw_defaults)
    return required <= 1 and bool(positional or arguments.vararg) and not only_keyword
