"""docs/operations.md names every figure of `/metrics`, and no others."""

from __future__ import annotations

from parsyn.hub.app import create_app
from parsyn.hub.figures import figures_of
from parsyn.services.context import Context
from tests.meta.tree import doc, section, table_rows


def test_every_figure_is_documented(context: Context) -> None:
    hub = create_app(context).extensions["parsyn"]
    figures = figures_of(hub)
    figures._rq = (0, 0)
    real = {
        family.name for family in figures.registry.collect() if family.name.startswith("parsyn_")
    }
    rows = table_rows(section(doc("operations.md"), "Monitoring"))
    assert {row[0].strip("`") for row in rows} == real
