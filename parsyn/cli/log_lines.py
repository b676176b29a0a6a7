"""The log of a process: a line for people or a JSON object, with the request's id, no secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

from parsyn.config import Settings
from parsyn.services.asking import asking

SECRETS = (
    (re.compile(r"\b(wkr|psn|pss|enroll)_[A-Za-z0-9_-]{6,}"), r"\1_…"),
    (re.compile(r"(\w+://[^\s:/@]*:)[^\s@/]+@"), r"\1…@"),
    (re.compile(r"(/storage/)[A-Za-z0-9_.~-]{12,}"), r"\1…"),
    (re.compile(r"(?i)(bearer|token=|password[=:]) ?[^\s&\"']{6,}"), r"\1 …"),
)
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def without_secrets(text: str) -> str:
    """The text with whatever looks like a key, a ticket or a password cut out."""
    for pattern, kept in SECRETS:
        text = pattern.sub(kept, text)
    return text


class TextLines(logging.Formatter):
    """One line an entry, for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        request_id = asking.get().request_id
        text = without_secrets(super().format(record))
        return f"{text} [{request_id}]" if request_id else text


class JsonLines(logging.Formatter):
    """One JSON object an entry; what a caller gives as `extra` is in it by its name."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, object] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        if asking.get().request_id:
            entry["request_id"] = asking.get().request_id
        if record.exc_info:
            entry["exception"] = without_secrets(self.formatException(record.exc_info))
        entry.update({k: v for k, v in vars(record).items() if k not in STANDARD})
        return json.dumps(entry, ensure_ascii=False, default=str)


def set_up_logging(settings: Settings) -> None:
    """Log to standard error as `hub.log_level` and `hub.log_format` say."""
    handler = logging.StreamHandler(sys.stderr)
    as_json = settings.text("hub.log_format") == "json"
    handler.setFormatter(JsonLines() if as_json else TextLines())
    logging.basicConfig(level=settings.text("hub.log_level").upper(), handlers=[handler])
