"""The `cvm` command, called by tests."""

from __future__ import annotations

from click.testing import CliRunner, Result

from cvm.cli import cli

NO_ENGINE = "cvm: no native engine, running on the reference; to get it, pip install with a C++20 compiler, or a wheel\n"


def cvm(*arguments: object, notice: bool = False) -> Result:
    """Run the command and return its result.

    Only with `notice`, keep its notice that it runs on the reference because no engine
    was built.
    """
    result = CliRunner().invoke(cli, [str(item) for item in arguments])
    assert result.exception is None or isinstance(
        result.exception, SystemExit
    ), result.exception
    if not notice:
        result.stderr_bytes = result.stderr_bytes.replace(
            NO_ENGINE.encode(), b""
        )
        result.output_bytes = result.output_bytes.replace(
            NO_ENGINE.encode(), b""
        )
    return result


def said(result: Result, code: int) -> str:
    """Return the one sentence of a failure."""
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("cvm: ") and result.stderr.count("\n") == 1
    return result.stderr[5:-1]
