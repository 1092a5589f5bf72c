"""A page in headless Chromium, driven over a pipe by the DevTools protocol: scripts, mouse, windows of any width."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
    *(
        "--disable-background-timer-throttling",
        "--disable-renderer-backgrounding",
    ),
)
READY = """\
for (let i = 0; i < 500 && !(location.protocol === "file:" && document.body?.dataset.ready); i++)
  await new Promise((done) => setTimeout(done, 20));
"""
READS, WRITES = 3, 4  # the descriptors on which Chromium listens and answers
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or os.name == "nt", reason="there is no chromium"
)


class Browser:
    """One tab, and what it is told."""

    def __init__(self, sending: IO[bytes], receiving: IO[bytes]) -> None:
        self._sending, self._receiving = sending, receiving
        self._number = 0
        self._session: dict[str, str] = {}
        self._rest = b""
        made = self.tell("Target.createTarget", url="about:blank")
        target = made["targetId"]
        attached = self.tell(
            "Target.attachToTarget", targetId=target, flatten=True
        )
        self._session = {"sessionId": attached["sessionId"]}
        self.tell("Page.bringToFront")

    def tell(self, method: str, **parameters: Any) -> Any:
        """Send one command; return its result."""
        self._number += 1
        message = {
            "id": self._number,
            "method": method,
            "params": parameters,
            **self._session,
        }
        self._sending.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            block = self._receiving.read(2**16)
            assert block, "chromium ended"
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def run(self, script: str) -> Any:
        """Run the body of an async function in the page; return what it returns."""
        found = self.tell(
            "Runtime.evaluate",
            expression=f"(async () => {{ {script} }})()",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(
        self, page: Path, width: int = 1280, *, dark: bool = False
    ) -> None:
        """Open a page that marks its body as ready."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        self.tell("Emulation.setDeviceMetricsOverride", **size, mobile=False)
        scheme = {
            "name": "prefers-color-scheme",
            "value": "dark" if dark else "light",
        }
        self.tell("Emulation.setEmulatedMedia", features=[scheme])
        self.tell("Page.navigate", url=page.as_uri())
        self.run(READY)

    def drag(self, *points: tuple[float, float]) -> None:
        """Press at the first point, move over the others, let go."""
        kinds = [
            "mousePressed",
            *["mouseMoved"] * (len(points) - 1),
            "mouseReleased",
        ]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            self.tell(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                buttons=1,
                clickCount=1,
            )

    def picture(self, path: Path) -> None:
        """Save the whole page as a picture."""
        found = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Chromium with its profile in a folder; ended afterwards."""
    to_read, sending = map(_high, os.pipe())
    receiving, to_write = map(_high, os.pipe())

    def place() -> None:
        os.dup2(to_read, READS)
        os.dup2(to_write, WRITES)

    assert CHROMIUM
    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder}"],
        preexec_fn=place,
        pass_fds=(READS, WRITES),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        with (
            os.fdopen(sending, "wb", buffering=0) as commands,
            os.fdopen(receiving, "rb", buffering=0) as answers,
        ):
            yield Browser(commands, answers)
    finally:
        process.terminate()
        process.wait(30)


def _high(descriptor: int) -> int:
    """The same pipe under a number that is not one of Chromium's."""
    import fcntl  # which Windows has not

    own = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return own
