"""A page in headless Firefox, driven by Marionette, its protocol of JSON over a socket: what `chromium.py` does in Chromium."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.chromium import READY

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
# System access: without it no script reaches the window, whose own width cannot be less than 500.
FLAGS = (
    *("--headless", "--no-remote", "--marionette"),
    "--remote-allow-system-access",
)
PATIENCE = 60.0  # seconds, for a start or an answer
needs_firefox = pytest.mark.skipif(
    FIREFOX is None, reason="there is no firefox"
)
# The answer of an async function, or what it threw.
ASYNC = """\
const done = arguments[arguments.length - 1];
(async () => {{ {script} }})().then((value) => done({{ value }}), (problem) => done({{ problem: String(problem) }}));
"""
SIZED = """\
const { style } = gBrowser.selectedBrowser;
for (const [name, size] of [["width", arguments[0]], ["height", arguments[1]]]) {
  for (const end of ["", "min-", "max-"]) style.setProperty(end + name, `${size}px`, "important");
}
"""


class Firefox:
    """One tab, and what it is told."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._number, self._rest = connection, 0, b""
        self._next()  # it says what it is
        self.tell("WebDriver:NewSession")

    def tell(self, command: str, **parameters: Any) -> Any:
        """Send one command; return its result."""
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._connection.sendall(b"%d:%b" % (len(message), message))
        _, number, error, result = self._next()
        assert number == self._number
        assert error is None, error
        return result

    def _next(self) -> Any:
        """A message: its length in digits, a colon, JSON."""
        while b":" not in self._rest:
            self._receive()
        digits, _, self._rest = self._rest.partition(b":")
        length = int(digits)
        while len(self._rest) < length:
            self._receive()
        message, self._rest = self._rest[:length], self._rest[length:]
        return json.loads(message)

    def _receive(self) -> None:
        block = self._connection.recv(2**16)
        assert block, "firefox ended"
        self._rest += block

    def run(self, script: str) -> Any:
        """Run the body of an async function in the page; return what it returns."""
        text = ASYNC.format(script=script)
        found = self.tell(
            "WebDriver:ExecuteAsyncScript", script=text, args=[], sandbox=None
        )["value"]
        assert "problem" not in found, found["problem"]
        return found.get("value")

    def open(self, page: Path, width: int = 1280) -> None:
        """Open a page that marks its body as ready."""
        self.tell("Marionette:SetContext", value="chrome")
        self.tell("WebDriver:ExecuteScript", script=SIZED, args=[width, 900])
        self.tell("Marionette:SetContext", value="content")
        self.tell("WebDriver:Navigate", url=page.as_uri())
        self.run(READY)

    def drag(self, *points: tuple[float, float]) -> None:
        """Press at the first point, move over the others, let go."""
        moves = [
            {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}
            for x, y in points
        ]
        down, up = [
            {"type": f"pointer{way}", "button": 0} for way in ("Down", "Up")
        ]
        actions = [moves[0], down, *moves[1:], up]
        mouse = {
            "type": "pointer",
            "id": "mouse",
            "parameters": {"pointerType": "mouse"},
            "actions": actions,
        }
        self.tell("WebDriver:PerformActions", actions=[mouse])

    def picture(self, path: Path) -> None:
        """Save the whole page as a picture."""
        found = self.tell("WebDriver:TakeScreenshot", full=True)
        path.write_bytes(base64.b64decode(found["value"]))


@contextmanager
def browser(folder: Path) -> Iterator[Firefox]:
    """Firefox with its profile in a folder; ended afterwards."""
    assert FIREFOX
    (folder / "user.js").write_text('user_pref("marionette.port", 0);\n')
    # What is loaded into Python to find its faults is not for Firefox, which would not start.
    plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    process = subprocess.Popen(
        [FIREFOX, *FLAGS, "--profile", str(folder)],
        env=plain,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = ("127.0.0.1", _port(folder, process))
        with socket.create_connection(address, PATIENCE) as connection:
            yield Firefox(connection)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _port(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """The port that it chose, which it writes into its profile."""
    path, end = folder / "MarionetteActivePort", time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        text = path.read_text() if path.exists() else ""
        if text.strip():
            return int(text)
        time.sleep(0.05)
    raise AssertionError("firefox opened no port")
