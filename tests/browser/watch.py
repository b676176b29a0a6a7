"""What a page must not do: log errors, throw, or ask the hub for what it refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, Request, Response

# The same refusal is seen as a response, with its address and status.
REPEATED = "Failed to load resource: the server responded with a status of"
# A page that is left cancels what it was still asking for.
ABORTED = "net::ERR_ABORTED"
SETTLE_SECONDS = 60
TWO_FRAMES = "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


class Watch:
    """Collects a page's problems; a test announces the refusals that it provokes."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.announced: list[tuple[int, str]] = []
        self.open: set[Request] = set()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("response", self._response)
        page.on("requestfailed", self._failed)
        page.on("request", self._asked)
        page.on("requestfinished", lambda request: self.open.discard(request))

    def _asked(self, request: Request) -> None:
        # The answer of a chat is a request that stays open; it is no part of a page's loading.
        if not (request.method == "POST" and request.url.endswith(("/messages", "/compare"))):
            self.open.add(request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(REPEATED):
            self.problems.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status < 400:
            return
        for known in self.announced:
            if known[0] == response.status and known[1] in response.url:
                self.announced.remove(known)
                return
        self.problems.append(f"{response.request.method} {response.url}: {response.status}")

    def _failed(self, request: Request) -> None:
        self.open.discard(request)
        if request.failure != ABORTED:
            self.problems.append(f"{request.method} {request.url}: {request.failure}")

    @contextmanager
    def refused(self, status: int, path: str) -> Iterator[None]:
        """Within, exactly one request whose address contains `path` is refused with `status`."""
        announcement = (status, path)
        self.announced.append(announcement)
        yield
        if announcement in self.announced:
            self.announced.remove(announcement)
            self.problems.append(f"No request to {path} was refused with {status}.")

    def settle(self) -> None:
        """Wait until nothing is being fetched and two frames later still nothing is."""
        deadline = time.monotonic() + SETTLE_SECONDS
        quiet = 0
        while quiet < 2:
            self.page.evaluate(TWO_FRAMES)
            quiet = 0 if self.open else quiet + 1
            assert time.monotonic() < deadline, [request.url for request in self.open]

    def verify(self) -> None:
        assert not self.problems, "\n".join(self.problems)


def axe_findings(page: Page, options: dict[str, Any]) -> list[str]:
    """Serious and critical findings of axe, one line each."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"], **options})
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
