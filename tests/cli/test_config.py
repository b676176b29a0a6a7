"""Settings come from file, environment and flags, and every mistake is one line that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsyn import config
from parsyn.errors import ErrorCode, ParsynError


def load(tmp_path: Path, text: str = "", **env: str) -> config.Settings:
    path = tmp_path / "parsyn.toml"
    path.write_text(text)
    return config.load(data_dir=tmp_path, config=path, env=env)


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    text = "[hub]\nport = 1\nhost = '10.0.0.1'\nserver = 'uvicorn'\n"
    path = tmp_path / "parsyn.toml"
    path.write_text(text)
    env = {"PARSYN_HUB_PORT": "2", "PARSYN_HUB_HOST": "10.0.0.2"}
    settings = config.load(data_dir=tmp_path, env=env, flags={"hub.port": 3})
    assert settings.integer("hub.port") == 3
    assert settings.text("hub.host") == "10.0.0.2"
    assert settings.text("hub.server") == "uvicorn"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[hub]\nprot = 1\n", "hub.prot`. Did you mean hub.port?"),
        ("[hubb]\nport = 1\n", "no section [hubb]. Did you mean hub?"),
        ("[hub]\nport = 'x'\n", "hub.port must be a whole number, not 'x'"),
        ("[hub]\nport = true\n", "hub.port must be a whole number"),
        ("[hub]\nserver = 'apache'\n", "must be one of hypercorn, uvicorn, granian"),
        ("[jobs]\nprocesses = -1\n", "must be at least 0"),
        ("[hub\n", "is not valid TOML"),
        ("[hub]\nredis = { env = 'NOT_SET_ANYWHERE' }\n", "NOT_SET_ANYWHERE, which is not set"),
        ("[hub]\nredis = { file = '/nowhere/x' }\n", "/nowhere/x: No such file"),
        ("[hub]\nredis = { what = 'x' }\n", "{ env ="),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ParsynError) as caught:
        load(tmp_path, text)
    assert says in caught.value.detail
    assert caught.value.code is ErrorCode.CONFIG
    assert "\n" not in caught.value.detail.replace(str(tmp_path), "")


def test_an_unknown_variable_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ParsynError, match=r"PARSYN_HUB_PROT\. Did you mean PARSYN_HUB_PORT"):
        load(tmp_path, PARSYN_HUB_PROT="1")


def test_secrets_come_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("redis://h:1/0\n")
    settings = load(tmp_path, f"[hub]\nredis = {{ file = '{secret}' }}\n")
    assert settings.text("hub.redis") == "redis://h:1/0"


def test_nested_sections_and_lists(tmp_path: Path) -> None:
    text = "[storage.s3]\nbucket = 'b'\n[plugins]\ndisabled = ['a', 'b']\n"
    settings = load(tmp_path, text)
    assert settings.text("storage.s3.bucket") == "b"
    assert settings.names("plugins.disabled") == ["a", "b"]
    assert load(tmp_path, PARSYN_PLUGINS_DISABLED="x, y").names("plugins.disabled") == ["x", "y"]


def test_the_example_is_generated_and_loads() -> None:
    import tomllib

    path = Path(__file__).parents[2] / "parsyn.toml.example"
    assert path.read_text() == config.example()
    uncommented = "\n".join(
        line.removeprefix("# ") if " = " in line else line
        for line in path.read_text().splitlines()
        if not line.startswith("# ") or " = " in line
    )
    tomllib.loads("\n".join(x for x in uncommented.splitlines() if "{ env" not in x))


def test_urls(tmp_path: Path) -> None:
    assert load(tmp_path).url == "http://127.0.0.1:8000"
    assert load(tmp_path, PARSYN_HUB_HOST="0.0.0.0").bound_url == "http://127.0.0.1:8000"
    assert load(tmp_path, PARSYN_HUB_HOST="::1").bound_url == "http://[::1]:8000"
    assert load(tmp_path, PARSYN_HUB_URL="https://x.org/").url == "https://x.org"
