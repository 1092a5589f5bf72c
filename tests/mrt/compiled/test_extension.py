"""Where the extension comes from, and that numpy takes its place."""

import re
from pathlib import Path

import pytest

from mrt import compiled
from mrt.errors import BadOption


def test_a_file_that_is_no_extension_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MRT_COMPILED", "nowhere.so")
    with pytest.raises(
        BadOption,
        match=r"MRT_COMPILED names nowhere\.so, which is not a built extension",
    ):
        compiled.extension.__wrapped__()


@pytest.mark.parametrize("name", ["text.so", "text.txt"])
def test_so_is_one_that_cannot_be_loaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("no extension")
    monkeypatch.setenv("MRT_COMPILED", str(path))
    with pytest.raises(
        BadOption,
        match=f"MRT_COMPILED names {re.escape(str(path))}, which is not a built extension",
    ):
        compiled.extension.__wrapped__()


@pytest.mark.parametrize(
    "problem",
    [ImportError("wrong ELF class"), ModuleNotFoundError("mrt._compiled")],
)
def test_numpy_computes_where_the_installed_extension_cannot(
    problem: ImportError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise problem

    monkeypatch.delenv("MRT_COMPILED", raising=False)
    monkeypatch.setattr(compiled.importlib, "import_module", refuse)
    assert compiled.extension.__wrapped__() is None
