"""The suffixes of the files that are read and written, so that none is written under the name of another kind."""

from __future__ import annotations

from pathlib import Path

from cvm.errors import BadInput

FORMATS = {
    ".cvm": "programs",
    ".plan": "plans of libcvm",
    ".npz": "arrays",
    ".npy": "single arrays",
    ".json": "JSON",
    ".toml": "configs",
    ".onnx": "ONNX models",
    ".tosa": "TOSA files",
    ".params": "MXNet parameters",
    **dict.fromkeys((".pt", ".pth"), "PyTorch models"),
    **dict.fromkeys((".h5", ".keras"), "Keras models"),
    **dict.fromkeys((".pb", ".tflite"), "TensorFlow models"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "Python objects"),
    ".mlir": "MLIR",
    ".zkey": "proving keys",
    **dict.fromkeys((".html", ".htm"), "pages"),
    ".pdf": "PDF pages",
    ".txt": "texts",
    ".md": "texts",
    ".csv": "tables of text",
    ".py": "Python",
    ".zip": "archives",
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".bmp", ".webp"), "pictures"),
    **dict.fromkeys((".gif", ".tif", ".tiff", ".svg"), "pictures"),
}


def require_suffix(path: Path, expected: str) -> None:
    """BadInput for a result whose name has the suffix of another kind of file; other suffixes, and none, are its owner's."""
    suffix = path.suffix.lower()
    if FORMATS.get(suffix) in (None, FORMATS[expected]):
        return
    raise BadInput(
        f"{path}: {suffix} is the suffix of {FORMATS[suffix]}, and what is written here has {expected}; "
        f"name it {path.with_suffix(expected)}"
    )


def require_folder_name(path: Path) -> None:
    """BadInput for a new folder whose name has the suffix of a file."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        return
    raise BadInput(
        f"{path}: {path.suffix.lower()} is the suffix of {kind}, and a folder of files is written here; "
        f"name it {path.with_suffix('')}"
    )
