"""docs/plugins.md has every hook and every kind, and shows code that is in the example plugin."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from parsyn.plugin import hookspecs, testing
from tests.meta.tree import (
    ROOT,
    doc,
    has_test,
    project_files,
    section,
    table_rows,
    text_of,
)

HOOKS = [
    name
    for name, value in vars(hookspecs).items()
    if inspect.isfunction(value) and hasattr(value, "parsyn_spec")
]
EXAMPLE = ROOT / "contrib" / "example_plugin"


def test_the_hooks_are_found() -> None:
    assert {"register_trainers", "job_changed", "may_start_job"} <= set(HOOKS)


def test_every_hook_has_its_row_and_no_other() -> None:
    shown = [row[0].strip("`") for row in table_rows(section(doc("plugins.md"), "Hooks"))]
    assert shown == HOOKS


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_says_what_it_returns_or_is_told(name: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, name)) or ""
    assert text.startswith("Return") or ": {" in text


def announced() -> set[str]:
    """Hooks of which the page says that this version does nothing with them yet."""
    rows = table_rows(section(doc("plugins.md"), "Hooks"))
    return {row[0].strip("`") for row in rows if "this version" in row[1] and "yet" in row[1]}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_called_by_the_product_unless_the_page_says_not_yet(name: str) -> None:
    called = re.compile(rf"hook\.{name}\b|hook\(\s*\w+,\s*\"{name}\"")
    callers = [
        path
        for path in project_files()
        if path.suffix == ".py" and path.parts[0] in ("parsyn", "worker")
        if path.name != "hookspecs.py" and called.search(text_of(path))
    ]
    used = [path for path in callers if path != Path("parsyn/plugin/manager.py")]
    registers_a_kind = name.startswith("register_") and callers
    if name in announced():
        assert not used, f"{name} is called by {used}; the page says that it is not"
    else:
        assert used or registers_a_kind, f"nothing calls {name}"


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_used_by_a_test(name: str) -> None:
    assert has_test(rf"\b{name}\b"), f"no test outside tests/meta uses {name}"


def test_every_method_that_an_author_writes_is_documented() -> None:
    page = doc("plugins.md")
    for kind in ("storage", "trainer", "exporter", "evaluator", "notifier", "payment", "identity"):
        tree = ast.parse((ROOT / "parsyn" / "plugin" / f"{kind}.py").read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or not _is_abc(node):
                continue
            assert f"`{node.name}`" in page, f"{node.name} is not in docs/plugins.md"
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    assert f"`{method.name}`" in page, f"{node.name}.{method.name}"


def _is_abc(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "ABC" for base in node.bases)


def test_every_contract_test_is_documented() -> None:
    for name in testing.__all__:
        assert f"`{name}`" in doc("plugins.md")


def test_the_code_shown_is_the_code_of_the_example() -> None:
    page = doc("plugins.md")
    shown = re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL)
    assert len(shown) >= 2
    for name, block in shown:
        assert block.strip() in (EXAMPLE / name).read_text(), f"{name} has no such lines"


def test_the_other_code_can_be_parsed() -> None:
    for block in re.findall(r"```python\n(.*?)```", doc("plugins.md"), re.DOTALL):
        ast.parse(block)


def test_the_example_is_complete() -> None:
    for name in ("pyproject.toml", "README.md", "parsyn_tokens_per_word.py"):
        assert (EXAMPLE / name).is_file()
    assert list(Path(EXAMPLE / "tests").glob("test_*.py"))
