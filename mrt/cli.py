"""The `mrt` command: parses arguments, prints, sets the exit code. Its texts teach."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mrt.cli_options import (
    MODEL_OPTIONS,
    PATH,
    check_table_options,
    declared_options,
    examples,
    shared_options,
    take_target,
    tuning_options,
)
from mrt.errors import BadOption, GateMissed, MrtError, NotProvable, TargetMissed
from mrt.quantize.options import QuantizeOptions

if TYPE_CHECKING:
    from cvm.proof.validate import Proven
    from mrt.config import Config
    from mrt.evaluate import Report
    from mrt.progress import Progress

NO, BAD, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141
LONGEST_LINE = 500  # characters of a line of an error

NOISE = """\
mrt: warning: no --data was given, so the ranges were measured on synthetic noise, not on your data. The program runs and is
     proven, but expect it to lose accuracy, maybe all of it. Give --data with about 100 real samples."""


class Commands(click.Group):
    """Turns every failure into one sentence on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from cvm.errors import CvmError, Unproven

        try:
            return super().invoke(ctx)
        except (NotProvable, Unproven, GateMissed, TargetMissed) as problem:
            _fail(ctx, str(problem), NO)
        except (MrtError, CvmError) as problem:
            _fail(ctx, str(problem), BAD)
        except MemoryError:
            _fail(ctx, "not enough memory for this model", BAD)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)
        except OSError as problem:
            _fail(ctx, f"{problem.filename or 'output'}: {problem.strerror}", BAD)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a name may hold what the terminal's encoding lacks
    cli(prog_name="mrt")


def _fail(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo("mrt: " + "\n".join(map(_printable, message.split("\n"))), err=True)
    ctx.exit(code)


def _printable(line: str) -> str:
    """A line in which the names of a model neither command the terminal nor fill it."""
    shown = (
        line
        if len(line) <= LONGEST_LINE
        else f"{line[:LONGEST_LINE]}... ({len(line)} characters)"
    )
    return "".join(
        item
        if item.isprintable()
        else item.encode("unicode_escape", "surrogatepass").decode()
        for item in shown
    )


EXAMPLES = """
\b
Start with:
  mrt convert model-symbol.json --data images/     an MXNet model, 8 bits
  mrt convert model.onnx --config model.toml       everything said in a file
  mrt evaluate model.onnx model.cvm --data images/ what it cost in accuracy
  mrt export model-symbol.json -o model.onnx       off MXNet, still in float
  mrt compare model.onnx model.cvm --data images/  which layers lose it
  cvm verify model.cvm                             the proof that nothing overflows

\b
Exit codes:
  0  done
  1  the program cannot be proven, or a target or --fail-below was missed
  2  bad input or usage
"""


@click.group(
    cls=Commands,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="mrt-cvm", prog_name="mrt")
def cli() -> None:
    """Turn a trained MXNet or ONNX model into a proven program of integers (.cvm)."""


@cli.command(
    short_help="Turn a model into a proven integer program.",
    epilog=examples(
        "mrt convert model.json --bits 8",
        "mrt convert model.onnx --data calibration.npz --samples 100 -o model.cvm",
    ),
)
@shared_options(*MODEL_OPTIONS, "data", "samples")
@click.option(
    "--table",
    "table_path",
    type=PATH,
    metavar="T",
    help="A calibration table by `mrt calibrate`, instead of data.",
)
@click.option(
    "--bits", type=int, metavar="B", help="Sets both of the next two (default: 8)."
)
@declared_options(QuantizeOptions)
@shared_options("observer", "refine", "input_dtype", "shape", "value", "config")
@tuning_options
@click.option(
    "--report",
    "report_path",
    type=PATH,
    metavar="F",
    help="Also write what became of every operator: .html, .json, .txt.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="OUT.cvm",
    help="Default: the model's name with .cvm, beside it.",
)
def convert(
    model: Path | None,
    table_path: Path | None,
    report_path: Path | None,
    config_path: Path | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Convert MODEL (.onnx, or MXNet symbol .json) to a proven integer program.

    Parameters of an MXNet model are found beside its JSON. With no data, it is calibrated on noise, which costs accuracy.
    """
    from cvm.file.disk import text_writer, write_all
    from mrt import convert as pipeline
    from mrt import project
    from mrt.report import writer_for
    from mrt.settings import written_settings
    from mrt.table.table import CalibrationTable
    from mrt.tune.report import outcome_text

    target = take_target(options)
    check_table_options(table_path, options, tuning=target is not None)
    settings = _settings(model, options)
    assert settings.model.path is not None
    destination = output or project.default_output(settings.model.path)
    write_report = None if report_path is None else writer_for(report_path)
    sources = [settings.model.path, settings.model.params, table_path]
    extras = [path for path in (report_path, config_path) if path is not None]
    project.check_destination(destination, sources, *extras)
    table = CalibrationTable.load(table_path) if table_path is not None else None
    with _progress() as progress:
        result = pipeline.convert(
            settings, table=table, progress=progress, target=target
        )
    write_all({destination: result.write})
    click.echo(f"wrote {destination}")
    for name, value in result.summary().items():
        click.echo(f"  {name:<14} {value}")
    if result.tuned is not None:
        click.echo(outcome_text(result.tuned))
    if config_path is not None:
        found = written_settings(
            options["config"],
            result.config,
            config_path.parent,
            with_table=table is not None,
        )
        write_all({config_path: text_writer(found)})
        click.echo(f"wrote {config_path}")
    report = result.report(destination)
    click.echo("\n".join(report.summary()))
    if report_path is not None and write_report is not None:
        write_all({report_path: text_writer(write_report(report))})
        click.echo(f"wrote {report_path}")
    _print_notes(result.model.notes)
    if result.synthetic:
        click.secho(NOISE, err=True, fg="yellow")


@cli.command(
    short_help="Measure the range of every value on samples.",
    epilog=examples(
        "mrt calibrate model.onnx --data images/ --observer mse -o table.json",
        "mrt convert model.onnx --table table.json",
    ),
)
@shared_options(*MODEL_OPTIONS, "data", "samples", "observer")
@click.option(
    "--bits",
    "activation_bits",
    type=int,
    metavar="B",
    help="Activation precision that `entropy` and `mse` fit to, 2..8 or 16 (default: 8).",
)
@shared_options("refine", "input_dtype", "shape", "value", "config")
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="TABLE.json",
    help="Where to write the table.",
)
def calibrate(model: Path | None, output: Path, **options: Any) -> None:
    """Measure the range of every value of MODEL on samples, and write a calibration table.

    The table and the model decide the program: the same two give the same bytes on every machine.
    """
    from mrt import convert as pipeline
    from mrt import project

    settings = _settings(model, options)
    if settings.calibration_data.path is None:
        raise BadOption(
            "no data is given: --data, or a --config whose [calibration] names some"
        )
    project.check_destination(output, [settings.model.path, settings.model.params])
    with _progress() as progress:
        table = pipeline.make_table(settings, progress)
    table.save(output)
    click.echo(
        f"wrote {output}: {len(table.ranges)} ranges from {table.samples} samples"
    )


@cli.command(
    short_help="Compare a program with its float model.",
    epilog=examples(
        "mrt evaluate model.onnx model.cvm --data test.npz",
        "mrt evaluate --config model.toml model.cvm --json",
    ),
)
@shared_options("model")
@click.argument("program", type=PATH, required=False)
@shared_options(*MODEL_OPTIONS[1:], "data", "samples", "shape", "value", "config")
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Threads for the integer side (default: 1).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--fail-below",
    "gates",
    multiple=True,
    metavar="KEY=X",
    help="Exit with 1 if this figure of --json is below X, e.g. agreement=0.97; may be given again.",
)
def evaluate(
    model: Path | None,
    program: Path | None,
    threads: int,
    as_json: bool,
    gates: tuple[str, ...],
    **options: Any,
) -> None:
    """Compare MODEL in float with PROGRAM (.cvm) in integers on samples: accuracy, agreement, signal to noise."""
    import cvm
    from mrt import project
    from mrt.evaluate import evaluate as compare_outputs
    from mrt.evaluate.gate import parse_gate
    from mrt.pictures import config_for

    model, program = _model_and_program(
        model, program, options, "mrt evaluate MODEL P.cvm --data D"
    )
    limits = [parse_gate(gate) for gate in gates]
    executable = cvm.load(program)
    settings = config_for(
        executable.program, _settings(model, {**options, "evaluation": True})
    )
    loaded = project.load_to_run(settings)
    _warn_of_another_model(program, executable, loaded.sha256)
    samples = project.open_data(loaded.model, settings, settings.evaluation_data)
    with _progress() as progress:
        report = compare_outputs(
            loaded.model,
            executable,
            samples,
            lambda done, total: progress("comparing", done, total),
            threads=threads,
        )
    click.echo(
        json.dumps(report.to_json(), indent=2) if as_json else _report_text(report)
    )
    misses = [miss for gate in limits if (miss := gate.missed(report)) is not None]
    if misses:
        raise GateMissed("; ".join(misses))


@cli.command(
    short_help="Say which layers lose most, value by value.",
    epilog=examples(
        "mrt compare model.onnx model.cvm --data images/ --samples 20",
        "mrt compare model.onnx model.cvm --data images/ --html layers.html",
    ),
)
@shared_options("model")
@click.argument("program", type=PATH, required=False)
@shared_options(*MODEL_OPTIONS[1:], "data", "samples", "shape", "value", "config")
@click.option(
    "--worst",
    type=click.IntRange(1),
    default=20,
    metavar="N",
    help="Rows of the table (default: 20).",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print all layers as one JSON object."
)
@click.option(
    "--html",
    type=PATH,
    metavar="F.html",
    help="Also write a page with plots that needs nothing else.",
)
def compare(
    model: Path | None,
    program: Path | None,
    worst: int,
    as_json: bool,
    html: Path | None,
    **options: Any,
) -> None:
    """Compare every integer value of PROGRAM (.cvm) with the value of MODEL that it stands for, worst first.

    SNR is the power of the float value over that of the difference: 6 dB are one bit. Clipped is the share of float
    numbers that the integers cannot reach.
    """
    import cvm
    from cvm.file.disk import text_writer, write_all
    from mrt import project
    from mrt.evaluate import layers_report
    from mrt.evaluate.layers import compare_layers
    from mrt.evaluate.page import page
    from mrt.pictures import config_for

    model, program = _model_and_program(
        model, program, options, "mrt compare MODEL P.cvm --data D"
    )
    settings = _settings(model, {**options, "evaluation": True})
    if html is not None:
        project.check_destination(
            html, [settings.model.path, settings.model.params, program]
        )
    executable = cvm.load(program)
    settings = config_for(executable.program, settings)
    loaded = project.rewritten_for(executable.program, settings)
    _warn_of_another_model(program, executable, loaded.sha256)
    samples = project.open_data(loaded.model, settings, settings.evaluation_data)
    with _progress() as progress:
        layers = compare_layers(
            loaded.model,
            executable,
            samples,
            lambda done, total: progress("comparing", done, total),
        )
    if as_json:
        click.echo(json.dumps(layers_report.to_json(layers, len(samples)), indent=2))
    else:
        click.echo(layers_report.table(layers, worst))
    if html is not None:
        write_all({html: text_writer(page(layers, program.name, len(samples)))})
        click.echo(f"wrote {html}", err=as_json)


def _model_and_program(
    model: Path | None, program: Path | None, options: dict[str, Any], usage: str
) -> tuple[Path | None, Path]:
    """With a config that names the model, the only argument is the program."""
    if program is None and options["config"] is not None:
        model, program = None, model
    if program is None:
        raise BadOption(f"no program is given: {usage}")
    return model, program


def _warn_of_another_model(path: Path, program: Proven, sha256: str) -> None:
    made_from = program.program.said_of("model_sha256")
    if made_from not in (None, sha256):
        click.echo(
            f"mrt: warning: {path} was made from another model (SHA-256 {made_from})",
            err=True,
        )


@cli.command(
    short_help="Write the simpler float model that is quantised.",
    epilog=examples(
        "mrt rewrite model-symbol.json --shape data=1,3,224,224 -o simple.onnx",
        "mrt rewrite model.onnx --outputs conv5,pool2 -o inner.onnx",
    ),
)
@shared_options(*MODEL_OPTIONS, "input_dtype", "shape", "value", "config")
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="OUT.onnx",
    help="Where to write the rewritten model.",
)
def rewrite(model: Path | None, output: Path, **options: Any) -> None:
    """Write MODEL as the simpler float model that is quantised: BatchNorm folded, shapes fixed, few operators.

    It is numerically equal to MODEL. Its value names are those of reports, tables and [layers] in a config.
    """
    from mrt import project
    from mrt.rewrite import save

    settings = _settings(model, options)
    project.check_destination(output, [settings.model.path, settings.model.params])
    loaded = project.rewritten(settings)
    save(loaded.model, output)
    _print_notes(loaded.notes)
    click.echo(f"wrote {output}: {loaded.model.graph.num_nodes()} nodes")


@cli.command(
    short_help="Write an MXNet model as plain ONNX.",
    epilog=examples(
        "mrt export model-symbol.json --shape data=1,3,224,224 -o model.onnx",
        "mrt export model-symbol.json --params model-0012.params --opset 13 -o model.onnx",
        "mrt export ssd-symbol.json --outputs cls_preds,loc_preds -o headless.onnx",
    ),
)
@shared_options(*MODEL_OPTIONS, "shape", "value", "config")
@click.option(
    "--opset",
    type=int,
    metavar="N",
    help="The ONNX operator set to write, 11 to 26 (default: 17).",
)
@click.option(
    "--dynamic-batch/--fixed-batch",
    "any_batch",
    default=None,
    help="Take any number of samples, or as many as --shape says (default: any, if the model allows it).",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="OUT.onnx",
    help="Where to write the model.",
)
def export(
    model: Path | None,
    output: Path,
    opset: int | None,
    any_batch: bool | None,
    **options: Any,
) -> None:
    """Write MODEL as a float ONNX model that any runtime reads: the way off MXNet, without MXNet.

    Nothing is folded or quantised; names, parameters and answers stay. What is written was checked by onnx.checker, and
    run in onnxruntime against the model as read: at its batch, and several samples together against each alone.
    """
    from mrt import project
    from mrt.export import DEFAULT_OPSET

    settings = _settings(model, options)
    opset = DEFAULT_OPSET if opset is None else opset
    project.check_destination(output, [settings.model.path, settings.model.params])
    written = project.write_onnx(settings, output, opset=opset, any_batch=any_batch)
    batch = (
        f"fixed batch ({written.fixed_because})"
        if written.fixed_because
        else "any batch"
    )
    click.echo(
        f"wrote {' and '.join(written.files)}: {written.nodes} nodes, opset {opset}, {batch}"
    )
    _print_notes(written.notes)


@cli.command()
@click.option(
    "--frontend",
    type=click.Choice(["onnx", "mxnet"]),
    required=True,
    help="Whose operators.",
)
def operators(frontend: str) -> None:
    """List the operators that can be read, one a line."""
    from mrt.frontend import operators as names

    for name in names("onnx" if frontend == "onnx" else "mxnet"):
        click.echo(name)


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"mrt: note: {note}", err=True)


def _settings(model: Path | None, options: dict[str, Any]) -> Config:
    from mrt.settings import settings_of

    return settings_of(model, options)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on stderr if it is a terminal, else nothing."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    with Bars(console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report


def _report_text(report: Report) -> str:
    def percent(fraction: float | None) -> str:
        return "-" if fraction is None else f"{100 * fraction:.2f} %"

    rows = [
        ("", "float", "integer"),
        ("top-1", percent(report.of_float.top1), percent(report.of_integer.top1)),
        ("top-5", percent(report.of_float.top5), percent(report.of_integer.top5)),
        (
            "samples/s",
            f"{report.of_float.samples_per_second:.1f}",
            f"{report.of_integer.samples_per_second:.1f}",
        ),
    ]
    lines = [
        f"{report.samples} samples",
        *(f"  {name:<10} {left:>10} {right:>10}" for name, left, right in rows),
    ]
    lines.append(f"  same top-1 {percent(report.agreement):>10}")
    for name, decibels in report.snr_db.items():
        lines.append(
            f"  signal to noise of '{name}': {'no difference' if decibels is None else f'{decibels:.1f} dB'}"
        )
    return "\n".join(lines)
