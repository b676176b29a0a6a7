"""A small client of the HTTP contract, enough for the demo; every error is one line."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from parsyn.errors import ErrorCode, ParsynError

PAUSE_SECONDS = 0.5
Watch = Callable[[dict[str, Any]], None]


class HubClient:
    """Logged in as one user. Raises ParsynError with the hub's own sentence."""

    def __init__(self, url: str, email: str, password: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=httpx.Timeout(60, read=600))
        answer = self.call("POST", "/api/v1/auth/login", {"email": email, "password": password})
        self.http.headers["Authorization"] = f"Bearer {answer['token']}"

    def close(self) -> None:
        self.http.close()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One JSON call; the answer's JSON, or None for 204."""
        answer = self.http.request(method, path, json=body)
        self._check(answer)
        return answer.json() if answer.content else None

    def _check(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        try:
            detail = json.loads(answer.read())["detail"]
        except (ValueError, KeyError):
            detail = f"{answer.request.url.path} answered {answer.status_code}."
        raise ParsynError(ErrorCode.INTERNAL, str(detail))

    def upload_dataset(self, name: str, filename: str, content: bytes) -> dict[str, Any]:
        """Upload through the parts API and wait until the dataset is validated."""
        upload = self.call(
            "POST",
            "/api/v1/uploads",
            {"filename": filename, "size": len(content), "purpose": "dataset"},
        )
        size = upload["part_size"]
        for n in range(upload["parts_total"]):
            answer = self.http.put(
                f"/api/v1/uploads/{upload['id']}/parts/{n + 1}",
                content=content[n * size : (n + 1) * size],
                headers={"Content-Type": "application/octet-stream"},
            )
            self._check(answer)
        digest = hashlib.sha256(content).hexdigest()
        self.call("POST", f"/api/v1/uploads/{upload['id']}/complete", {"sha256": digest})
        made = self.call("POST", "/api/v1/datasets", {"name": name, "upload_id": upload["id"]})
        found = self.wait(
            f"/api/v1/datasets/{made['id']}", lambda row: row["status"] != "validating", seconds=120
        )
        if found["status"] != "ready":
            raise ParsynError(ErrorCode.BAD_DATA, f"{name}: {found['summary']}")
        return found

    def wait(
        self,
        path: str,
        done: Callable[[dict[str, Any]], bool],
        *,
        seconds: float,
        watch: Watch | None = None,
    ) -> dict[str, Any]:
        """Ask until `done`; `watch` sees every answer. Raises `timeout`."""
        deadline = time.monotonic() + seconds
        while True:
            found: dict[str, Any] = self.call("GET", path)
            if watch:
                watch(found)
            if done(found):
                return found
            if time.monotonic() > deadline:
                raise ParsynError(ErrorCode.TIMEOUT, f"{path} took longer than {seconds:.0f} s.")
            time.sleep(PAUSE_SECONDS)

    def finish(self, path: str, *, seconds: float, watch: Watch | None = None) -> dict[str, Any]:
        """Wait for a job's end; a failed one raises with its reason and advice."""
        found = self.wait(
            path,
            lambda row: row["status"] in ("completed", "failed", "cancelled"),
            seconds=seconds,
            watch=watch,
        )
        if found["status"] != "completed":
            failure = found.get("failure") or {}
            parts = [str(failure.get(key)) for key in ("message", "advice") if failure.get(key)]
            detail = " ".join(parts) or f"{path} was {found['status']}."
            raise ParsynError(ErrorCode.INTERNAL, detail)
        return found

    def answer(self, model: str, messages: list[dict[str, str]]) -> str:
        """One greedy answer on the OpenAI-compatible endpoint."""
        body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 80}
        found = self.call("POST", "/v1/chat/completions", body)
        return str(found["choices"][0]["message"]["content"]).strip()

    def download(self, path: str, target: Path) -> None:
        """Stream one file to disk."""
        with self.http.stream("GET", path) as answer:
            self._check(answer)
            with target.open("wb") as file:
                for chunk in answer.iter_bytes():
                    file.write(chunk)

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every item of a list."""
        offset = 0
        while True:
            page = self.call("GET", f"{path}?limit=200&offset={offset}")
            yield from page["items"]
            offset += len(page["items"])
            if offset >= page["total"] or not page["items"]:
                return
