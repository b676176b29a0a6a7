"""Which hub this command was fetched from, so that `parsyn init` need not ask."""

from __future__ import annotations

import os
import sys
import zipfile

VARIABLE = "PARSYN_INSTALLED_FROM"
MARK = b"parsyn of "


def hub_of_origin() -> str | None:
    """The address that the installer's wrapper names, else the zipapp's comment."""
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE]
    try:
        with zipfile.ZipFile(sys.argv[0]) as archive:
            comment = archive.comment
    except (OSError, zipfile.BadZipFile):
        return None
    return (
        comment.removeprefix(MARK).decode("ascii", "replace") if comment.startswith(MARK) else None
    )
