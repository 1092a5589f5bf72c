"""What drafts take from refined tables, seen in the integers of their constants."""

from dataclasses import replace

import numpy as np

from mrt.quantize import QuantizeOptions
from mrt.table.decisions import Decisions, LayerDecision
from mrt.tune.candidates import Candidate, raised
from mrt.tune.programs import Programs
from tests.support.float_models import FloatModel, calibrated

RNG = np.random.default_rng(8)
START = QuantizeOptions()
VALUE = Candidate(False, ("relu",), 8, 16)
WEIGHTS = Candidate(True, ("out",), 8, 15)
WIDE = raised(START, [VALUE])
FINE = raised(START, [VALUE, WEIGHTS])
DECIDED = np.full((5, 1, 1, 4), 77, np.int8)


def programs(asked: list[QuantizeOptions]) -> Programs:
    """Programs of two convolutions; the second's weights are decided as 77, channels of 'relu' only at 8 bits."""
    model = FloatModel(x=(1, 3, 8, 8))
    first = model.conv("x", RNG.normal(size=(4, 3, 3, 3)), np.zeros(4))
    relu = model.add("Relu", first, name="relu")
    model.conv(relu, RNG.normal(size=(5, 4, 1, 1)), np.zeros(5), name="out")
    graph, table = calibrated(model.proto("out"), model.inputs, 3)

    def refine(options: QuantizeOptions):
        asked.append(options)
        layer = LayerDecision(DECIDED, np.ones(5), np.zeros(5))
        scales = {} if options == WIDE else {"relu": (0.5, 1.0, 0.25, 1.0)}
        decisions = Decisions(options.key(), scales, {}, {"out": layer})
        return replace(table, decisions=decisions)

    return Programs(graph, refine)


def has_decided_weights(program) -> bool:
    return any(np.array_equal(c, DECIDED) for c in program.program.constants)


def factors_of_relu(program) -> set[float]:
    meaning = program.program.metadata.values
    found = [item for item in meaning.values() if item.source == "relu"]
    return set(found[-1].channels)


def test_tables_are_refined_once_for_each_options_and_programs_are_refined_ones():
    asked: list[QuantizeOptions] = []
    made = programs(asked)
    assert has_decided_weights(made.refined(WIDE))
    made.refined(WIDE)
    made.draft(FINE, WIDE)
    assert asked == [WIDE]


def test_a_draft_takes_decided_integers_for_the_lowered_weights_alone():
    made = programs([])
    assert not has_decided_weights(made.draft(WIDE, WIDE))
    assert has_decided_weights(made.draft(WIDE, WIDE, lowered=WEIGHTS))


def test_a_lowered_value_has_the_scales_that_its_channels_have_at_the_start():
    made = programs([])
    low = raised(FINE, [replace(VALUE, after=8)])
    draft = made.draft(low, WIDE, lowered=VALUE, before=START)
    assert factors_of_relu(draft) == {0.25, 0.5, 1.0}
    assert factors_of_relu(made.draft(FINE, WIDE)) == set()
