"""The checkout as the meta-tests see it: which files belong to the project, and what docs say."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
IGNORED = frozenset(
    {".git", ".venv", "node_modules", "__pycache__", "build", "dist", "static", ".cache"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"}
)


@cache
def project_files() -> tuple[Path, ...]:
    """Every file of the project, relative to its root; what is ignored does not belong to it."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        return tuple(path for name in listed if name and (ROOT / (path := Path(name))).exists())
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return tuple(path for path in found if IGNORED.isdisjoint(path.parts))


def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def doc(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@cache
def sources_of_tests() -> dict[Path, str]:
    """The Python tests by path, the meta-tests left out: to be mentioned there is no test."""
    return {
        path: text_of(path)
        for path in project_files()
        if path.parts[0] == "tests" and path.suffix == ".py" and path.parts[1] != "meta"
    }


def has_test(pattern: str) -> bool:
    """Whether any test has the pattern."""
    wanted = re.compile(pattern)
    return any(wanted.search(source) for source in sources_of_tests().values())


@dataclass(frozen=True)
class Section:
    """A heading of a page and everything below it, up to the next one of its level or above."""

    title: str
    text: str


def sections(text: str) -> list[Section]:
    """Every section of a page, code blocks respected."""
    lines = text.splitlines()
    headings = []
    fenced = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            fenced = not fenced
        found = re.match(r"(#+) (.+)", line)
        if found and not fenced:
            headings.append((number, len(found[1]), found[2].strip()))
    made = []
    for place, (start, level, title) in enumerate(headings):
        ends = [n for n, deep, _ in headings[place + 1 :] if deep <= level]
        made.append(Section(title, "\n".join(lines[start : ends[0] if ends else None])))
    return made


def section(text: str, title: str) -> str:
    """The section with this heading, marks of code in it left out."""
    for candidate in sections(text):
        if candidate.title.replace("`", "") == title:
            return candidate.text
    raise AssertionError(f"there is no section {title!r}")


def table_rows(text: str) -> list[list[str]]:
    """The cells of every row of every table, header rows and lines left out."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if all(set(cell) <= set("-: ") for cell in cells) and cells[0]:
            rows.pop()
            continue
        rows.append(cells)
    return rows
