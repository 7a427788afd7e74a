"""From job files to the document that the roles load.  Build time only: nothing else here imports pydantic."""

from functions.schedules.compile.build import (
    JOBS_FILE,
    POOLS_FILE,
    Compiled,
    compile_folder,
    compile_jobs,
    write_definitions,
)
from functions.schedules.compile.report import Error

__all__ = ["JOBS_FILE", "POOLS_FILE", "Compiled", "Error", "compile_folder", "compile_jobs", "write_definitions"]
