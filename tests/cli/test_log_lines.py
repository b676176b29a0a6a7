"""The log: for people or as JSON, with the request's id, and without what must stay secret."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from parsyn.cli.log_lines import JsonLines, TextLines, without_secrets
from parsyn.services.asking import Asking, asking


def record(message: str, *values: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("parsyn.hub", logging.WARNING, __file__, 1, message, values, None)
    vars(made).update(extra)
    return made


def test_json_lines_are_objects() -> None:
    entry = json.loads(JsonLines().format(record("worker %d is gone", 7, worker_id=7)))
    assert entry["message"] == "worker 7 is gone"
    assert (entry["level"], entry["logger"]) == ("warning", "parsyn.hub")
    assert entry["worker_id"] == 7
    assert entry["time"].endswith("+00:00")
    assert "request_id" not in entry


def test_a_cause_stays_in_one_line() -> None:
    made = record("it failed")
    try:
        raise RuntimeError("two\nlines of wkr_abcdefghijklmnop")
    except RuntimeError:
        made.exc_info = sys.exc_info()
    line = JsonLines().format(made)
    assert "\n" not in line
    assert "RuntimeError" in json.loads(line)["exception"]
    assert "abcdefghijklmnop" not in line


def test_the_requests_id_is_in_both() -> None:
    token = asking.set(Asking("r-42", None))
    try:
        assert json.loads(JsonLines().format(record("hi")))["request_id"] == "r-42"
        assert TextLines().format(record("hi")).endswith("hi [r-42]")
    finally:
        asking.reset(token)


@pytest.mark.parametrize(
    "secret",
    [
        "psn_Zk3v9QwErTyUiOp",
        "wkr_Zk3v9QwErTyUiOp",
        "enroll_Zk3v9QwErTyUiOp",
        "pss_Zk3v9QwErTyUiOp",
        "postgresql://parsyn:Zk3v9QwErTyUiOp@db/parsyn",
        "GET /storage/Zk3v9QwErTyUiOp.abc failed",
        "Authorization: Bearer Zk3v9QwErTyUiOp",
        "http://hub/setup?token=Zk3v9QwErTyUiOp",
        "password: Zk3v9QwErTyUiOp",
    ],
)
def test_secrets_stay_out(secret: str) -> None:
    shown = without_secrets(f"before {secret} after")
    assert "Zk3v9QwErTyUiOp" not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_other_words_stay() -> None:
    text = "worker 3 (rig-1) was asked to stop task_12 at http://hub:8000/api/v1/jobs/9"
    assert without_secrets(text) == text
