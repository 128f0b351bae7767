"""The `gesim` command.

Results go to stdout, talk to stderr. Exit codes: 0 all well, 1 an expectation of a scenario
failed (or a policy did not pass), 2 bad input, 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import gesim
from gesim.cli import check_policy, policies, profiles, run, schema, show, validate
from gesim.cli.talk import complain
from gesim.errors import GesimError

__all__ = ["app", "main"]

app = typer.Typer(
    name="gesim",
    help="Simulate an inference-serving scheduling policy before anyone touches hardware.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("validate")(validate.validate)
app.command("show")(show.show)
app.command("policies")(policies.policies)
app.command("check-policy")(check_policy.check_policy)
app.command("profiles")(profiles.profiles)
app.command("schema")(schema.schema)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gesim {gesim.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold the options of the command itself."""


def main() -> None:
    """Run the command; every expected failure is one message and an exit code."""
    try:
        app()
    except GesimError as error:
        complain(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away: `gesim ... | head`
        sys.stderr.close()
        sys.exit(0)
