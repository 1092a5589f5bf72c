import pytest

from benchmarks.cache import made


def test_what_was_made_is_made_once_and_anew_when_its_origins_change(tmp_path):
    calls = []

    def make(folder):
        calls.append(folder)
        (folder / "model").write_text(str(len(calls)))

    first = made("net", ["a", 1], make, root=tmp_path)
    again = made("net", ["a", 1], make, root=tmp_path)
    other = made("net", ["a", 2], make, root=tmp_path)
    assert first == again != other
    assert ((first / "model").read_text(), (other / "model").read_text()) == (
        "1",
        "2",
    )


def test_what_failed_half_way_is_not_taken_for_made(tmp_path):
    def fail(folder):
        (folder / "half").write_text("")
        raise OSError

    with pytest.raises(OSError):
        made("net", [], fail, root=tmp_path)
    folder = made(
        "net",
        [],
        lambda folder: (folder / "whole").write_text(""),
        root=tmp_path,
    )
    assert [path.name for path in folder.iterdir()] == ["whole"]
