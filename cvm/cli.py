"""The `cvm` command: gathers the commands; their texts teach."""

from __future__ import annotations

import sys

import click

from cvm.commands.accumulate import accumulate
from cvm.commands.bench import bench
from cvm.commands.export import export
from cvm.commands.failures import CvmCommands
from cvm.commands.generate import generate
from cvm.commands.import_model import import_model
from cvm.commands.inspect import cost, diff, digest, show, verify
from cvm.commands.options import block
from cvm.commands.party import party, strip
from cvm.commands.plan import plan
from cvm.commands.prove import commit, prove, verify_proof
from cvm.commands.run import replay, run
from cvm.commands.trace import trace

OVERVIEW = (
    block(
        "Start with:",
        "cvm show model.cvm            what the program is",
        "cvm verify model.cvm          whether it is proven never to overflow",
        "cvm run model.cvm --input x.npz --real",
        "                              run it on real numbers",
    ),
    block(
        "Exit codes:",
        "0  yes, done",
        "1  a negative answer: not proven, no match, differs",
        "2  bad input or usage",
        "3  a trap in checked mode",
    ),
)


@click.group(
    cls=CvmCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n\n".join(OVERVIEW),
)
@click.version_option(package_name="mrt-cvm")
def cli() -> None:
    """Prove and run integer programs (.cvm files): the same bytes on every machine."""


for command in (
    *(run, replay, generate, trace, verify),
    *(show, diff, digest, cost, bench, export, plan, import_model),
    *(prove, commit, verify_proof, party, strip, accumulate),
):
    cli.add_command(command)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a name may hold what the terminal's encoding lacks
    cli(prog_name="cvm")
