"""The web UI's files: cached when hashed, never when they may change, and nothing beside them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest
from quart import Quart

from parsyn.hub import static

INDEX = "<!doctype html><title>Parsyn</title><p>the page"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in place of the built UI; beside it a file that nobody may get."""
    root = tmp_path / "static"
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_text(INDEX)
    (root / "favicon.svg").write_text("<svg/>")
    (root / "assets" / "main-1a2b.js").write_text("export const answer = 42\n" * 50)
    (tmp_path / "secret.key").write_text("what signs tickets")

    def files(package: str) -> Traversable:
        return tmp_path

    monkeypatch.setattr(static.resources, "files", files)
    static.read.cache_clear()
    yield root
    static.read.cache_clear()


async def test_the_page_is_never_cached_and_has_a_policy(app: Quart, built: Path) -> None:
    for address in ("/", "/training/12", "/datasets"):
        answer = await app.test_client().get(address)
        assert answer.status_code == 200
        assert await answer.get_data(as_text=True) == INDEX
        assert answer.headers["Cache-Control"] == "no-cache"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


async def test_hashed_files_are_cached_and_compressed_for_who_can(app: Quart, built: Path) -> None:
    plain = await app.test_client().get("/assets/main-1a2b.js")
    packed = await app.test_client().get(
        "/assets/main-1a2b.js", headers={"Accept-Encoding": "br, gzip"}
    )
    assert "javascript" in plain.headers["Content-Type"]
    assert "immutable" in plain.headers["Cache-Control"]
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(await packed.get_data(as_text=False)) == await plain.get_data(
        as_text=False
    )


async def test_other_files_may_change(app: Quart, built: Path) -> None:
    answer = await app.test_client().get("/favicon.svg")
    assert answer.headers["Content-Type"].startswith("image/svg")
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "address",
    ["/../secret.key", "/assets/../../secret.key", "/%2e%2e/secret.key", "/assets/%2e%2e%2f..%2fx"],
)
async def test_nothing_outside_is_served(app: Quart, built: Path, address: str) -> None:
    answer = await app.test_client().get(address)
    assert "what signs" not in await answer.get_data(as_text=True)


@pytest.mark.parametrize(
    "address",
    ["/assets/old-build.js", "/api/v1/nothing", "/ws/nothing", "/storage/a/b/c"],
)
async def test_what_is_no_page_is_a_404(app: Quart, built: Path, address: str) -> None:
    answer = await app.test_client().get(address)
    assert answer.status_code == 404
    assert (await answer.get_json())["code"] == "not_found"


async def test_without_a_build_the_page_says_what_to_do(app: Quart, built: Path) -> None:
    (built / "index.html").unlink()
    answer = await app.test_client().get("/")
    assert answer.status_code == 200
    assert "make webui" in await answer.get_data(as_text=True)
