"""The `gesim` command.

Results go to stdout, talk to stderr. Exit codes: 0 all well, 1 an expectation of a scenario
failed (or a policy did not pass), 2 bad input, 70 a bug of gesim, 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

import gesim
from gesim.cli import check_policy, policies, profiles, run, schema, show, validate
from gesim.cli.talk import complain, talk
from gesim.errors import GesimError, InternalError

__all__ = ["app", "main"]

BAD_INPUT = 2
OUR_FAULT = 70
"""EX_SOFTWARE of sysexits.h: 1 is taken by expectations that failed."""

app = typer.Typer(
    name="gesim",
    help="Simulate an inference-serving scheduling policy before anyone touches hardware.",
    epilog="Exit codes: 0 all well, 1 an expectation (or a policy check) failed, 2 bad input, "
    "70 a bug of gesim, 130 interrupted.",
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


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit; every expected failure is one message and an exit code.

    Parameters
    ----------
    args : sequence of str, optional
        Instead of the process's own.
    """
    try:
        app(args)
    except InternalError as error:
        complain(error)
        sys.exit(OUR_FAULT)
    except GesimError as error:
        complain(error)
        sys.exit(BAD_INPUT)
    except Exception:
        import traceback

        traceback.print_exc()
        talk().print("error (gesim): this is a bug of gesim; please report it with the lines above")
        sys.exit(OUR_FAULT)
    sys.exit(0)
