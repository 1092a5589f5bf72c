"""Every operator that the ONNX front end lists, on the cases of the `onnx` package, against the numbers that these expect.

`cases.toml` says which operands are known at conversion, what signal-to-noise ratio is expected where it is not the usual
one, and of each case that is left out why.
"""

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvm.errors import CvmError
from mrt.errors import MrtError
from mrt.frontend import operators
from tests.support.onnx_nodes import (
    NodeCase,
    Terms,
    all_cases,
    answer,
    cases_in,
    with_finite,
)

DATA = tomllib.loads(
    Path(__file__).with_name("cases.toml").read_text(encoding="utf-8")
)
LEFT_OUT = {
    name: entry["reason"]
    for entry in DATA["left_out"]
    for name in entry["cases"]
}
REFUSED = {
    name: entry["reason"]
    for entry in DATA["refused"]
    for name in entry["operators"]
}
SUPPORTED = operators("onnx")

# Of a module of the package, the cases that take no table of 65536: a slice of every family, in a second or two.
QUICK = {
    "conv": ["test_basic_conv_with_padding", "test_conv_with_autopad_same"],
    "convtranspose": ["test_convtranspose_dilations", "test_convtranspose_output_shape"],
    "globalmaxpool": ["test_globalmaxpool"],
    "globalaveragepool": ["test_globalaveragepool_precomputed"],
    "gemm": ["test_gemm_all_attributes"],
    "resize": ["test_resize_upsample_sizes_cubic", "test_resize_downsample_scales_linear_antialias",
               "test_resize_tf_crop_and_resize", "test_resize_upsample_sizes_nearest_not_larger"],
    "depthtospace": ["test_depthtospace_crd_mode_example"],
    "spacetodepth": ["test_spacetodepth_crd_mode_example"],
    "pad": ["test_wrap_pad", "test_reflect_pad"],
    "layernormalization": ["test_layer_normalization_4d_axis1"],
    "rmsnormalization": ["test_rms_normalization_4d_axis2"],
    "instance_normalization": ["test_instancenorm_epsilon"],
    "topk": ["test_top_k_smallest"],
    "gathernd": ["test_gathernd_example_int32_batch_dim1"],
    "cumsum": ["test_cumsum_1d_int32_exclusive"],
    "div": ["test_div_int8"],
    "einsum": ["test_einsum_batch_matmul"],
    "reduceprod": ["test_reduce_prod_keepdims_random"],
    "where": ["test_where_example"],
    "shape": ["test_shape_start_1_end_2"],
}  # fmt: skip


def verdict(case: NodeCase, folder: Path, *, bits: int = 16) -> str | None:
    """What is wrong with the program's answer, or why there is none; None if all is well."""
    operator = case.operator
    terms = Terms(
        tuple(DATA["known"].get(operator, ())),
        operator not in DATA["unscaled"],
        operator in DATA["at_steps"],
        bits,
    )
    try:
        found = answer(
            with_finite(case) if operator in DATA["only_finite"] else case,
            terms,
            folder,
        )
    except (MrtError, CvmError) as refusal:
        return str(refusal)
    return found.problem(
        DATA["decibels"].get(operator, DATA["decibels"]["usual"])
    )


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in QUICK.items() for name in names],
)
def test_a_case_of_each_family(module, name, tmp_path):
    case = next(case for case in cases_in(module) if case.name == name)
    assert name not in LEFT_OUT
    assert verdict(case, tmp_path) is None


def test_a_table_gives_the_edge_of_the_functions_domain_where_rounding_leaves_it(
    tmp_path,
):
    case = next(
        case for case in cases_in("acosh") if case.name == "test_acosh_example"
    )
    at_edge = replace(
        case, given={"x": np.float32([9.8, 2.7, 1.0])}
    )  # 1 is 26 steps of 9.8 / 255, or 0.9992
    found = answer(at_edge, Terms(scaled=False, bits=8), tmp_path).found["y"]
    assert found[2] == pytest.approx(
        0.27, abs=0.02
    )  # acosh of the next, 27 steps or 1.0376


def test_what_is_left_out_is_named_once_and_supported_operators_are_not_refused():
    named = [name for entry in DATA["left_out"] for name in entry["cases"]]
    assert len(named) == len(set(named))
    assert not REFUSED.keys() & set(SUPPORTED)


@pytest.mark.slow
@pytest.mark.parametrize("operator", SUPPORTED)
def test_the_operators_cases_give_what_they_expect_or_are_left_out_for_a_reason(
    operator, tmp_path
):
    if operator in DATA["without_cases"]:
        assert operator not in all_cases()
        return
    problems = {
        case.name: verdict(case, tmp_path) for case in all_cases()[operator]
    }
    kept = {
        name: problem
        for name, problem in problems.items()
        if name not in LEFT_OUT
    }
    assert bool(kept) != (operator in DATA["only_left_out"]), (
        "every case of this operator is left out"
    )
    assert {
        name: problem for name, problem in kept.items() if problem is not None
    } == {}
    assert [
        name for name in problems.keys() - kept.keys() if problems[name] is None
    ] == [], "left out, and yet it runs"


@pytest.mark.slow
def test_every_operator_with_cases_is_supported_or_refused_for_a_reason():
    assert all_cases().keys() - set(SUPPORTED) == REFUSED.keys()


@pytest.mark.slow
def test_every_case_left_out_exists():
    assert set(LEFT_OUT) <= {
        case.name for cases in all_cases().values() for case in cases
    }
