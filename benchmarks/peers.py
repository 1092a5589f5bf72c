"""onnxruntime and OpenVINO at their best.

Each has its own static int8 recipe, and its pool is limited to n threads.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.cache import digest, made, versions
from benchmarks.machine import isa_flags
from benchmarks.models import Image, Model


class Unavailable(Exception):
    """The reason why a contender takes no part, in a phrase."""


@dataclass(frozen=True)
class Ready:
    """A prepared contender: the clock measures `call`; `answer` converts its result to reals."""

    call: Callable[[], Any]
    answer: Callable[[Any], npt.NDArray[np.float64]]
    note: str = ""


def onnxruntime_float32(model: Model, threads: int) -> Ready:
    """Prepare the imported graph as it is."""
    return _session(model.float_path, model.images[0], threads)


def onnxruntime_int8(model: Model, threads: int) -> Ready:
    """Prepare static QDQ, per channel, of the graph after onnxruntime's own preparation.

    It is U8S8 because x86 multiplies unsigned by signed bytes: on AVX2 ResNet-50 took
    46 ms with it, 62 with U8U8 and 73 with S8S8. Without VNNI its kernels add pairs of
    products in 16 bits, which saturates; its manual recommends `reduce_range` (7-bit
    weights), which costs no time.
    """
    note = "QDQ per channel, U8S8" + ("" if _has_vnni() else ", 7-bit weights")
    return _session(_qdq(model), model.images[0], threads, note)


def openvino_int8(model: Model, threads: int) -> Ready:
    """Prepare NNCF's post-training quantization of the same graph.

    Without NNCF, prepare the graph that onnxruntime quantized.
    """
    if importlib.util.find_spec("openvino") is None:
        raise Unavailable("openvino is not installed (pip install .[bench])")
    import openvino

    path, note = (
        (_nncf(model), "NNCF")
        if importlib.util.find_spec("nncf")
        else (_qdq(model), "onnxruntime's QDQ")
    )
    properties = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        # No other contender pins; a thread pinned to a busy core would wait for it.
        "ENABLE_CPU_PINNING": False,
    }
    request = (
        openvino.Core()
        .compile_model(path, "CPU", properties)
        .create_infer_request()
    )
    (image,) = model.images[0].values()

    def call() -> Any:
        # Sharing makes as few copies as OpenVINO offers.
        return request.infer([image], share_inputs=True, share_outputs=True)

    return Ready(call, _first, note)


def _first(results: Any) -> npt.NDArray[np.float64]:
    return np.asarray(results[0], np.float64).reshape(-1)


def _session(path: Path, image: Image, threads: int, note: str = "") -> Ready:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Its threads spin during a run, as is its default, but not into the next
    # contender's turn.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    feeds = dict(image)
    return Ready(lambda: session.run(None, feeds), _first, note)


def _has_vnni() -> bool:
    return bool({"avx512_vnni", "avx_vnni"} & set(isa_flags()))


def _qdq(model: Model) -> Path:
    recipe = [
        "QDQ",
        "per channel",
        "U8S8",
        not _has_vnni(),
        len(model.images),
        versions("onnxruntime"),
    ]

    def make(folder: Path) -> None:
        from onnxruntime.quantization import (
            QuantFormat,
            QuantType,
            quantize_static,
        )
        from onnxruntime.quantization.shape_inference import quant_pre_process

        prepared = folder / "prepared.onnx"
        quant_pre_process(
            str(model.float_path), str(prepared), skip_symbolic_shape=True
        )
        quantize_static(
            str(prepared),
            str(folder / "int8.onnx"),
            _Images(model.images),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            reduce_range=not _has_vnni(),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        prepared.unlink()

    return (
        made(
            f"{model.name}-onnxruntime",
            [digest(model.float_path), recipe],
            make,
        )
        / "int8.onnx"
    )


class _Images:
    """The images as onnxruntime's CalibrationDataReader."""

    def __init__(self, images: Iterable[Image]) -> None:
        self._left = iter(images)

    def get_next(self) -> Image | None:
        return next(self._left, None)


def _nncf(model: Model) -> Path:
    """Quantize by NNCF with its defaults.

    For a CPU, they include its own measures against saturation where VNNI is absent.
    """

    def make(folder: Path) -> None:
        import nncf
        import openvino

        nncf.set_log_level(logging.ERROR)
        images = nncf.Dataset([list(image.values()) for image in model.images])
        graph = openvino.Core().read_model(model.float_path)
        with redirect_stdout(StringIO()):  # hides its progress bars
            quantized = nncf.quantize(
                graph,
                images,
                subset_size=len(model.images),
                target_device=nncf.TargetDevice.CPU,
            )
        openvino.save_model(
            quantized, folder / "int8.xml", compress_to_fp16=False
        )

    recipe = ["NNCF", len(model.images), versions("nncf", "openvino")]
    return (
        made(f"{model.name}-nncf", [digest(model.float_path), recipe], make)
        / "int8.xml"
    )
