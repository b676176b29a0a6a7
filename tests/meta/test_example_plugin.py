"""The example plugin is a real package: it installs, is found like the bundled ones, and works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

EXAMPLE = ROOT / "contrib" / "example_plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package, without touching the environment."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    target = tmp_path_factory.mktemp("site")
    command = [
        sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
        "--no-index", "--disable-pip-version-check", "--target", str(target), str(source),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return target


def environment(installed: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"}


def test_it_is_listed_like_the_bundled_ones(installed: Path, tmp_path: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "parsyn.cli.main", "plugins", "--json", "--data", str(tmp_path)],
        env=environment(installed), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {item["name"]: item for item in json.loads(listed.stdout)}
    assert found["tokens_per_word"]["state"] == "enabled"
    assert found["tokens_per_word"]["kinds"] == ["evaluators"]
    assert found["tokens_per_word"]["distribution"] == "parsyn-tokens-per-word"
    assert found["evaluator_perplexity"]["state"] == "enabled"


def test_the_hub_has_its_form_without_loading_a_model(installed: Path) -> None:
    code = (
        "import json, sys; from parsyn.plugin.manager import Plugins;"
        "evaluator = Plugins().evaluator('tokens_per_word');"
        "print(json.dumps(evaluator.Params.model_json_schema()));"
        "assert not {'torch', 'tokenizers'} & set(sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(installed), capture_output=True, text=True, check=True,
    )  # fmt: skip
    schema = json.loads(result.stdout)
    assert schema["properties"]["max_rows"]["default"] == 1000
    assert schema["properties"]["max_rows"]["unit"] == "rows"


def test_its_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    tests = shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    result = subprocess.run(
        [*command, "--rootdir", str(tmp_path)],
        env=environment(installed), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    assert " passed" in result.stdout
