"""Our own code in an asset: the modules that a role's handler leads to, and for workers the user's jobs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "functions"
JOBS = "functions/jobs"
_SKIPPED = frozenset({"__pycache__", "README.md", "jobs.toml", "pools.toml"})


def code_of(role: str, *, root: Path, project: Path | None) -> dict[str, bytes]:
    """By path in the asset.  `project` is given where the jobs belong to it."""
    files: dict[str, bytes] = {}
    wanted = [f"{PACKAGE}.{role}.handler"]
    if project is not None:
        jobs = _jobs(project)
        files |= jobs
        wanted += [name for path, content in jobs.items() if path.endswith(".py") for name in imported(content)]
    while wanted:
        module = wanted.pop()
        for path in _files(root, module):
            name = path.relative_to(root).as_posix()
            if name not in files and not name.startswith(f"{JOBS}/"):
                files[name] = path.read_bytes()
                wanted += imported(files[name])
    return files


def imported(source: bytes) -> Iterator[str]:
    """What a module imports of ours; `from a import b` may mean the module `a.b` too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == PACKAGE)


def _files(root: Path, module: str) -> Iterator[Path]:
    """The module, and the packages that are imported before it."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:length])
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                yield file


def _jobs(project: Path) -> dict[str, bytes]:
    """Everything that lies beside the jobs: their modules, and data that they read.

    Folders without an __init__.py are packages all the same, and a file that starts with a dot is nobody's data.
    """
    folder = project / JOBS
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    wanted = (path for path in found if not _SKIPPED.intersection(path.parts) and not path.name.startswith("."))
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in wanted}
