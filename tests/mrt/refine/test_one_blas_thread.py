import onnx_ir as ir
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions
from mrt.refine import FloatStatistics, RefineOptions, refine
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel


def threads() -> list[int]:
    """How many each library that multiplies matrices has."""
    return [
        item["num_threads"]
        for item in threadpool_info()
        if item["user_api"] == "blas"
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_refining_multiplies_on_one_thread_and_gives_the_others_back(fails):
    model = FloatModel(x=(1, 3, 6, 6))
    model.conv("x", [[[[1.0]]] * 3] * 2, [0.0] * 2, name="out")
    graph = ir.from_proto(model.proto("out"))
    samples = synthetic_samples(model.inputs, 5)
    stages, found = RefineOptions(), []
    statistics = FloatStatistics(graph, stages, 5)
    table = calibrate(
        graph,
        samples,
        CalibrationOptions(),
        model_sha256="",
        callbacks=[statistics],
    )

    def progress(*_: object) -> None:
        found.append(threads())
        if fails:
            raise KeyboardInterrupt

    with threadpool_limits(2, "blas"):
        before = threads()
        try:
            refine(
                graph, table, QuantizeOptions(), stages, statistics, progress
            )
        except KeyboardInterrupt:
            assert fails
        assert threads() == before and set(before) == {2}
    assert found == [[1] * len(before)]
