from io import StringIO

from rich.console import Console

from benchmarks.figures import Measured, Outcome, Row
from benchmarks.footprint import Footprint
from benchmarks.report import (
    disturbed,
    grid,
    markdown,
    milliseconds,
    model_cells,
    number,
    part_table,
    percent,
)

NEEDS = Footprint("engine", 0.1234, 1.0, 101_600_000)
ONE = Measured(
    1,
    4_000_000_000,
    (Row("engine", (20.0,)), Row("openvino-int8", (25.0,), note="NNCF")),
    (250.0,),
)
TWO = Measured(
    2,
    4_000_000_000,
    (Row("engine", (12.5,)), Row("openvino-int8", note="no second core")),
    (400.0,),
)
OUTCOME = Outcome("net", (ONE, TWO), NEEDS)

MARKDOWN = """\
| model | threads | engine, ms | OpenVINO int8, ms | giga-MAC/s | of the int8 peak |
| --- | ---: | ---: | ---: | ---: | ---: |
| net | 1 | 20.00 | 25.00 (0.80) | 200.0 | 80 % |
| net | 2 | 12.50 | - | 320.0 | 80 % |

| model | load and validate | peak memory | gain of 2 threads / of the peak |
| --- | ---: | ---: | ---: |
| net | 0.12 s | 102 MB | 1.60 / 1.60 = 100 % |
"""


def test_what_is_unknown_is_a_dash():
    assert (number(None), percent(None), number(1.005), number(7, ".0f", " MB"), percent(0.845)) == (
        "-", "-", "1.00", "7 MB", "84 %",
    )  # fmt: skip


def test_the_markdown_table():
    made = markdown({"processor": "X", "cores": 2}, [OUTCOME], [1, 2])
    assert made.startswith(MARKDOWN)
    assert made.endswith("processor X, cores 2.\n")


def test_notes_are_listed_once_under_the_table():
    made = markdown({}, [OUTCOME, OUTCOME], [1, 2])
    assert (
        made.count("- OpenVINO int8: NNCF\n- OpenVINO int8: no second core\n")
        == 1
    )


def test_a_bar_in_a_cell_does_not_break_the_table():
    assert (
        grid(["a", "b"], [["x|y", "1"]])
        == "| a | b |\n| --- | ---: |\n| x/y | 1 |"
    )


def test_the_terminal_table_fits_80_columns_and_says_why_a_row_is_empty():
    slow = Row("reference", (1139.59,), busy_cores=1.0, snr_db=42.7)
    absent = Row("openvino-int8", note="not installed (pip install .[bench])")
    float32 = Row(
        "onnxruntime-float32", (100.51,), busy_cores=1.0, snr_db=-10.1
    )
    part = Measured(
        1,
        4_000_000_000,
        (Row("engine", (20.0,)), slow, float32, absent),
        (250.0,),
    )
    console = Console(width=80, record=True, file=StringIO())
    console.print(part_table("net", part))
    shown = console.export_text()
    assert "net, 1 thread, int8 peak 250 giga-MAC/s" in shown
    assert "OpenVINO int8: not installed (pip install .[bench])" in shown
    assert "…" not in shown
    assert (
        "│ onnxruntime float32 │ 100.5 │      0.20 │   39.8 │    16 % │  1.00 │  -10.1 │"
        in shown
    )


def test_times_keep_the_digits_that_mean_something():
    assert [milliseconds(value) for value in (None, 2.345, 99.994, 100.51, 1139.59)] == [
        "-", "2.35", "99.99", "100.5", "1140",
    ]  # fmt: skip


def test_other_work_on_the_machine_is_reported():
    def outcome(threads, cores):
        return Outcome(
            "net",
            (Measured(threads, 1, (Row("engine", (1.0,), busy_cores=cores),)),),
            NEEDS,
        )

    assert (
        disturbed([outcome(1, 0.99), outcome(2, 0.5)]) == ""
    )  # two threads may wait for each other
    assert "as little as 66 % of a core" in disturbed(
        [outcome(1, 0.99), outcome(1, 0.66)]
    )
    assert "as little as 66 % of a core" in markdown(
        {}, [outcome(1, 0.66)], [1]
    )


def test_memory_says_when_it_is_not_the_engine_s():
    assert model_cells(
        Outcome("net", (), Footprint("reference", 0.1, 1.0, 2_000_000)), [1]
    ) == [
        "0.10 s",
        "2 MB (reference)",
    ]
