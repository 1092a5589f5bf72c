"""The `mrt` command, with all its subcommands."""

from __future__ import annotations

import sys

import click

from mrt.commands.calibrate import calibrate
from mrt.commands.convert import convert
from mrt.commands.evaluate import compare, evaluate
from mrt.commands.export import export, operators, rewrite
from mrt.commands.failures import MrtCommands
from mrt.commands.init import init
from mrt.commands.probe import probe
from mrt.commands.report import report
from mrt.commands.show import show

EXAMPLES = """
\b
Start with:
  mrt show model.onnx                                          what it is, and whether it converts
  mrt convert model-symbol.json --data calibration.npz         an MXNet model, 8 bits if enough
  mrt convert model.onnx --data images/ --preset imagenet      pictures, prepared as in training
  mrt convert model.onnx --config model.toml                   everything said in a file
  mrt evaluate model.onnx model.cvm --data test.npz            what it cost in accuracy
  mrt compare model.onnx model.cvm --data test.npz             which values are far off
  mrt report model.onnx model.cvm --data test.npz              all of it as a page, and what mends it
  mrt export model-symbol.json --data test.npz -o model.onnx   off MXNet, still in float
  cvm verify model.cvm                                         the proof that nothing overflows

\b
Exit codes:
  0  done
  1  the program cannot be proven, or a target or --require was missed
  2  bad input or usage
"""


@click.group(
    cls=MrtCommands,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="mrt-cvm", prog_name="mrt")
def cli() -> None:
    """Turn a trained MXNet or ONNX model into a proven program of integers (.cvm)."""


for command in (
    show,
    init,
    convert,
    calibrate,
    probe,
    evaluate,
    compare,
    report,
    rewrite,
    export,
    operators,
):
    cli.add_command(command)


def main() -> None:
    """Run the console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name may hold characters that the encoding of the terminal lacks.
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="mrt")
