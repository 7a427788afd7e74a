"""Before a command writes: it says where, and asks where the stage is marked as protected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from functions.cli.display import where
from functions.cli.stage import Stage

F = TypeVar("F", bound="Callable[..., Any]")

PROTECTED = "SPLITSHIFT_PROTECTED"
_TRUE = {"1", "true", "yes"}


def yes_option(function: F) -> F:
    return click.option("--yes", is_flag=True, help="Do not ask, also where the stage is protected.")(function)


def is_protected(stage: Stage) -> bool:
    return stage.settings.get(PROTECTED, "").lower() in _TRUE


def tell_where(stage: Stage) -> None:
    """Stage and account, before anything else is said or done."""
    click.echo(where(stage), err=True)


def ask(stage: Stage, *, yes: bool) -> None:
    """On a protected stage a person must say so; exit code 1 where they do not, or nobody is there to be asked."""
    if not is_protected(stage) or yes:
        return
    if not confirmed(f"{stage.name} is protected."):
        click.echo("nothing was written", err=True)
        raise SystemExit(1)


def confirmed(what: str) -> bool:
    """A person's yes.  Where there is nobody to be asked it is a no, which names the option that answers."""
    try:
        return click.confirm(f"{what}  Go on?", err=True)
    except click.Abort:
        click.echo("\nnobody answered: --yes does", err=True)
        return False
