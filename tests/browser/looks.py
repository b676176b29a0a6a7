"""The rules that every page keeps: no key, no overflow, no serious finding; and its picture."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests.browser.conftest import ROOT, SCREENSHOTS
from tests.browser.watch import axe_findings

LOCALES = {"en": "en-US", "fr": "fr-FR"}
WIDTHS = {1440: 900, 390: 844}
THEMES = ("light", "dark")
TALLEST = 2600
OVERFLOW = """() => {
  const root = document.scrollingElement
  if (root.scrollWidth <= root.clientWidth) return null
  const wide = [...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
    .map((one) => `${one.tagName.toLowerCase()}.${String(one.className).slice(0, 60)}`)
  return `${root.scrollWidth} > ${root.clientWidth}: ${wide.slice(0, 4).join(', ')}`
}"""
WORDS = """() => {
  const names = ['aria-label', 'title', 'placeholder']
  const marked = [...document.querySelectorAll(names.map((name) => `[${name}]`).join())]
  const labels = marked.flatMap((one) => names.map((name) => one.getAttribute(name) ?? ''))
  return [document.title, document.body.innerText, ...labels].join('\\n')
}"""


def lang_of(page: Page) -> str:
    return str(page.evaluate("document.documentElement.lang"))


@cache
def catalogue(language: str) -> dict[str, str]:
    """Every key with its sentence, read from the source of the web UI."""
    files = sorted((ROOT / "webui/src/i18n" / language).glob("*.ts"))
    text = "\n".join(file.read_text() for file in files)
    found = dict(re.findall(r'^\s+"(\w+\.\w+)":\s+"(.+)",$', text, re.MULTILINE))
    assert len(found) > 300
    return found


def words_left(page: Page, language: str) -> list[str]:
    """Keys, holes that nothing filled, and sentences of the other language."""
    text = page.evaluate(WORDS)
    own = catalogue(language)
    found = [f"key {key}" for key in own if re.search(rf"\b{re.escape(key)}\b", text)]
    holes = set(re.findall(r"\{\w+\}", " ".join(own.values())))
    found += [f"hole {hole}" for hole in holes if hole in text]
    if language == "en":
        return found
    others = {key: text for key, text in catalogue("en").items() if text != own.get(key)}
    return found + [
        f"English: {sentence}"
        for sentence in others.values()
        if sentence.count(" ") > 2 and sentence in text
    ]


def inspect(page: Page, name: str, language: str, *, axe: bool) -> list[str]:
    """Both themes and both widths of what the page shows now; returns what is wrong."""
    found = [f"lang is {lang}" for lang in [lang_of(page)] if lang != language]
    found += words_left(page, language)
    for width in WIDTHS:
        for theme in THEMES:
            found += look(page, f"{name}-{width}-{theme}-{language}", width, theme)
            found += axe_findings(page, axe_options(theme)) if axe else []
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    return [f"{name}: {one}" for one in dict.fromkeys(found)]


def look(page: Page, name: str, width: int, theme: str) -> list[str]:
    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    overflow = page.evaluate(OVERFLOW)
    # As tall as its content, so that bars at the edges stay at the edges.
    height = min(TALLEST, page.evaluate("document.scrollingElement.scrollHeight"))
    page.set_viewport_size({"width": width, "height": height})
    page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")
    return [f"overflow at {width} px: {overflow}"] if overflow else []


def axe_options(theme: str) -> dict[str, Any]:
    """Everything once for each width; what a theme can change, for each theme."""
    if theme == "light":
        return {}
    return {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
