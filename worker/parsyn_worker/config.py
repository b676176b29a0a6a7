"""The agent's settings: environment variables over the `.env` of its folder, one table for all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from parsyn.errors import ErrorCode, ParsynError
from parsyn.wire.states import WorkerType
from parsyn_worker.address import HubAddress

ENV_FILE = ".env"
DIR_VARIABLE = "PARSYN_WORKER_DIR"


def default_dir() -> Path:
    return Path(os.environ.get(DIR_VARIABLE) or "~/.parsyn/worker").expanduser()


@dataclass(frozen=True)
class Setting:
    """One variable: how its text becomes a value, what counts when it is absent, and its help."""

    name: str
    field: str
    parse: Callable[[str], Any]
    default: Any
    help: str


@dataclass(frozen=True)
class AgentConfig:
    """Validated settings of one agent. Times in seconds, sizes in bytes."""

    dir: Path
    hub: HubAddress
    api_key: str | None = field(repr=False)
    enrollment_key: str | None = field(repr=False)
    name: str | None
    device: str | None
    max_batch_size: int
    worker_type: WorkerType
    heartbeat_interval: float
    reconnect_delay: float
    quantization: str
    trust_remote_code: bool
    cache_dir: Path
    log_level: str
    training_timeout: float
    inference_timeout: float
    max_cached_models: int
    hf_token: str | None = field(repr=False)
    hf_endpoint: str | None
    spool_limit: int
    cache_limit: int
    cancel_grace: float
    benchmark: bool

    @property
    def key(self) -> str:
        """What authenticates the socket: the own key, else the enrolment key."""
        return self.api_key or self.enrollment_key or ""

    @property
    def enrolling(self) -> bool:
        return self.api_key is None


def _text(text: str) -> str:
    return text


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        value = text.strip().lower()
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value

    return parse


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("must be a number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low:g} and {high:g}")
        return value

    return parse


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def _boolean(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    value = words.get(text.strip().lower())
    if value is None:
        raise ValueError("must be true or false")
    return value


def _device(text: str) -> str:
    value = text.strip().lower()
    kind, _, index = value.partition(":")
    if value == "cpu" or (kind == "cuda" and index.isdecimal()):
        return value
    raise ValueError("must be cpu or cuda:N")


def _key(prefix: str, other: str, other_name: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        value = text.strip()
        if value.startswith(other):
            raise ValueError(f"holds a key that belongs into {other_name}")
        if not value.startswith(prefix) or not value.isascii() or len(value.split()) != 1:
            raise ValueError(f"must be a key that begins with {prefix}")
        return value

    return parse


def _level(text: str) -> str:
    return _choice("debug", "info", "warning", "error")(text).upper()


def _path(text: str) -> Path:
    return Path(text).expanduser()


SETTINGS: tuple[Setting, ...] = (
    Setting("PLATFORM_URL", "hub", HubAddress.parse, None, "the hub, e.g. wss://host/ws/worker"),
    Setting(
        "WORKER_API_KEY",
        "api_key",
        _key("wkr_", "enroll_", "WORKER_ENROLLMENT_KEY"),
        None,
        "this agent's own key",
    ),
    Setting(
        "WORKER_ENROLLMENT_KEY",
        "enrollment_key",
        _key("enroll_", "wkr_", "WORKER_API_KEY"),
        None,
        "a key with which the agent asks for its own",
    ),
    Setting("WORKER_NAME", "name", _text, None, "what the hub calls this agent"),
    Setting("GPU_DEVICE", "device", _device, None, "cpu or cuda:N; cuda:0 where there is a GPU"),
    Setting("MAX_BATCH_SIZE", "max_batch_size", _integer(1, 4096), 32, "largest batch on a device"),
    Setting(
        "WORKER_TYPE",
        "worker_type",
        lambda text: WorkerType(_choice("fine_tuner", "prompter", "both")(text)),
        WorkerType.BOTH,
        "what it does: fine_tuner, prompter or both",
    ),
    Setting(
        "HEARTBEAT_INTERVAL",
        "heartbeat_interval",
        _number(1, 3600),
        30.0,
        "seconds; the hub may ask for less",
    ),
    Setting(
        "RECONNECT_DELAY",
        "reconnect_delay",
        _number(0.05, 60),
        5.0,
        "seconds before the first new try",
    ),
    Setting(
        "QUANTIZATION",
        "quantization",
        _choice("none", "4bit", "8bit"),
        "none",
        "weights while chatting: none, 4bit or 8bit",
    ),
    Setting(
        "TRUST_REMOTE_CODE",
        "trust_remote_code",
        _boolean,
        False,
        "run code that comes with a model: true or false",
    ),
    Setting("CACHE_DIR", "cache_dir", _path, Path("~/.cache/parsyn"), "models and the spool"),
    Setting("LOG_LEVEL", "log_level", _level, "INFO", "debug, info, warning or error"),
    Setting(
        "TRAINING_TIMEOUT_SECONDS",
        "training_timeout",
        _number(1, 10**8),
        86400.0,
        "longest run of a task",
    ),
    Setting(
        "INFERENCE_TIMEOUT_SECONDS",
        "inference_timeout",
        _number(1, 10**6),
        300.0,
        "longest time of one answer",
    ),
    Setting(
        "MAX_INFERENCE_CACHED_MODELS",
        "max_cached_models",
        _integer(1, 64),
        2,
        "base models that stay in memory for chats",
    ),
    Setting("HF_TOKEN", "hf_token", _text, None, "for gated models of the Hugging Face Hub"),
    Setting("HF_ENDPOINT", "hf_endpoint", _text, None, "a mirror of the Hugging Face Hub"),
    Setting(
        "SPOOL_MAX_MB",
        "spool_limit",
        lambda text: _integer(1, 10**6)(text) << 20,
        256 << 20,
        "most that waits on disk for the hub; the oldest metrics are thinned first",
    ),
    Setting(
        "CACHE_MAX_GB",
        "cache_limit",
        lambda text: _integer(1, 10**6)(text) << 30,
        100 << 30,
        "size of the model cache; what was used longest ago goes first",
    ),
    Setting(
        "CANCEL_GRACE_SECONDS",
        "cancel_grace",
        _number(0, 3600),
        30.0,
        "how long a cancelled task may tidy up before it is killed",
    ),
    Setting(
        "BENCHMARK",
        "benchmark",
        _boolean,
        True,
        "whether to measure how fast the device is at the start: true or false",
    ),
)


def load_config(folder: Path, environ: Mapping[str, str] | None = None) -> AgentConfig:
    """Settings from `environ` over `folder/.env`; an empty variable counts as absent.

    Raises ParsynError `config` with one sentence that names the variable and where it was found.
    """
    environ = os.environ if environ is None else environ
    file = read_env(folder / ENV_FILE)
    values: dict[str, Any] = {"dir": folder}
    for setting in SETTINGS:
        values[setting.field] = _value(setting, environ, file, folder / ENV_FILE)
    values["cache_dir"] = values["cache_dir"].expanduser()
    if values["hub"] is None:
        raise _bad(
            "PLATFORM_URL is not set.",
            f"Run `parsyn init`, or set it in the environment or in {folder / ENV_FILE}.",
        )
    if values["api_key"] is None and values["enrollment_key"] is None:
        raise _bad(
            "Neither WORKER_API_KEY nor WORKER_ENROLLMENT_KEY is set.",
            "Make a key on the hub's page of workers and run `parsyn init`.",
        )
    return AgentConfig(**{item.name: values[item.name] for item in fields(AgentConfig)})


def _value(
    setting: Setting, environ: Mapping[str, str], file: Mapping[str, str], path: Path
) -> Any:
    text, where = environ.get(setting.name, "").strip(), "the environment"
    if not text:
        text, where = file.get(setting.name, "").strip(), str(path)
    if not text:
        return setting.default
    try:
        return setting.parse(text)
    except ValueError as error:
        raise _bad(f"{setting.name} in {where} {error}.", f"It means: {setting.help}.") from None


def read_env(path: Path) -> dict[str, str]:
    """`NAME=value` lines; quotes round a value, `export ` and `#` lines are understood."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(f"{path} cannot be read: {error}.", "Repair it or remove it.") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise _bad(f"{path}, line {number}: there is no `=`.", "Write NAME=value.")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[name.strip()] = value
    return found


def write_env(path: Path, values: Mapping[str, str | None]) -> None:
    """Set (or with None remove) variables in a `.env`, atomically, readable by its owner only."""
    kept = {**read_env(path), **values}
    lines = [f"{name}={value}\n" for name, value in kept.items() if value is not None]
    for line in lines:
        if len(line.splitlines()) != 1:
            raise _bad("A setting holds a line break.", "Write it without.")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _bad(what: str, todo: str) -> ParsynError:
    return ParsynError(ErrorCode.CONFIG, f"{what} {todo}")
