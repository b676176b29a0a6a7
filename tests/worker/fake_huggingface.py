"""As much of the Hugging Face Hub as a download asks for: model info, and files by revision."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


class FakeHuggingFace:
    """`files` by repository; `gated` ones need the token."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.token = "hf_good"
        self.requests: list[str] = []
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[FakeHuggingFace]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self, body=True)

            def do_HEAD(self) -> None:
                hub.answer(self, body=False)

            def log_message(self, format: str, *args: object) -> None:
                hub.requests.append(format % args)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, *, body: bool) -> None:
        path = request.path.partition("?")[0]
        info = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(?:revision|tree)/([^/]+))?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        found = info or file
        if not found or found[1] not in self.files:
            return _error(request, 401, "RepoNotFound")
        if found[2] not in (None, "main", COMMIT):
            return _error(request, 404, "RevisionNotFound")
        bearer = request.headers.get("Authorization")
        if found[1] in self.gated and bearer != f"Bearer {self.token}":
            return _error(request, 403, "GatedRepo")
        if info and "/tree/" in path:
            return _send(request, json.dumps(self._tree(info[1])).encode(), {}, body)
        if info:
            return _send(request, json.dumps(self._info(info[1])).encode(), {}, body)
        data = self.files[found[1]].get(found[3])
        if data is None:
            return _error(request, 404, "EntryNotFound")
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(data).hexdigest()}"'}
        return _send(request, data, headers, body)

    def _info(self, name: str) -> dict[str, object]:
        files = self.files[name].items()
        return {
            "id": name,
            "sha": COMMIT,
            "siblings": [{"rfilename": path, "size": len(data)} for path, data in files],
            "cardData": {"license": "apache-2.0"},
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "private": False,
        }

    def _tree(self, name: str) -> list[dict[str, object]]:
        return [
            {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for path, data in self.files[name].items()
        ]


def _send(
    request: BaseHTTPRequestHandler, data: bytes, headers: dict[str, str], body: bool
) -> None:
    request.send_response(200)
    for name, value in {"Content-Length": str(len(data)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    if body:
        request.wfile.write(data)


def _error(request: BaseHTTPRequestHandler, status: int, code: str) -> None:
    request.send_response(status)
    request.send_header("X-Error-Code", code)
    request.send_header("X-Error-Message", code)
    request.send_header("Content-Length", "0")
    request.end_headers()
