"""One table of settings: its rows are `parsyn.toml`, `PARSYN_*` variables and flags at once."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parsyn.errors import ErrorCode, ParsynError

Value = str | int | float | bool | list[str]


@dataclass(frozen=True)
class Setting:
    """One setting. Its variable is `PARSYN_<SECTION>_<KEY>`; `choices` closes the set."""

    section: str
    key: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    secret: bool = False

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"PARSYN_{self.section}_{self.key}".replace(".", "_").upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("hub", "url", "", "The address that people and agents use; empty: host and port."),
    Setting("hub", "host", "127.0.0.1", "The address to bind."),
    Setting("hub", "port", 8000, "The port to bind.", minimum=0),
    Setting("hub", "database", "sqlite", "`sqlite`, or a `postgresql://` URL."),
    Setting("hub", "redis", "", "A `redis://` URL; empty: an embedded Valkey is started."),
    Setting("hub", "server", "hypercorn", "The ASGI server.",
            choices=("hypercorn", "uvicorn", "granian")),
    Setting("hub", "secret_key", "",
            "Signs tickets, the same in every process; empty: `secret.key` of the data directory.",
            secret=True),
    Setting("hub", "trusted_proxies", [],
            "Addresses or networks of reverse proxies whose X-Forwarded-For is believed."),
    Setting(
        "hub", "log_level", "info", "How much is logged.",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting("hub", "log_format", "text", "One line a record for people, or one JSON object.",
            choices=("text", "json")),
    Setting("hub", "metrics_token", "",
            "The bearer token of `/metrics`; empty: only this machine may ask.", secret=True),
    Setting("hub", "audit_days", 365, "How long it is kept who did what, in days.", minimum=1),
    Setting("hub", "registration", "closed", "Who may make an account.",
            choices=("open", "closed")),
    Setting("hub", "session_days", 14, "How long a login lasts without use, in days.", minimum=1),
    Setting("hub", "login_attempts", 10, "Failed logins per account and quarter of an hour.",
            minimum=1),
    Setting("jobs", "processes", 1, "RQ worker processes that `parsyn serve` starts.", minimum=0),
    Setting("jobs", "timeout_seconds", 3600, "Limit of one hub-side job, in seconds.", minimum=1),
    Setting("jobs", "delivery_seconds", 120.0,
            "After so long an effect counts as not brought about, and another process tries.",
            minimum=1.0),
    Setting("leases", "heartbeat_seconds", 30.0, "How often an agent says that it lives.",
            minimum=0.05),
    Setting("leases", "offline_seconds", 90.0, "Silence after which an agent is offline.",
            minimum=0.1),
    Setting("leases", "unreachable_seconds", 60.0,
            "How long an offline agent's task waits for it before it goes to another.",
            minimum=0.0),
    Setting("leases", "offer_seconds", 10.0, "How long an agent has to accept an offer.",
            minimum=0.1),
    Setting("leases", "boot_grace_seconds", 90.0,
            "After a start of the hub no lease expires for so long.", minimum=0.0),
    Setting("leases", "max_attempts", 4, "Attempts before a task is given up.", minimum=1),
    Setting("storage", "use", "local", "The storage plugin that keeps the bytes."),
    Setting("storage", "max_upload_bytes", 10 * 1024**3, "The largest file that may be uploaded.",
            minimum=1),
    Setting("storage", "part_bytes", 8 * 1024**2, "The size of one upload part.", minimum=65536),
    Setting("storage.local", "folder", "storage",
            "Where the files live: relative to the data directory, or absolute."),
    Setting("storage.s3", "endpoint", "", "Host and port of the S3 service."),
    Setting("storage.s3", "bucket", "parsyn", "The bucket; it must exist."),
    Setting("storage.s3", "region", "us-east-1", "The region."),
    Setting("storage.s3", "access_key", "", "The access key.", secret=True),
    Setting("storage.s3", "secret_key", "", "The secret key.", secret=True),
    Setting("storage.s3", "secure", True, "Whether to use https."),
    Setting("plugins", "disabled", [], "Names of plugins that are not even imported."),
)  # fmt: skip
BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True)
class Settings:
    """The effective settings of a process, by "section.key"."""

    data_dir: Path
    values: Mapping[str, Value]
    source: Path | None = None

    def text(self, name: str) -> str:
        return str(self.values[name])

    def number(self, name: str) -> float:
        return float(self.values[name])  # type: ignore[arg-type]

    def integer(self, name: str) -> int:
        return int(self.values[name])  # type: ignore[arg-type]

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def names(self, name: str) -> list[str]:
        value = self.values[name]
        return list(value) if isinstance(value, list) else [str(value)]

    @property
    def url(self) -> str:
        """The hub's address as people and agents use it, without a slash at the end."""
        return self.text("hub.url").rstrip("/") or self.bound_url

    @property
    def bound_url(self) -> str:
        host = self.text("hub.host")
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.integer('hub.port')}"

    def section(self, section: str) -> dict[str, Value]:
        """All keys of one section, for a plugin's own `Settings`."""
        return {s.key: self.values[s.name] for s in SETTINGS if s.section == section}


def default_data_dir(env: Mapping[str, str] = os.environ) -> Path:
    """`$PARSYN_DATA`, else `$XDG_DATA_HOME/parsyn`, else `~/.local/share/parsyn`."""
    if env.get("PARSYN_DATA"):
        return Path(env["PARSYN_DATA"]).expanduser()
    base = env.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "parsyn"


def load(
    *,
    data_dir: Path | None = None,
    config: Path | None = None,
    flags: Mapping[str, Value] | None = None,
    env: Mapping[str, str] = os.environ,
) -> Settings:
    """Read file, then environment, then flags; the later wins.

    Raises ParsynError `config` with one line that names the file or variable and the key.
    """
    data = (data_dir or default_data_dir(env)).expanduser().absolute()
    path = config or (Path(env["PARSYN_CONFIG"]) if env.get("PARSYN_CONFIG") else None)
    if path is None and (data / "parsyn.toml").exists():
        path = data / "parsyn.toml"
    values: dict[str, Value] = {setting.name: setting.default for setting in SETTINGS}
    if path is not None:
        values.update(_from_file(path))
    values.update(_from_env(env))
    for name, value in (flags or {}).items():
        values[name] = _checked(BY_NAME[name], value, f"--{BY_NAME[name].key.replace('_', '-')}")
    return Settings(data, values, path)


def _from_file(path: Path) -> dict[str, Value]:
    try:
        with path.open("rb") as file:
            tree = tomllib.load(file)
    except OSError as error:
        raise _bad(f"The configuration {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(f"The configuration {path} is not valid TOML: {error}.") from error
    return {
        name: _checked(_known(name, str(path)), _secret(value, name, path), f"{path}: {name}")
        for name, value in _leaves(tree, "")
    }


def _leaves(tree: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    sections = {setting.section for setting in SETTINGS}
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        inside = name in sections or any(section.startswith(f"{name}.") for section in sections)
        if isinstance(value, dict) and (inside or name not in BY_NAME):
            if not inside:
                raise _bad(f"There is no section [{name}].{_near(name, sorted(sections))}")
            found += _leaves(value, f"{name}.")
        else:
            found.append((name, value))
    return found


def _secret(value: Any, name: str, path: Path) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"env"}:
        if value["env"] not in os.environ:
            raise _bad(f"{path}: {name} wants the variable {value['env']}, which is not set.")
        return os.environ[value["env"]]
    if set(value) == {"file"}:
        try:
            return Path(str(value["file"])).read_text().strip()
        except OSError as error:
            raise _bad(f"{path}: {name}: {value['file']}: {error.strerror}.") from error
    raise _bad(f'{path}: {name} is a value, {{ env = "NAME" }} or {{ file = "PATH" }}.')


def _from_env(env: Mapping[str, str]) -> dict[str, Value]:
    by_variable = {setting.variable: setting for setting in SETTINGS}
    sections = tuple({f"PARSYN_{s.section.split('.')[0].upper()}_" for s in SETTINGS})
    values: dict[str, Value] = {}
    for variable, text in env.items():
        if variable in by_variable:
            setting = by_variable[variable]
            values[setting.name] = _checked(setting, text, variable)
        elif variable.startswith(sections) and not variable.startswith("PARSYN_WORKER_"):
            raise _bad(f"There is no setting {variable}.{_near(variable, list(by_variable))}")
    return values


def _known(name: str, where: str) -> Setting:
    if name not in BY_NAME:
        raise _bad(f"{where}: there is no setting `{name}`.{_near(name, list(BY_NAME))}")
    return BY_NAME[name]


def _near(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else ""


def _checked(setting: Setting, value: Any, where: str) -> Value:
    try:
        converted = _convert(setting, value)
    except (TypeError, ValueError, KeyError):
        kind = type(setting.default).__name__
        wanted = {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(
            kind, "a list of names" if kind == "list" else "text"
        )
        raise _bad(f"{where} must be {wanted}, not {value!r}.") from None
    if setting.choices and converted not in setting.choices:
        raise _bad(f"{where} must be one of {', '.join(setting.choices)}, not {value!r}.")
    if setting.minimum is not None and float(converted) < setting.minimum:  # type: ignore[arg-type]
        raise _bad(f"{where} must be at least {setting.minimum:g}, not {value!r}.")
    return converted


def _convert(setting: Setting, value: Any) -> Value:
    default = setting.default
    if isinstance(default, bool):
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        return value if isinstance(value, bool) else words[str(value).lower()]
    if isinstance(value, bool):
        raise TypeError
    if isinstance(default, int):
        if isinstance(value, float) and not value.is_integer():
            raise ValueError
        return int(value)
    if isinstance(default, float):
        return float(value)
    if isinstance(default, list):
        names = value.split(",") if isinstance(value, str) else value
        return [str(name).strip() for name in names if str(name).strip()]
    if not isinstance(value, str):
        raise TypeError
    return value


def _bad(message: str) -> ParsynError:
    return ParsynError(ErrorCode.CONFIG, message)


def example() -> str:
    """The text of `parsyn.toml.example`: every setting with its default, commented out."""
    lines = [
        "# Parsyn's settings. Every key is also an environment variable PARSYN_<SECTION>_<KEY>",
        "# and, where it makes sense, a flag. A flag wins over a variable, a variable over this",
        '# file. A secret may be { env = "NAME" } or { file = "PATH" }.',
        "# This file is generated: python -m parsyn.config > parsyn.toml.example",
    ]
    section = ""
    for setting in SETTINGS:
        if setting.section != section:
            section = setting.section
            lines += ["", f"[{section}]"]
        choices = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
        lines += [f"# {setting.help}{choices}", f"# {setting.key} = {_toml(setting.default)}"]
    return "\n".join(lines) + "\n"


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return "[]" if value == [] else str(value)


if __name__ == "__main__":
    print(example(), end="")  # noqa: T201
