"""The French of the hub's sentences is that of sentences which the hub still says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from parsyn.services.failures import ADVICE
from tests.meta.tree import ROOT, project_files, text_of

FRENCH = ROOT / "webui" / "src" / "i18n" / "fr"
CHECKED = ("phrases_hub.ts", "phrases_data.ts")
KEY = re.compile(r'^  ("(?:[^"\\]|\\.)*"):', re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=\S)")


def phrases(name: str) -> list[str]:
    """The English of each phrase; TypeScript's strings are Python's here."""
    return [str(ast.literal_eval(key)) for key in KEY.findall((FRENCH / name).read_text())]


@cache
def said() -> frozenset[str]:
    """Every text of the sources with `{}` where it varies, whole and sentence by sentence."""
    shapes: set[str] = set()
    for path in project_files():
        if path.suffix == ".py" and path.parts[0] in ("parsyn", "plugins", "worker"):
            for shape in _shapes(ast.parse(text_of(path))):
                shapes.add(shape)
                shapes.update(SENTENCE_END.split(shape))
    return frozenset(shapes)


def _shapes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )


@pytest.mark.parametrize("name", CHECKED)
def test_the_hub_still_says_what_is_translated(name: str) -> None:
    found = phrases(name)
    assert len(found) > 40
    assert len(set(found)) == len(found)
    gone = [phrase for phrase in found if phrase not in said()]
    assert not gone, f"nothing says this any more, change or remove it in {name}"


def test_advice_after_every_failure_has_french() -> None:
    known = {phrase for name in CHECKED for phrase in phrases(name)}
    assert not set(ADVICE.values()) - known
