"""`gesim check-policy`: the published conformance suite on one policy."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["check_policy"]


def check_policy(
    policy: Annotated[
        str, typer.Argument(metavar="NAME|FILE.py:CLASS", help="A registered name, or a class.")
    ],
    kind: Annotated[str | None, typer.Option(help="Kind, where a name stands for several.")] = None,
) -> None:
    """Check that a policy keeps the contract: pure, deterministic, bounded, legal, live."""
    from gesim.testing.conformance import check_policy

    report = check_policy(policy, kind=kind)
    for check in report.checks:
        typer.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}" + (
            f": {check.why}" if check.why else ""
        ))  # fmt: skip
    verdict = "passes" if report.ok else "does not pass"
    typer.echo(f"{report.kind} policy {report.policy!r} {verdict}")
    if not report.ok:
        raise typer.Exit(1)
