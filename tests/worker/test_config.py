"""The agent's settings: where they come from, what is refused and in which words."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from parsyn.errors import ParsynError
from parsyn.wire.states import WorkerType
from parsyn_worker.address import HubAddress
from parsyn_worker.config import SETTINGS, load_config, read_env, write_env

GOOD = {"PLATFORM_URL": "https://hub.example", "WORKER_API_KEY": "wkr_1"}


def test_defaults(tmp_path: Path) -> None:
    config = load_config(tmp_path, GOOD)
    assert config.hub.socket == "wss://hub.example/ws/worker"
    assert (config.max_batch_size, config.worker_type) == (32, WorkerType.BOTH)
    assert (config.heartbeat_interval, config.reconnect_delay) == (30, 5)
    assert (config.training_timeout, config.inference_timeout) == (86400, 300)
    assert (config.quantization, config.trust_remote_code) == ("none", False)
    assert (config.max_cached_models, config.log_level) == (2, "INFO")
    assert config.cache_dir == Path("~/.cache/parsyn").expanduser()
    assert not config.enrolling


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# of this machine\nexport PLATFORM_URL='ws://file:8000'\nMAX_BATCH_SIZE=4\n"
        'WORKER_ENROLLMENT_KEY="enroll_1"\nWORKER_TYPE=prompter\n'
    )
    config = load_config(tmp_path, {"MAX_BATCH_SIZE": "8", "WORKER_TYPE": ""})
    assert config.hub.socket == "ws://file:8000/ws/worker"
    assert (config.max_batch_size, config.worker_type) == (8, WorkerType.PROMPTER)
    assert config.enrolling
    assert config.key == "enroll_1"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"PLATFORM_URL": ""}, "PLATFORM_URL is not set"),
        ({"PLATFORM_URL": "ftp://hub"}, "must begin with wss://"),
        ({"PLATFORM_URL": "https://me:pw@hub"}, "no user or password"),
        ({"PLATFORM_URL": "https://hub:99999"}, "port"),
        ({"PLATFORM_URL": "https://hub/?token=1"}, "without ?"),
        ({"WORKER_API_KEY": ""}, "Neither WORKER_API_KEY nor WORKER_ENROLLMENT_KEY"),
        ({"WORKER_API_KEY": "enroll_1"}, "belongs into WORKER_ENROLLMENT_KEY"),
        ({"WORKER_API_KEY": "psn_1"}, "begins with wkr_"),
        ({"GPU_DEVICE": "gpu0"}, "must be cpu or cuda:N"),
        ({"MAX_BATCH_SIZE": "many"}, "MAX_BATCH_SIZE in the environment must be a whole number"),
        ({"MAX_BATCH_SIZE": "0"}, "between 1 and"),
        ({"WORKER_TYPE": "all"}, "must be one of fine_tuner, prompter, both"),
        ({"HEARTBEAT_INTERVAL": "nan"}, "HEARTBEAT_INTERVAL"),
        ({"QUANTIZATION": "2bit"}, "none, 4bit, 8bit"),
        ({"TRUST_REMOTE_CODE": "maybe"}, "must be true or false"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL"),
        ({"MAX_INFERENCE_CACHED_MODELS": "-1"}, "MAX_INFERENCE_CACHED_MODELS"),
    ],
)
def test_a_bad_value_is_named(tmp_path: Path, values: dict[str, str], words: str) -> None:
    with pytest.raises(ParsynError) as caught:
        load_config(tmp_path, {**GOOD, **values})
    assert words in caught.value.detail
    assert "\n" not in caught.value.detail


def test_a_bad_line_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLATFORM_URL\n")
    with pytest.raises(ParsynError, match="line 1"):
        load_config(tmp_path, GOOD)


def test_keys_do_not_show(tmp_path: Path) -> None:
    config = load_config(tmp_path, {**GOOD, "WORKER_API_KEY": "wkr_secret", "HF_TOKEN": "hf_tok"})
    assert "secret" not in repr(config)
    assert "hf_tok" not in repr(config)


def test_the_file_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "agent" / ".env"
    write_env(path, {"A": "1", "B": "2"})
    write_env(path, {"B": None, "C": "3"})
    assert read_env(path) == {"A": "1", "C": "3"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with pytest.raises(ParsynError):
        write_env(path, {"D": "1\nE=2"})


@pytest.mark.parametrize(
    ("text", "socket", "http"),
    [
        ("hub.example", "wss://hub.example/ws/worker", "https://hub.example"),
        ("https://hub.example/", "wss://hub.example/ws/worker", "https://hub.example"),
        ("ws://[::1]:8000/ws/worker", "ws://[::1]:8000/ws/worker", "http://[::1]:8000"),
        ("http://h/parsyn/ws/worker/", "ws://h/parsyn/ws/worker", "http://h/parsyn"),
    ],
)
def test_addresses_are_completed(text: str, socket: str, http: str) -> None:
    address = HubAddress.parse(text)
    assert (address.socket, address.http) == (socket, http)


def test_tickets_lead_below_the_hub_or_to_http() -> None:
    address = HubAddress.parse("https://h/parsyn")
    assert address.below("/storage/t") == "https://h/parsyn/storage/t"
    assert address.below("https://s3.example/b/k?X=1") == "https://s3.example/b/k?X=1"
    with pytest.raises(ValueError, match="http"):
        address.below("file:///etc/passwd")


def test_every_setting_has_a_name_of_its_own_and_a_help() -> None:
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    assert all(setting.help for setting in SETTINGS)
