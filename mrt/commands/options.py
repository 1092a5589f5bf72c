"""The options that several commands of `mrt` share, and those that steer a search for mixed precision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.options import CLUSTER, FILE
from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import PresetOption
from mrt.errors import BadOption
from mrt.options import Option, options_of
from mrt.table.table import CalibrationOptions

if TYPE_CHECKING:
    from mrt.tune import TuningTarget

PATH = FILE
METAVARS = {  # of declared options that are no numbers of bits and no choice of words
    "preset": "NAME|FILE",
    "scale": "X",
    "mean": "X[,X,X]",
    "std": "X[,X,X]",
    "resize": "PX[,PX]",
    "crop": "PX[,PX]",
}


def examples(*lines: str) -> str:
    """Commands to copy, each on a line of its own."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def shared_options(
    *names: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Attach options of the shared list, so that the same one reads the same everywhere."""

    def attach(command: Callable[..., None]) -> Callable[..., None]:
        for name in reversed(names):
            command = SHARED_OPTIONS[name](command)
        return command

    return attach


def declared_options(
    declarations: type,
    *,
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Attach the options that a dataclass declares for the command line, or some of them."""

    def attach(command: Callable[..., None]) -> Callable[..., None]:
        for declared in reversed(options_of(declarations)):
            is_chosen = declared.name not in without
            if only:
                is_chosen = declared.name in only
            if declared.on_command_line and is_chosen:
                command = _declared_option(declared)(command)
        return command

    return attach


def _declared_option(
    declared: Option,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    text = declared.help
    if declared.name in METAVARS:
        metavar = METAVARS[declared.name]
        return click.option(declared.flag, metavar=metavar, help=text)
    if declared.default is not None:
        text = f"{text.removesuffix('.')} (default: {declared.default})."
    if declared.default is False:
        return click.option(
            declared.flag, is_flag=True, default=None, help=declared.help
        )
    if isinstance(declared.allowed[0], int):
        return click.option(declared.flag, type=int, metavar="B", help=text)
    return click.option(
        declared.flag, type=click.Choice(declared.allowed), help=text
    )


DATA_OPTIONS = ("data", "samples", "preset", "preparation")
EVALUATION_OPTIONS = ("threads", "class_output", "metric")
MODEL_OPTIONS = ("model", "params", "epoch", "random_weights", "outputs")

SHARED_OPTIONS: dict[
    str, Callable[[Callable[..., None]], Callable[..., None]]
] = {
    "model": click.argument("model", type=PATH, required=False),
    "config": click.option(
        "--config",
        type=PATH,
        metavar="C.toml",
        help="Read these settings; options here win over it.",
    ),
    "params": click.option(
        "--params",
        type=PATH,
        metavar="F",
        help="MXNet parameters, if not found beside the JSON.",
    ),
    "epoch": click.option(
        "--epoch",
        type=click.IntRange(0),
        metavar="N",
        help="MXNet parameters of this epoch: PREFIX-000N.params.",
    ),
    "random_weights": click.option(
        "--random-weights",
        type=click.IntRange(0),
        metavar="SEED",
        help="Invent well-scaled weights for an MXNet symbol that has none: for shapes, speed and tests.",
    ),
    "outputs": click.option(
        "--outputs",
        metavar="NAME,...",
        help="End in these nodes or values instead: to cut off a head, or to look at an inner value.",
    ),
    "shape": click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="NAME=1,3,224,224",
        help="Shape of an input that neither the file nor the data says, or another than the file's.",
    ),
    "value": click.option(
        "--value",
        "values",
        multiple=True,
        metavar="NAME=16000",
        help="Make a constant of an ONNX input that is no data: a sample rate, a threshold.",
    ),
    "state": click.option(
        "--state",
        "states",
        multiple=True,
        metavar="PAST=PRESENT",
        help="An input that takes an output of the step before, such as a decoder's cache; past.* and present.* "
        "are found by name. Samples may then be tokens alone, [N, T].",
    ),
    "data": click.option(
        "--data",
        type=PATH,
        metavar="D",
        help="Samples: .npz (arrays by input name, or x; labels y), .npy, or a folder of images "
        "(classes by labels.csv or sub-folder).",
    ),
    "shapes_from": click.option(
        "--data",
        "shapes_from",
        type=PATH,
        metavar="D",
        help="Samples, or a program (.cvm) or calibration table (.json) of the model: "
        "the shape of an input that the file leaves open is theirs.",
    ),
    "samples": click.option(
        "--samples",
        type=click.IntRange(1),
        metavar="N",
        help="Use at most N, at equal distances.",
    ),
    "held_back": click.option(
        "--held-back",
        type=click.IntRange(0),
        metavar="N",
        help="Of these, calibrate on all but N, at equal distances, which are for the verdict (default: a quarter of 32 or more, "
        "at most 32; none if --samples or [evaluation] leaves others).",
    ),
    "preset": declared_options(PresetOption),
    "preparation": declared_options(Preprocessing, without=("input_dtype",)),
    "input_dtype": declared_options(Preprocessing, only=("input_dtype",)),
    "threads": click.option(
        "--threads",
        type=click.IntRange(1),
        metavar="N",
        help="Threads that share the samples (default: one for each core, at most 8).",
    ),
    "class_output": click.option(
        "--class-output",
        metavar="NAME",
        help="The output that holds the classes, as scores or as a label (default: the only one that can).",
    ),
    "metric": click.option(
        "--metric",
        metavar="MODULE:FUNCTION",
        help="Your own measure: a Python function of (outputs, labels), arrays by output name with samples "
        "along the first axis, and the data's y, classes or the targets of a regression, or None; it returns a number.",
    ),
    "cluster": CLUSTER,
    "observer": declared_options(CalibrationOptions),
    "refine": click.option(
        "--refine",
        metavar="STAGES",
        help="Decisions on the samples besides ranges: duplicates, scales and "
        "centres of channels; fit, second-order rounding (weights) and biases of "
        "layers. Names with commas between them, all, or none (default: all).",
    ),
    "extra_products": click.option(
        "--extra-products",
        metavar="X",
        help="Accuracy with the same bits, for up to X times the model's products more (0.3: 30 %): copies of the channels "
        "whose rounding harms most. 0: none (default: a few that are cheap).",
    ),
}


TARGETS = {
    "target_agreement": "agreement",
    "target_drop": "drop",
    "target_snr": "snr",
}


def tuning_options(command: Callable[..., None]) -> Callable[..., None]:
    """Attach the options that request automatic mixed precision."""
    for attach in (
        click.option(
            "--class-output",
            metavar="NAME",
            help="With a target: the output that holds a score for each class (default: the only one that can).",
        ),
        click.option(
            "--write-config",
            "config_path",
            type=PATH,
            metavar="F.toml",
            help="Also write the settings with the precisions found: to convert again without a search.",
        ),
        click.option(
            "--target-snr",
            type=float,
            metavar="DB",
            help="The same for models that are no classifiers: signal to noise.",
        ),
        click.option(
            "--target-drop",
            type=float,
            metavar="POINTS",
            help="The same, by top-1 points lost, e.g. 0.5; needs labels.",
        ),
        click.option(
            "--target-agreement",
            type=float,
            metavar="X",
            help="Raise the bits of what hurts most until so many top-1 are float's, e.g. 0.98, on held-back samples.",
        ),
    ):
        command = attach(command)
    return command


def take_target(options: dict[str, Any]) -> TuningTarget | None:
    """The target among a command's options, which are taken out; BadOption for more than one."""
    targets = {
        kind: value
        for name, kind in TARGETS.items()
        if (value := options.pop(name)) is not None
    }
    class_output = options.pop("class_output")
    if not targets:
        if class_output is not None:
            raise BadOption("--class-output: only a target needs it here")
        return None
    if len(targets) > 1:
        raise BadOption(
            f"{' and '.join(f'--target-{kind}' for kind in targets)}: one target at a time"
        )
    from mrt.tune import TuningTarget

    kind, value = next(iter(targets.items()))
    return TuningTarget(kind, value, class_output)


def check_table_options(
    table: Path | None, options: Mapping[str, Any], *, tuning: bool
) -> None:
    """Raise BadOption for options that a given table makes pointless; samples may still be measured on."""
    decided = () if tuning else ("refine", "extra_products")
    for name in ("observer", *decided):
        if table is not None and options[name] is not None:
            flag = name.replace("_", "-")
            raise BadOption(
                f"--table and --{flag}: the table already says what was seen; leave one of them out"
            )
