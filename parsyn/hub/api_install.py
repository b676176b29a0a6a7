"""What a machine fetches to become an agent: the installer script and the zipapp."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.resources
import logging
import platform
import re
import shlex
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from quart import Response, request

from parsyn import __version__
from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.hub import hub
from parsyn.hub.routing import Api
from parsyn.services import zipapp

log = logging.getLogger(__name__)
api = Api("install", prefix="")
BUILD_RETRY_SECONDS = 5
FAILED_RETRY_SECONDS = 60
# A host name, an IPv4 or bracketed IPv6 address, and a port: nothing that a shell could read
# anything into.
HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?"
ADDRESS = re.compile(rf"https?://{HOST}(?:/[A-Za-z0-9._~-]+)*")


@api.endpoint("GET", "/install/worker", scope=None)
async def installer() -> Response:
    """The installer script of an agent, with this hub's own address filled in."""
    values = {
        "HUB_URL": _own_address(),
        "VERSION": __version__,
        "PYTHON": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "SYSTEM": platform.system(),
        "MACHINE": platform.machine(),
    }
    script = importlib.resources.files("parsyn.hub").joinpath("install_worker.sh").read_text()
    for name, value in values.items():
        script = script.replace(f"@{name}@", shlex.quote(value))
    answer = Response(script, content_type="text/x-shellscript; charset=utf-8")
    answer.headers["Cache-Control"] = "no-store"
    return answer


@api.endpoint("GET", "/install/parsyn.pyz", scope=None)
async def pyz() -> Response:
    """The `parsyn` command as one file; 503 with Retry-After while this hub still makes it."""
    path = await asyncio.to_thread(zipapp.ready, hub().context.settings.data_dir)
    if path is None:
        _builder().begin()
        raise _builder().not_yet()
    comment = zipapp.comment(_own_address())
    stat = path.stat()
    digest = await asyncio.to_thread(_digest, path, stat.st_size, stat.st_mtime_ns, comment)
    if request.if_none_match.contains(digest):
        answer = Response("", status=304)
    else:
        answer = Response(_chunks(path, stat.st_size, comment), mimetype="application/zip")
        answer.headers["Content-Length"] = str(stat.st_size + len(comment) - zipapp.NO_COMMENT)
        answer.headers.set("Content-Disposition", "attachment", filename="parsyn.pyz")
    answer.set_etag(digest)
    answer.timeout = None
    answer.headers["Cache-Control"] = "no-cache"
    return answer


def _chunks(path: Path, size: int, comment: bytes) -> Iterator[bytes]:
    """The zipapp with a comment at its end in place of none."""
    left = size - zipapp.NO_COMMENT
    with path.open("rb") as file:
        while chunk := file.read(min(1 << 20, left)):
            left -= len(chunk)
            yield chunk
    yield comment


def _own_address() -> str:
    """`hub.url`, else what the request calls this hub. Raises 400 for a name that is no host."""
    settings = hub().context.settings
    address = settings.text("hub.url").rstrip("/")
    if not address:
        # A proxy in front may speak TLS for this hub; it can only be said to be safer than it is
        # to whoever sends the header.
        forwarded = request.headers.get("X-Forwarded-Proto", "").strip().lower() == "https"
        host = request.headers.get("Host", "")
        known = re.fullmatch(HOST, host) is not None
        address = f"{'https' if forwarded else request.scheme}://{host}" if known else ""
    if not ADDRESS.fullmatch(address):
        raise ParsynError(
            ErrorCode.MALFORMED,
            "The request names no host under which a machine could reach this hub. "
            "Set hub.url to the hub's address.",
        )
    return address


@lru_cache(maxsize=8)
def _digest(path: Path, size: int, mtime: int, comment: bytes) -> str:
    total = hashlib.sha256()
    for chunk in _chunks(path, size, comment):
        total.update(chunk)
    return total.hexdigest()


class Builder:
    """Makes the zipapp in a child at low priority, once however many ask for it."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._failed_at: float | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start, unless it runs or has failed a moment ago."""
        resting = self._failed_at and time.monotonic() - self._failed_at < FAILED_RETRY_SECONDS
        if not resting and (self._task is None or self._task.done()):
            self._task = hub().spawn(self._build(), "the zipapp for agents")

    def not_yet(self) -> ParsynError:
        if self._task is not None and self._task.done() and self._failed_at:
            detail, seconds = (
                "This hub could not make the zipapp; its log says why.",
                FAILED_RETRY_SECONDS,
            )
        else:
            detail, seconds = (
                "This hub is making the zipapp, once for each of its versions: try again in a "
                "few seconds.",
                BUILD_RETRY_SECONDS,
            )
        return ParsynError(ErrorCode.UNAVAILABLE, detail, retry_after=seconds)

    async def _build(self) -> None:
        target = await asyncio.to_thread(zipapp.kept, self._data_dir)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "parsyn.services.zipapp", str(target),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            _, errors = await child.communicate()
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode:
            self._failed_at = time.monotonic()
            last = errors.decode(errors="replace").strip().splitlines()[-1:]
            log.error("the zipapp for agents could not be made: %s", *last or ["no reason given"])
        else:
            self._failed_at = None
            log.info("the zipapp for agents is %s", target)


def _builder() -> Builder:
    made: Builder = hub().parts.setdefault("zipapp", Builder(hub().context.settings.data_dir))
    return made
