"""What a child sees of the environment: everything it needs to run, none of the agent's keys."""

from __future__ import annotations

import os
from collections.abc import Mapping

from parsyn_worker.config import AgentConfig

_WITHHELD = ("WORKER_API_KEY", "WORKER_ENROLLMENT_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def child_environment(device: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a child that works on local files: one visible device, no Hub, no keys."""
    kept = _without_keys(os.environ if environ is None else environ)
    return {
        # What a library says to its developers is no line for the people who read a job's log.
        "PYTHONWARNINGS": "ignore",
        "TRANSFORMERS_VERBOSITY": "error",
        # Threads that spin while they wait take the processor from whoever they wait for: beside
        # other work on two cores a training step took four times as long.
        "OMP_WAIT_POLICY": "PASSIVE",
        **kept,
        "CUDA_VISIBLE_DEVICES": _visible(device, kept.get("CUDA_VISIBLE_DEVICES")),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }


def hub_environment(config: AgentConfig) -> dict[str, str]:
    """For the child that downloads from the Hugging Face Hub."""
    env = _without_keys(os.environ)
    env.pop("HF_HUB_OFFLINE", None)
    if config.hf_token:
        env["HF_TOKEN"] = config.hf_token
    if config.hf_endpoint:
        env["HF_ENDPOINT"] = config.hf_endpoint
    return {**env, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "CUDA_VISIBLE_DEVICES": ""}


def child_device(device: str) -> str:
    """A child sees one device only, which for it is the first."""
    return "cpu" if device == "cpu" else "cuda:0"


def _without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in _WITHHELD}


def _visible(device: str, already: str | None) -> str:
    if device == "cpu":
        return ""
    index = int(device.partition(":")[2])
    visible = [part.strip() for part in (already or "").split(",") if part.strip()]
    return visible[index] if index < len(visible) else str(index)
