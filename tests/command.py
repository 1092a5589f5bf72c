"""The `cvm` command as tests call it."""

from __future__ import annotations

from click.testing import CliRunner, Result

from cvm.cli import cli


def cvm(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, [str(item) for item in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def said(result: Result, code: int) -> str:
    """The one sentence of a failure."""
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("cvm: ") and result.stderr.count("\n") == 1
    return result.stderr[5:-1]
