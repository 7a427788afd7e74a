"""From job files to the document that the roles load.  Build time only: nothing else here imports pydantic."""

from functions.schedules.compile.build import Compiled, compile_folder, compile_jobs, write_definitions
from functions.schedules.compile.report import Error

__all__ = ["Compiled", "Error", "compile_folder", "compile_jobs", "write_definitions"]
