"""Pages: links lead somewhere, everything can be reached from the README, closed sets are whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from parsyn.errors import STATUS_OF
from parsyn.plugin.params import PluginParams
from parsyn.rows.mapping import SHAPES
from parsyn.rows.problems import ProblemCode
from parsyn.wire.states import FailureReason, FileFormat, JobStatus, SchemaKind, Scope, WorkerStatus
from parsyn_plugins.trainer_sft.params import SftParams
from tests.meta.tree import (
    DOCS,
    ROOT,
    doc,
    project_files,
    section,
    sections,
    table_rows,
    text_of,
)

PAGES = [path for path in project_files() if path.suffix == ".md"]


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchor(title: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_internal_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, fragment = link.partition("#")
        file = (ROOT / page.parent / target).resolve() if target else ROOT / page
        assert file.exists(), f"{page}: {link}"
        if fragment:
            anchors = {anchor(item.title) for item in sections(file.read_text())}
            assert fragment in anchors, f"{page}: {link}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [Path("README.md")]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in links(page):
            target = (ROOT / page.parent / link.partition("#")[0]).resolve().relative_to(ROOT)
            if target.suffix == ".md":
                waiting.append(target)
    docs = {path for path in PAGES if path.parts[0] == "docs"}
    assert docs <= seen


def test_the_readme_opens_with_the_two_commands() -> None:
    first = re.search(r"```\n(.*?)```", text_of(Path("README.md")), re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].strip().splitlines()] == [
        "make demo",
        "make test",
    ]


def test_decisions_have_their_three_parts() -> None:
    decisions = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert len({path.name[:4] for path in decisions}) == len(decisions), "a number is used twice"
    for path in decisions:
        titles = [item.title for item in sections(path.read_text())][1:]
        assert titles == ["Context", "Choice", "What would change it"], path.name


@pytest.mark.parametrize(
    ("page", "title", "members"),
    [
        ("datasets.md", "Shapes", [k for k in SchemaKind if k is not SchemaKind.UNKNOWN]),
        ("datasets.md", "Formats", list(FileFormat)),
        ("datasets.md", "Problems", list(ProblemCode)),
        ("concepts.md", "States of a job", list(JobStatus)),
        ("concepts.md", "Why a job failed", list(FailureReason)),
        ("concepts.md", "States of a worker", list(WorkerStatus)),
        ("http-api.md", "Scopes", list(Scope)),
    ],
)
def test_closed_sets_are_whole(page: str, title: str, members: Iterable[StrEnum]) -> None:
    shown = [row[0].strip("`") for row in table_rows(section(doc(page), title))]
    assert shown == [str(member) for member in members]


def test_error_codes_are_documented_with_their_status() -> None:
    rows = table_rows(section(doc("http-api.md"), "Errors"))
    assert {row[0].strip("`"): int(row[1]) for row in rows} == {
        str(code): status for code, status in STATUS_OF.items()
    }


def test_every_field_of_a_shape_is_named() -> None:
    rows = {row[0].strip("`"): row[1] for row in table_rows(section(doc("datasets.md"), "Shapes"))}
    for kind, shape in SHAPES.items():
        for field in shape.fields:
            assert f"`{field}" in rows[kind], f"{kind}: {field}"


def shown_default(value: Any) -> str:
    return (
        "none" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"
    )


def config_rows(params: type[PluginParams]) -> list[tuple[str, str, str]]:
    rows = []
    for name, field in params.model_fields.items():
        extra = field.json_schema_extra
        aliases = extra.get("aliases", []) if isinstance(extra, dict) else []
        assert isinstance(aliases, list)
        default = field.get_default(call_default_factory=True, validated_data={})
        number = f"{default:g}" if isinstance(default, float) else shown_default(default)
        rows.append((name, " ".join(f"`{alias}`" for alias in aliases), number))
    return rows


def test_every_key_of_a_training_config_is_documented_with_aliases_and_default() -> None:
    rows = table_rows(section(doc("training.md"), "Keys of config"))
    shown = [(row[0].strip("`"), row[1], row[2].strip("`")) for row in rows]
    assert shown == config_rows(SftParams)


def test_the_tree_of_the_code_is_the_tree() -> None:
    page = section(doc("code-layout.md"), "The tree")
    shown = set(re.findall(r"^ *([\w./-]+/)(?: |$)", page, re.MULTILINE))
    for name in shown:
        assert any(f"/{path.as_posix()}".find(f"/{name}") >= 0 for path in project_files()), name
    packages = {f"{path.parts[1]}/" for path in project_files() if path.match("parsyn/*/*.py")}
    assert packages <= shown
