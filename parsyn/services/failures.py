"""What to change after each kind of failure, where the agent did not say."""

from __future__ import annotations

from parsyn.wire.states import RETRIED_BY_ITSELF, FailureReason
from parsyn.wire.tasks import Failure

ADVICE: dict[FailureReason, str] = {
    FailureReason.USER_ERROR: "Change the setting that the message names and start again.",
    FailureReason.BAD_DATA: "Look at the dataset's report; repair or map the rows it names.",
    FailureReason.MODEL_UNAVAILABLE: (
        "Check the model's name and licence on the Hugging Face Hub; a gated model needs HF_TOKEN "
        "on the agent."
    ),
    FailureReason.OUT_OF_MEMORY: (
        "Lower batch_size or max_seq_length, turn gradient_checkpointing on, or use qlora."
    ),
    FailureReason.DISK_FULL: "Make room in the agent's CACHE_DIR, or keep fewer checkpoints.",
    FailureReason.DIVERGED: (
        "Lower learning_rate, raise warmup_ratio, or look for broken rows in the dataset."
    ),
    FailureReason.TIMEOUT: "Train for fewer steps, or raise TRAINING_TIMEOUT_SECONDS on the agent.",
    FailureReason.WORKER_LOST: "Look at the agent's log (`parsyn logs`), then resume the job.",
    FailureReason.PREEMPTED: "Start the agent again, then resume the job.",
    FailureReason.INTERNAL: "Look at the job's log; if it says nothing, at the agent's own.",
}


def advised(failure: Failure, attempt: int, limit: int) -> Failure:
    """The failure with advice, and a word on the attempts where there were several."""
    advice = failure.advice or ADVICE.get(failure.reason)
    message = failure.message
    if failure.reason in RETRIED_BY_ITSELF and attempt >= limit > 1:
        message = f"{message} That was attempt {attempt} of {limit}."
    return failure.model_copy(update={"advice": advice, "message": message})
