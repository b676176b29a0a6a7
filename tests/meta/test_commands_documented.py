"""docs/commands.md has every command and option, no others, and each command is tested."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from parsyn.cli.main import COMMANDS, cli
from tests.meta.tree import doc, section, sources_of_tests, table_rows, text_of


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None, f"{name} is listed and does not exist"
        yield from walk(inner, (*path, name))


def all_commands() -> dict[str, click.Command]:
    return dict(walk(cli, ("parsyn",)))


NAMES = sorted(all_commands())


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_its_section_with_its_options_and_no_others(name: str) -> None:
    documented = table_rows(section(doc("commands.md"), name))
    shown = {option for row in documented for option in re.findall(r"`(-[\w-]+)", row[0])}
    command = all_commands()[name]
    real = {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert shown == real


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_is_named(name: str) -> None:
    text = section(doc("commands.md"), name)
    for parameter in all_commands()[name].params:
        if isinstance(parameter, click.Argument):
            assert str(parameter.name).upper() in text
        else:
            assert isinstance(parameter, click.Option)
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_run_by_a_test(name: str) -> None:
    words = r'",\s*"'.join(map(re.escape, name.split()[1:]))
    run = re.compile(rf'"{words}"')
    imported = re.compile(rf"\b{name.split()[1]}_command\b")
    assert any(
        run.search(text) or imported.search(text)
        for path, text in sources_of_tests().items()
        if path.parts[1] in ("cli", "e2e", "install", "worker") or path.name == "appliance.py"
    ), f"no test of commands runs `{name}`"


def test_every_command_has_a_line_in_the_overview() -> None:
    from parsyn.cli.main import HELP

    assert set(HELP) == set(COMMANDS)


def test_the_targets_of_the_makefile_are_documented() -> None:
    from pathlib import Path

    makefile = text_of(Path("Makefile"))
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    documented = table_rows(section(doc("commands.md"), "From a checkout"))
    shown = {name for row in documented for name in re.findall(r"`make ([a-z-]+)", row[0])}
    assert shown == targets


def test_the_agent_in_the_foreground_is_documented() -> None:
    from parsyn_worker import main

    text = section(doc("commands.md"), "parsyn-worker start")
    assert "--dir" in text
    assert callable(main.main)
