"""Torch modules and scikit-learn estimators as ONNX, by their own exporters, which have to be installed."""

from __future__ import annotations

import importlib
import inspect
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from cvm.errors import printable
from mrt.api_frames import Arrays
from mrt.errors import BadData, BadModel

_LONGEST_REASON = 200


def export_torch(
    model: Any, sample: Arrays, path: Path, *, is_named: bool
) -> None:
    """Write a module that takes this sample, by the names of `forward` if the arrays are named.

    Raises BadData where several names are no parameters, and BadModel where the module cannot
    run the sample or cannot be exported.
    """
    torch = _exporter("torch", "a torch module")
    names = _names_of_arguments(model, sample) if is_named else []
    tensors = {name: torch.from_numpy(sample[name]) for name in sample}
    by_name = {name: tensors[name] for name in names}
    by_place = () if names else tuple(tensors.values())
    training = model.training
    model.eval()
    try:
        with (
            _refused(f"the module cannot run a sample {_shapes(sample)}"),
            torch.no_grad(),
        ):
            model(*by_place, **by_name)
        with _refused("the module cannot be exported as ONNX"):
            torch.onnx.export(
                model,
                by_place,
                str(path),
                kwargs=by_name or None,
                input_names=names or list(sample),
                dynamo=True,
                verbose=False,
            )
    finally:
        model.train(training)


def _names_of_arguments(model: Any, sample: Arrays) -> list[str]:
    """The names by which `forward` takes the arrays, in its order; none where it takes them by place."""
    try:
        parameters = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):  # of compiled code
        return []
    kinds = {parameter.kind for parameter in parameters.values()}
    named = [
        name
        for name, parameter in parameters.items()
        if parameter.kind
        in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    if sample.keys() <= {*named}:
        return [name for name in named if name in sample]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return [*sample]
    if len(sample) == 1 or inspect.Parameter.VAR_POSITIONAL in kinds:
        return []
    unknown = ", ".join(f"'{name}'" for name in sample if name not in named)
    raise BadData(
        f"data: {unknown} are no parameters of forward({', '.join(parameters)}): name them so"
    )


def _shapes(sample: Arrays) -> str:
    texts = [
        f"[{','.join(map(str, array.shape))}]" for array in sample.values()
    ]
    return " and ".join(texts)


def export_sklearn(model: Any, arrays: Arrays) -> onnx.ModelProto:
    """The estimator for an array `x` of all features, as the input `X`; other arrays are inputs of their own names.

    Raises BadModel where it cannot be exported.
    """
    skl2onnx = _exporter("skl2onnx", "a scikit-learn estimator")
    _require_fitted(model, arrays)
    options = {"zipmap": False} if hasattr(model, "predict_proba") else None
    words: dict[str, Any] = {}
    if arrays.keys() == {"x"}:  # named by skl2onnx
        words["X"] = arrays["x"][:1].astype(np.float32)
    else:
        real = skl2onnx.common.data_types.FloatTensorType
        words["initial_types"] = [
            (name, real([None, *(array.shape[1:] or (1,))]))
            for name, array in arrays.items()
        ]
    with _refused(f"the {type(model).__name__} cannot be exported as ONNX"):
        proto: onnx.ModelProto = skl2onnx.to_onnx(
            model, options=options, **words
        )
    return proto


def _require_fitted(model: Any, arrays: Arrays) -> None:
    """Refuse an estimator that was fitted on nothing, or on other features than those of an array `x`."""
    kind = type(model).__name__
    exceptions = importlib.import_module("sklearn.exceptions")
    validation = importlib.import_module("sklearn.utils.validation")
    try:
        validation.check_is_fitted(model)
    except exceptions.NotFittedError:
        raise BadModel(
            f"the {kind} is not fitted; call its fit first"
        ) from None
    except TypeError:
        return  # of an estimator that cannot say so
    fitted = getattr(model, "n_features_in_", None)
    features = arrays["x"].shape[1:] if "x" in arrays else (fitted,)
    if fitted is not None and features != (fitted,):
        raise BadData(
            f"data: samples of shape {list(features)}; the {kind} was fitted on [{fitted}]"
        )


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Raise BadModel with the first line of what an exporter raises, and nothing of all that it prints then."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed), _no_logging():
            yield
    except Exception as problem:  # whatever the user's model raises
        raise BadModel(f"{what}: {reason(problem)}") from None


@contextmanager
def _no_logging() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def reason(problem: BaseException) -> str:
    """The kind and the first line of the error behind an error, shortened."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    lines = str(problem).strip().splitlines() or [""]
    text = printable(f"{type(problem).__name__}: {lines[0]}".rstrip(": "))
    if len(text) <= _LONGEST_REASON:
        return text
    return f"{text[: _LONGEST_REASON - 3]}..."


def _exporter(package: str, what: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as problem:
        raise BadModel(
            f"{what} is written as ONNX by the package {package}, which cannot be imported "
            f"({problem}); pip install {package}"
        ) from None
