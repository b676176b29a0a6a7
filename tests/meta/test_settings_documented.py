"""The pages about settings, and the example file, say what the tables in the code say."""

from __future__ import annotations

import json
from pathlib import Path

from parsyn import __version__, config
from parsyn_worker.config import SETTINGS as AGENT_SETTINGS
from tests.meta.tree import ROOT, doc, section, table_rows


def hub_row(setting: config.Setting) -> str:
    default = json.dumps(setting.default, ensure_ascii=False)
    choices = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
    return f"| `{setting.name}` | `{setting.variable}` | `{default}` | {setting.help}{choices} |"


def test_every_setting_of_the_hub_has_its_row() -> None:
    lines = doc("configuration.md").splitlines()
    missing = [row for row in map(hub_row, config.SETTINGS) if row not in lines]
    assert not missing, "paste into docs/configuration.md:\n" + "\n".join(missing)


def test_no_setting_is_documented_that_does_not_exist() -> None:
    rows = table_rows(section(doc("configuration.md"), "Settings of the hub"))
    assert [row[0].strip("`") for row in rows] == [s.name for s in config.SETTINGS]


def test_the_example_file_is_the_generated_one() -> None:
    example = (ROOT / "parsyn.toml.example").read_text()
    assert example == config.example(), "python -m parsyn.config > parsyn.toml.example"


def test_every_variable_of_the_agent_has_its_row() -> None:
    rows = table_rows(section(doc("configuration.md"), "Settings of an agent"))
    assert [row[0].strip("`") for row in rows] == [s.name for s in AGENT_SETTINGS]


def test_defaults_of_the_agent_are_the_ones_in_the_code() -> None:
    rows = table_rows(section(doc("configuration.md"), "Settings of an agent"))
    shown = {row[0].strip("`"): row[1].strip("`") for row in rows}
    for setting in AGENT_SETTINGS:
        if setting.default is None:
            assert shown[setting.name] in ("", "required", "one is required"), setting.name
            continue
        default = setting.default
        if isinstance(default, Path):
            default = default.expanduser()
        assert setting.parse(shown[setting.name]) == default, setting.name


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    first = next(line for line in changelog.splitlines() if line.startswith("## ["))
    assert first.startswith((f"## [{__version__}]", "## [Unreleased]"))
    assert f"## [{__version__}]" in changelog
