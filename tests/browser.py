"""A browser that shows pages to tests: Chromium without a window, driven by its own protocol over a pair of pipes.

One start serves all pages of a test module. Nothing is fetched: pages are files.
"""

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

__all__ = ["NAMES", "SCREENS", "Browser", "Tab", "browser", "program"]

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Width in pixels, a phone or not, dark or not.
SCREENS = {"desktop": (1280, False, False), "phone": (390, True, False), "dark": (1280, False, True)}
HEIGHT = 844
LIMIT_SECONDS = 60
# Chromium reads commands from this descriptor and writes answers to the next.
COMMANDS = 3


def program() -> str | None:
    return next((found for name in NAMES if (found := which(name)) is not None), None)


class Browser:
    """The connection: commands with their answers, each ended by a zero byte; events are passed over."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number = 0
        self._read = b""

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])

    def _next(self) -> bytes:
        while b"\0" not in self._read:
            more = os.read(self._answers, 1 << 20)
            assert more, "the browser has ended"
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        return message

    def tab(self) -> "Tab":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])


class Tab:
    """One page on one screen."""

    def __init__(self, owner: Browser, session: str) -> None:
        self._owner, self._session = owner, session

    def show(self, page: Path, screen: str) -> None:
        """Loads the page and waits until it is laid out."""
        width, phone, dark = SCREENS[screen]
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        address = page.resolve().as_uri()
        self._call("Page.navigate", url=address)
        end = time.monotonic() + LIMIT_SECONDS
        while not self.evaluate(f"document.readyState == 'complete' && location.href == {json.dumps(address)}"):
            assert time.monotonic() < end, f"{page} is not shown"
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON has it."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def names(self) -> list[tuple[str, str]]:
        """Role and name of what a screen reader meets."""
        nodes = self._call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def picture(self, file: Path) -> None:
        """The whole page as a PNG."""
        width, height = self.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self._call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(taken["data"]))

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._owner.call(method, self._session, **params)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser for as long as the block runs; its profile is thrown away."""
    found = program()
    assert found is not None
    taken, commands = os.pipe()
    answers, given = os.pipe()
    with tempfile.TemporaryDirectory(prefix="fiberloom-browser-", ignore_cleanup_errors=True) as profile:
        words = [
            found, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        # The shell puts the pipes where Chromium looks for them.
        line = f'exec "$@" {COMMANDS}<&{taken} {COMMANDS + 1}>&{given}'
        process = subprocess.Popen(
            ["bash", "-c", line, "bash", *words],
            pass_fds=(taken, given), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(taken)
        os.close(given)
        try:
            yield Browser(commands, answers)
        finally:
            # Without commands the browser ends by itself.
            os.close(commands)
            os.close(answers)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
