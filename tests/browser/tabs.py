"""Tabs of a page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def open_tab(page: Page, name: str) -> Locator:
    """Its panel: what the tab before it showed may stand for a moment longer."""
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel", name=name)
