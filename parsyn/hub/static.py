"""The built web UI: hashed assets for a year, and index.html for every page address."""

from __future__ import annotations

import gzip
import mimetypes
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

from quart import Quart, Response, request

from parsyn.errors import ErrorCode, ParsynError
from parsyn.hub.routing import Api

api = Api("static", prefix="")
# Pages keep their data in the API; nothing else may be loaded or framed.
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Parsyn</title>
<body style="font-family:system-ui;max-width:40rem;margin:4rem auto;padding:0 1rem">
<h1>Parsyn</h1><p>The hub runs, but its web UI is not built. In a checkout run
<code>make webui</code> and reload. The API is at <a href="/api/v1/openapi.json">/api/v1</a>.</p>
"""
COMPRESSED = (".js", ".css", ".html", ".svg", ".json")


def mount(app: Quart) -> None:
    """Serve the UI for every address that nothing else serves."""
    app.register_blueprint(api.blueprint)
    app.extensions["parsyn"].endpoints += api.endpoints


@api.endpoint("GET", "/", scope=None)
async def index() -> Response:
    """The web UI."""
    return page()


@api.endpoint("GET", "/<path:path>", scope=None)
async def asset(path: str) -> Response:
    """A file of the web UI, or the UI itself for its own addresses."""
    if path.startswith(("api/", "v1/", "ws/", "storage/", "install/")):
        raise ParsynError(ErrorCode.NOT_FOUND, f"There is nothing at /{path}.")
    found = read(path)
    if found is None and path.startswith("assets/"):
        # A page that was open across an update asks for files of the old build.
        raise ParsynError(ErrorCode.NOT_FOUND, f"There is nothing at /{path}.")
    if found is None:
        return page()
    body, packed = found
    mime = mimetypes.guess_type(path)[0] or "application/octet-stream"
    answer = _compressible(body, packed, mime)
    hashed = path.startswith("assets/")
    answer.headers["Cache-Control"] = (
        "public, max-age=31536000, immutable" if hashed else "no-cache"
    )
    return answer


def page() -> Response:
    """index.html, never cached, with a content security policy."""
    found = read("index.html")
    body, packed = found if found is not None else (NOT_BUILT.encode(), None)
    answer = _compressible(body, packed, "text/html; charset=utf-8")
    answer.headers["Cache-Control"] = "no-cache"
    answer.headers["Content-Security-Policy"] = POLICY
    return answer


def _compressible(body: bytes, packed: bytes | None, mime: str) -> Response:
    if packed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
        answer = Response(packed, content_type=mime)
        answer.headers["Content-Encoding"] = "gzip"
    else:
        answer = Response(body, content_type=mime)
    answer.headers["Vary"] = "Accept-Encoding"
    return answer


@lru_cache(maxsize=512)
def read(path: str) -> tuple[bytes, bytes | None] | None:
    """(content, gzipped content where that pays) of a built file; None where there is none."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        return None
    target: Traversable = resources.files("parsyn.hub").joinpath("static")
    for part in parts:
        target = target.joinpath(part)
    if not target.is_file():
        return None
    body = target.read_bytes()
    packed = gzip.compress(body, 9, mtime=0) if path.endswith(COMPRESSED) else None
    return body, packed
