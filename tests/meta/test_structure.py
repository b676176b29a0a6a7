"""Rules about the tree that a machine can hold: layers, sizes, names, what is committed."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path

from tests.meta.tree import ROOT, project_files, text_of

SOURCE = {".py", ".ts", ".tsx", ".mjs", ".css", ".sh"}
LONGEST = 600
LONG = 400
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "stuff", "lib"}
BINARY = {".gguf", ".safetensors", ".bin", ".pt", ".pth", ".pyz", ".whl", ".so", ".db", ".woff2"}
LARGEST = 1 << 20


def source_files() -> list[Path]:
    return [path for path in project_files() if path.suffix in SOURCE]


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {path: len(text_of(path).splitlines()) for path in source_files()}
    longest = {str(path): n for path, n in lengths.items() if n > LONGEST}
    assert not longest
    assert sum(n <= LONG for n in lengths.values()) >= 0.9 * len(lengths)


def test_names_say_what_is_inside() -> None:
    vague = [
        str(path)
        for path in project_files()
        if VAGUE & {path.stem.lower(), *(part.lower() for part in path.parent.parts)}
        and path != Path("parsyn/plugin/manager.py")
    ]
    assert not vague


def test_nothing_that_is_built_or_binary_is_committed() -> None:
    for path in project_files():
        assert not str(path).startswith("parsyn/hub/static/"), f"{path} is built"
        assert path.suffix not in BINARY, f"{path} is binary"
        content = (ROOT / path).read_bytes()
        assert len(content) <= LARGEST, f"{path} has {len(content)} bytes"
        content.decode("utf-8")


def test_the_layers_hold() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [str(tool), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert "0 broken" in result.stdout


def test_every_package_is_installed() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    listed = set(settings["options"]["packages"].split())
    roots = {
        "parsyn": Path("parsyn"),
        "parsyn_worker": Path("worker/parsyn_worker"),
        "parsyn_plugins": Path("plugins/parsyn_plugins"),
    }
    found = set()
    for path in project_files():
        if path.name != "__init__.py":
            continue
        for name, root in roots.items():
            if path.parent == root or root in path.parent.parents:
                found.add(".".join((name, *path.parent.relative_to(root).parts)))
    assert listed == found


def test_every_bundled_plugin_is_an_entry_point() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    lines = settings["options.entry_points"]["parsyn"].strip().splitlines()
    registered = {line.split("=")[1].strip() for line in lines}
    bundled = {
        f"parsyn_plugins.{path.parent.name}"
        for path in project_files()
        if path.parts[:2] == ("plugins", "parsyn_plugins")
        and path.name == "__init__.py"
        and len(path.parts) == 4
    }
    assert registered == bundled


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads(text_of(Path("webui/package-lock.json")))
    assert lock["packages"]
    for name, package in lock["packages"].items():
        assert "resolved" not in package, f"{name} has a download address"


def test_sources_speak_of_the_project_alone() -> None:
    """No path of one person's machine, no open ends, no number of a tracker that may move."""
    patterns = {
        "a path of one machine": r"(?<![\w.])/(?:work|home|root|Users)/\w",
        "an open end": r"\b(?:TODO|FIXME|XXX|HACK)\b",
        "a tracker's number": r"\b[Ii]ssue #?\d+",
        "a package registry": r"registry\.npmjs|files\.pythonhosted|pypi\.org/simple",
    }
    found = [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match[0]}"
        for path in project_files()
        if path.suffix in SOURCE | {".md", ".toml", ".cfg", ".json", ".jsonl", ".html"}
        and path != Path("tests/meta/test_structure.py")
        for text in [text_of(path)]
        for what, pattern in patterns.items()
        for match in re.finditer(pattern, text)
    ]
    assert not found, "\n".join(found)


def test_the_licence_is_complete() -> None:
    text = text_of(Path("LICENSE"))
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "license = Apache-2.0" in text_of(Path("setup.cfg"))
