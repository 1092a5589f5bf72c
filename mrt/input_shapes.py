"""Where the shape of an input comes from if the model's file leaves it open: a program, a table, or the samples."""

from __future__ import annotations

from collections.abc import Mapping

from cvm.program import Program
from mrt.calibrate.data_shapes import agrees, shapes_of_data, shown
from mrt.config import Config
from mrt.errors import BadOption
from mrt.graph.open_shapes import BATCH, FindShapes, Shape, Sizes


def finder(config: Config) -> FindShapes:
    """Finds shapes in the program, if there is one; else in the table, else in the first data that the configuration names."""

    def find(inputs: Mapping[str, Sizes]) -> Mapping[str, Shape]:
        if config.program_shapes:
            return _of_program(inputs, config.program_shapes)
        of_table = _of_table(inputs, config.table_shapes)
        open_inputs = {**inputs, **of_table}
        for data in (config.calibration_data, config.evaluation_data):
            if data.path is not None:
                steps = {
                    name: config.inputs.get(name, config.preprocessing)
                    for name in inputs
                }
                of_data = shapes_of_data(
                    data.path, open_inputs, steps, data.arrays
                )
                return {**of_table, **of_data}
        return of_table

    return find


def _of_table(
    inputs: Mapping[str, Sizes], shapes: Mapping[str, Shape]
) -> dict[str, Shape]:
    """The shapes of a table that suit the model; that it belongs to another model is refused later, by its digest."""
    return {
        name: shapes[name]
        for name, sizes in inputs.items()
        if name in shapes and agrees(shapes[name], sizes)
    }


def program_shapes(
    program: Program, pictures: frozenset[str]
) -> dict[str, tuple[Shape, ...]]:
    """The shapes that each of the model's inputs may have; for the inputs named in `pictures` in either layout."""
    shapes: dict[str, tuple[Shape, ...]] = {}
    for port in program.inputs:
        shape = port.type.shape
        shapes[port.name] = (shape,)
        if port.name in pictures and len(shape) == 4:
            batch, height, width, channels = shape
            shapes[port.name] = ((batch, channels, height, width), shape)
    return shapes


def _of_program(
    inputs: Mapping[str, Sizes], shapes: Mapping[str, tuple[Shape, ...]]
) -> dict[str, Shape]:
    chosen: dict[str, Shape] = {}
    for name, sizes in inputs.items():
        is_known = sizes is not None and not {None, BATCH} & {*sizes}
        if name not in shapes or is_known:
            continue
        fitting = [shape for shape in shapes[name] if agrees(shape, sizes)]
        if not fitting:
            raise BadOption(
                f"input '{name}' is {shown(shapes[name][-1])} in the program, but {shown(sizes)} in the model; "
                "give the program that was made from this model"
            )
        chosen[name] = fitting[0]
    return chosen


def smaller_than(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Name what makes a program smaller, beside the shapes that the user gave."""
    flags = " ".join(
        f"--shape {name}={','.join(map(str, shape))}"
        for name, shape in shapes.items()
    )
    than = f"than {flags}" if flags else "by --shape"
    return f"a shorter sequence or a smaller picture {than}"
