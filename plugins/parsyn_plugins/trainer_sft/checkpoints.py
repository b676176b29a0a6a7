"""Folders of weights and of everything else that a run needs to go on as if never interrupted.

A checkpoint holds the adapter or the full weights (loadable as a model), `optimizer.pt`,
`scheduler.pt`, `rng_state.pth`, `trainer_state.json`, `run.json` (plan and course), and in
`best/` the weights of the best step so far where that is another one.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason
from parsyn_plugins.trainer_sft.plan import Batching
from parsyn_plugins.trainer_sft.progress import Course

RUN = "run.json"
ADAPTER = "adapter_model.safetensors"


@dataclass(frozen=True)
class RunRecord:
    """What must be the same for a resumed run: sizes that `auto` came to, and the data."""

    batching: Batching
    rows: int
    tokens: int
    total_steps: int
    precision: Literal["bf16", "fp16", "no"]


def write_run(folder: Path, record: RunRecord, course: Course) -> None:
    text = json.dumps({"record": asdict(record), "course": asdict(course)}, indent=1)
    (folder / RUN).write_text(text)


def read_run(folder: Path) -> tuple[RunRecord, Course]:
    """Raises TaskFailure when the checkpoint is not one of this trainer's."""
    try:
        saved = json.loads((folder / RUN).read_bytes())
        record = dict(saved["record"])
        record["batching"] = Batching(**record["batching"])
        return RunRecord(**record), Course(**saved["course"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TaskFailure(
            FailureReason.INTERNAL,
            "The checkpoint cannot be resumed: its run.json is missing or not readable.",
            advice="Start the job anew.",
        ) from error


def save_weights(model: Any, folder: Path, *, base_name: str | None = None) -> None:
    """The trained weights in safetensors: of an adapter only its own, else the whole model."""
    if hasattr(model, "peft_config"):
        if base_name is not None:
            for config in model.peft_config.values():
                config.base_model_name_or_path = base_name
        # "auto" would ask a hub whether the base's vocabulary has been changed; ours never is.
        model.save_pretrained(str(folder), save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)
    else:
        model.save_pretrained(str(folder))


def load_weights(model: Any, folder: Path) -> None:
    """Put saved weights into the model, exactly."""
    from safetensors.torch import load_file

    if hasattr(model, "peft_config"):
        from peft import set_peft_model_state_dict

        set_peft_model_state_dict(model, load_file(folder / ADAPTER))
        return
    state: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        state.update(load_file(path))
    missing = set(model.load_state_dict(state, strict=False).missing_keys)
    tied = set(getattr(model, "_tied_weights_keys", None) or ())
    if missing - tied:
        raise TaskFailure(
            FailureReason.INTERNAL, "The checkpoint lacks weights of the model.", line=str(missing)
        )


def keep_best(model: Any, folder: Path) -> None:
    """Replace what `folder` holds by the model's weights as they are now."""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    save_weights(model, fresh)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def sync(folder: Path) -> None:
    """Make a folder's files and names durable before it is handed over."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
