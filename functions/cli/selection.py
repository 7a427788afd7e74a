"""Which jobs a command is about: those that are named, or all but some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from functions.cli.requests import RefusedRequestError, known_job
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.schedules.model import Job

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """As it was written on the command line."""

    names: tuple[str, ...] = ()
    every: bool = False
    but: tuple[str, ...] = ()
    owner: str | None = None
    tag: str | None = None

    def jobs(self, stage: Stage) -> list[Job]:
        """Raises a usage error for what can be meant in two ways, RefusedRequestError where nothing is meant."""
        if bool(self.names) == self.every:
            raise click.UsageError("name jobs, or write --all")
        if self.names and (self.but or self.owner or self.tag):
            raise click.UsageError("--except, --owner and --tag belong to --all")
        if self.names:
            return [known_job(stage, name) for name in dict.fromkeys(self.names)]
        but = {known_job(stage, name).name for name in self.but}
        jobs = [job for name, job in sorted(stage.definitions.jobs.items()) if name not in but and self._fits(job)]
        if not jobs:
            raise RefusedRequestError(
                "no job fits: `splitshift check` lists mistakes, `splitshift units` what there is"
            )
        return jobs

    def _fits(self, job: Job) -> bool:
        return (self.owner is None or job.owner == self.owner) and (self.tag is None or self.tag in job.tags)


def selection_options(function: F) -> F:
    """`names`, `every`, `but`, `owner`, `tag`: the fields of a Selection."""
    for option in (
        click.option("--tag", metavar="TAG", help="With --all: jobs with this tag only."),
        click.option("--owner", metavar="NAME", help="With --all: jobs of this owner only."),
        click.option("--except", "but", multiple=True, metavar="JOB", help="With --all: not this one; several times."),
        click.option("--all", "every", is_flag=True, help="All jobs."),
        click.argument("names", nargs=-1, metavar="[JOB]..."),
    ):
        function = option(function)
    return function
