"""One run from the dataset to the result, top to bottom: set up, fit, finish."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parsyn.plugin import loading
from parsyn.plugin.batches import Collator, pad_id_of
from parsyn.plugin.task import TaskContext, TaskFailure, TaskOutcome
from parsyn.plugin.trainer import TrainInputs
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_plugins.trainer_sft import plan
from parsyn_plugins.trainer_sft.data import read_data
from parsyn_plugins.trainer_sft.failures import Size, plain_failures
from parsyn_plugins.trainer_sft.params import GPU_ONLY_OPTIMIZERS, SftParams


def train(params: SftParams, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
    """See `Trainer.train`."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    size = Size(device=context.device)
    with plain_failures(size, context.folder), warnings.catch_warnings():
        # What libraries will rename some day is no news for the person whose run this is.
        warnings.simplefilter("ignore", FutureWarning)
        return _Run(params, inputs, context, size).execute()


class _Run:
    def __init__(
        self, params: SftParams, inputs: TrainInputs, context: TaskContext, size: Size
    ) -> None:
        self.params, self.inputs, self.context, self.size = params, inputs, context, size
        self.started = time.monotonic()

    def execute(self) -> TaskOutcome:
        self._take_up()
        self._check_device()
        self.data = read_data(self.params, self.inputs, self.context)
        self._load_model()
        self._plan()
        loop = self._loop()
        self.context.phase(TaskPhase.TRAINING)
        resume = self.inputs.resume
        loop.train(resume_from_checkpoint=str(resume) if resume else None)
        return self._finish(loop.state.global_step)

    # --- set up ------------------------------------------------------------------------------

    def _take_up(self) -> None:
        """A resumed run keeps the sizes and the precision that it began with, on any agent."""
        from parsyn_plugins.trainer_sft.checkpoints import RunRecord, read_run
        from parsyn_plugins.trainer_sft.progress import Course

        self.resumed: RunRecord | None = None
        self.course = Course()
        if self.inputs.resume:
            self.resumed, self.course = read_run(self.inputs.resume)

    def _check_device(self) -> None:
        """What the hub cannot know: refused here, before anything is read or loaded."""
        optimizer, device = self.params.optimizer, self.context.device
        if optimizer in GPU_ONLY_OPTIMIZERS and device == "cpu":
            raise TaskFailure(
                FailureReason.USER_ERROR,
                f"The optimizer {optimizer} needs a GPU, and this agent works on the CPU.",
                advice='Set optimizer to "auto".',
            )
        asked = self.resumed.precision if self.resumed else self.params.mixed_precision
        self.dtype = loading.pick_dtype(device, asked)
        if self.params.base_quantization:
            loading.require_quantization(device, self.params.base_quantization)

    def _load_model(self) -> None:
        import torch
        import transformers

        from parsyn_plugins.trainer_sft.adapting import adapt
        from parsyn_plugins.trainer_sft.fast_lora import speed_up

        params, context = self.params, self.context
        context.phase(TaskPhase.LOADING)
        # Under fp16 a gradient scaler needs weights that learn to be in 32 bit.
        self.fp16 = self.dtype == torch.float16
        scaled = self.fp16 and params.method == "full"
        model, self.tokenizer = loading.load_base(
            self.inputs.model,
            device=context.device,
            dtype=torch.float32 if scaled else self.dtype,
            quantization=params.base_quantization,
            trust_remote_code=context.trust_remote_code,
        )
        transformers.set_seed(params.seed)
        self.model = adapt(model, params, self.inputs.model, context)
        if params.method != "full":
            speed_up(self.model)

    def _plan(self) -> None:
        from parsyn_plugins.trainer_sft import memory
        from parsyn_plugins.trainer_sft.checkpoints import RunRecord
        from parsyn_plugins.trainer_sft.packing import choose_packing

        params, data, most = self.params, self.data, self.context.max_batch_size
        self.packed = choose_packing(self.model, params.packing)
        self.size.longest = max(data.lengths)
        fit = memory.fit(self.model, params, data.lengths, most)
        self.size.batch_size, self.size.checkpointing = fit.batch_size, fit.checkpointing
        found = plan.batching(params, fit.batch_size, most)
        self.batches = self.resumed.batching if self.resumed else found
        self.size.batch_size = self.batches.batch_size
        validated, count = bool(data.validation), len(data.training)
        self.schedule = plan.schedule(params, count, self.batches, validated=validated)
        total, tokens = self.schedule.total_steps, sum(data.lengths)
        precision = loading.precision_of(self.dtype)
        self.record = RunRecord(self.batches, count, tokens, total, precision)
        if self.resumed and self.resumed != self.record:
            raise TaskFailure(
                FailureReason.USER_ERROR,
                "The checkpoint is of another run: its data or its length differ.",
                line=f"{self.resumed} is not {self.record}",
                advice="Start the job anew.",
            )
        self._log_plan()

    def _dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def _log_plan(self) -> None:
        batches, more = self.batches, ""
        if self.packed:
            more += ", packed"
        if self.size.checkpointing:
            more += ", gradient checkpointing"
        learns = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        self.context.log(
            f"{self.params.method} on {self.context.device} in {self._dtype_name()}: "
            f"{learns:,} weights learn, {batches.batch_size} rows at a time x "
            f"{batches.accumulation}, {self.schedule.total_steps} steps, "
            f"learning rate {self.params.resolved_learning_rate:g}{more}."
        )

    # --- fit ---------------------------------------------------------------------------------

    def _loop(self) -> Any:
        from parsyn_plugins.trainer_sft.configuration import sft_config
        from parsyn_plugins.trainer_sft.dataset import RowsDataset
        from parsyn_plugins.trainer_sft.keeping import Keeper
        from parsyn_plugins.trainer_sft.loop import Loop
        from parsyn_plugins.trainer_sft.packing import PackingCollator
        from parsyn_plugins.trainer_sft.progress import Progress
        from parsyn_plugins.trainer_sft.validating import validation_loss

        params, context, data = self.params, self.context, self.data
        self.keeper = Keeper(
            self.model, context, self.record, self.course, self.schedule.steps_per_epoch
        )
        if self.inputs.resume:
            self.keeper.take_up(self.inputs.resume)
        wants_best = bool(data.validation) and params.load_best_at_end is not False
        progress = Progress(
            context,
            self.schedule,
            self.course,
            patience=params.early_stopping_patience,
            on_better=self.keeper.keep_best if wants_best else None,
            answer_samples=self._sampler(),
        )
        config = sft_config(
            params,
            context.folder,
            context.device,
            self.batches,
            self.schedule,
            fp16=self.fp16,
            checkpointing=self.size.checkpointing,
        )
        pad_id = pad_id_of(self.tokenizer)
        return Loop(
            self.model,
            config,
            self.tokenizer,
            RowsDataset(data.rows, data.training),
            (PackingCollator if self.packed else Collator)(data.rows, pad_id),
            progress,
            lambda: validation_loss(self.model, data, pad_id, context, progress.stop_if_cancelled),
            self.keeper.hand_over,
            batch_seed=params.seed,
        )

    def _sampler(self) -> Callable[[int], None] | None:
        from parsyn_plugins.trainer_sft import samples

        asked, data, source = self.params.sample_prompts, self.data, self.inputs.model
        if isinstance(asked, int):
            numbers = [data.held.numbers[row] for row in data.validation[:asked]]
            dataset = self.inputs.validation or self.inputs.dataset
            prompts = samples.prompts_from_rows(dataset, numbers, source)
        else:
            prompts = samples.prompts_from_texts(asked, source)
        if not prompts:
            return None
        length = self.params.sample_tokens
        return lambda step: samples.answer(
            self.model, self.tokenizer, prompts, self.context, step, length
        )

    # --- finish ------------------------------------------------------------------------------

    def _finish(self, steps: int) -> TaskOutcome:
        from parsyn_plugins.trainer_sft.result import write_result

        self.context.phase(TaskPhase.SAVING)
        self.keeper.use_best(steps)
        folder: Path = self.context.folder / "result"
        write_result(self.model, self.inputs.model, folder)
        return TaskOutcome(folder, self._facts(steps))

    def _facts(self, steps: int) -> dict[str, Any]:
        course = self.course
        return {
            "method": self.params.method,
            "steps": steps,
            "best_step": course.best_step,
            "best_eval_loss": course.best_loss,
            "final_loss": course.last_loss,
            "stopped_early": course.stopped_early,
            "trained_tokens": course.tokens,
            "duration_seconds": round(time.monotonic() - self.started, 3),
            "batch_size": self.batches.batch_size,
            "gradient_accumulation_steps": self.batches.accumulation,
            "max_seq_length": self.data.max_length,
            "learning_rate": self.params.resolved_learning_rate,
            "precision": self._dtype_name(),
        }
