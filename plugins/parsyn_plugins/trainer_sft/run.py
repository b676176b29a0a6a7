"""One run from the dataset to the result, top to bottom: set up, fit, finish."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parsyn.plugin import loading
from parsyn.plugin.batches import Collator, pad_id_of, sorted_batches
from parsyn.plugin.scoring import row_losses
from parsyn.plugin.task import TaskContext, TaskFailure, TaskOutcome
from parsyn.plugin.tokens import TokenRows, tokenise_dataset
from parsyn.plugin.trainer import TrainInputs
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_plugins.trainer_sft import plan
from parsyn_plugins.trainer_sft.failures import Size, plain_failures
from parsyn_plugins.trainer_sft.params import GPU_ONLY_OPTIMIZERS, SftParams

EVALUATION_TOKENS = 4096


def train(params: SftParams, inputs: TrainInputs, context: TaskContext) -> TaskOutcome:
    """See `Trainer.train`."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    size = Size(device=context.device)
    with plain_failures(size, context.folder):
        return _Run(params, inputs, context, size).execute()


class _Run:
    def __init__(
        self, params: SftParams, inputs: TrainInputs, context: TaskContext, size: Size
    ) -> None:
        self.params, self.inputs, self.context, self.size = params, inputs, context, size
        self.best = context.folder / "best"
        self.started = time.monotonic()

    def execute(self) -> TaskOutcome:
        self._check_device()
        self._read_rows()
        self._load_model()
        self._plan()
        loop = self._loop()
        self.context.phase(TaskPhase.TRAINING)
        loop.train(resume_from_checkpoint=str(self.inputs.resume) if self.inputs.resume else None)
        return self._finish(loop)

    # --- set up ------------------------------------------------------------------------------

    def _check_device(self) -> None:
        """What the hub cannot know: refused here, before anything is read or loaded."""
        optimizer, device = self.params.optimizer, self.context.device
        if optimizer in GPU_ONLY_OPTIMIZERS and device == "cpu":
            raise TaskFailure(
                FailureReason.USER_ERROR,
                f"The optimizer {optimizer} needs a GPU, and this agent works on the CPU.",
                advice='Set optimizer to "auto".',
            )
        self.dtype = loading.pick_dtype(device, self.params.mixed_precision)
        if self.params.base_quantization:
            loading.require_quantization(device, self.params.base_quantization)

    def _read_rows(self) -> None:
        source, params = self.inputs.model, self.params
        context_length = source.context_length or loading.context_length_of(source.path)
        self.max_length = plan.max_length(params, context_length)
        if context_length and self.max_length > context_length:
            raise TaskFailure(
                FailureReason.USER_ERROR,
                f"max_seq_length is {self.max_length}, and the model's context is "
                f"{context_length} tokens.",
                advice=f"Set max_seq_length to {context_length} or less.",
            )
        self.rows = self._tokenise(self.inputs.dataset, "train")
        given = self.inputs.validation
        self.held_rows = self._tokenise(given, "validation") if given else self.rows
        held = plan.validation_rows(params, len(self.rows), given is not None)
        order = list(range(len(self.rows)))
        random.Random(params.seed).shuffle(order)
        self.validation: Sequence[int] = range(len(self.held_rows)) if given else order[:held]
        self.chosen = sorted(order if given else order[held:])
        if not given and held:
            self.context.log(f"{held} of {len(self.rows)} rows are held back for validation.")

    def _tokenise(self, dataset: Any, name: str) -> TokenRows:
        rows = tokenise_dataset(
            dataset,
            self.inputs.model,
            self.context,
            train_on=self.params.train_on,
            max_length=self.max_length,
            name=name,
        )
        tokens = sum(rows.lengths)
        self.context.log(
            f"{dataset.name or name}: {len(rows)} rows, {tokens} tokens, "
            f"{sum(rows.trained)} of them learnt from."
        )
        if rows.truncated:
            self.context.log(
                f"{rows.truncated} rows were longer than {self.max_length} tokens and cut.",
                "warning",
            )
        if rows.left_out:
            seen = f" For example: {rows.problems[0]}" if rows.problems else ""
            self.context.log(f"{rows.left_out} rows were left out.{seen}", "warning")
        return rows

    def _load_model(self) -> None:
        import transformers

        from parsyn_plugins.trainer_sft.adapting import adapt
        from parsyn_plugins.trainer_sft.fast_lora import speed_up

        params, context = self.params, self.context
        context.phase(TaskPhase.LOADING)
        # Under fp16 a gradient scaler needs weights that learn to be in 32 bit.
        scaled = params.method == "full" and str(self.dtype) == "torch.float16"
        model, self.tokenizer = loading.load_base(
            self.inputs.model,
            device=context.device,
            dtype="float32" if scaled else self.dtype,
            quantization=params.base_quantization,
            trust_remote_code=context.trust_remote_code,
        )
        transformers.set_seed(params.seed)
        self.model = adapt(model, params, self.inputs.model, context)
        if params.method != "full":
            speed_up(self.model)

    # --- plan --------------------------------------------------------------------------------

    def _plan(self) -> None:
        from parsyn_plugins.trainer_sft import checkpoints
        from parsyn_plugins.trainer_sft.progress import Course

        self.course = Course()
        resumed = None
        if self.inputs.resume:
            resumed, self.course = checkpoints.read_run(self.inputs.resume)
        self.packed = self._choose_packing()
        fit = self._fit()
        batches = plan.batching(self.params, fit.batch_size, self.context.max_batch_size)
        self.batches = resumed.batching if resumed else batches
        self.size.batch_size, self.size.checkpointing = self.batches.batch_size, fit.checkpointing
        self.checkpointing = fit.checkpointing
        self.schedule = plan.schedule(
            self.params, len(self.chosen), self.batches, validated=bool(self.validation)
        )
        self.record = checkpoints.RunRecord(
            self.batches,
            len(self.chosen),
            sum(self.rows.lengths),
            self.schedule.total_steps,
            str(self.dtype),
        )
        if resumed and resumed != self.record:
            raise TaskFailure(
                FailureReason.INTERNAL,
                "The checkpoint is of another run: its data, length or precision differ.",
                line=f"{resumed} is not {self.record}",
                advice="Start the job anew.",
            )
        self._log_plan()

    def _choose_packing(self) -> bool:
        """Packing changes no result, so it is a matter of what is proven and what is faster."""
        from parsyn_plugins.trainer_sft.packing import is_free, keeps_rows_apart

        asked = self.params.packing
        if asked is False or (asked == "auto" and not is_free(self.model)):
            return False
        if keeps_rows_apart(self.model):
            return True
        if asked is True:
            raise TaskFailure(
                FailureReason.USER_ERROR,
                "Packing is not possible with this model: rows in one sequence see one another.",
                advice='Set packing to "auto" or false.',
            )
        return False

    def _fit(self) -> Any:
        from parsyn_plugins.trainer_sft import memory

        lengths = sorted(self.rows.lengths[row] for row in self.chosen)
        self.size.longest = longest = lengths[-1]
        if self.context.device == "cpu":
            typical = lengths[len(lengths) * 3 // 4]
            return memory.fit_cpu(self.model, self.params, longest, typical)
        most = self.context.max_batch_size
        return memory.fit_gpu(self.model, self.params, longest, most, self._probe)

    def _probe(self, rows: int, longest: int) -> None:
        import torch

        from parsyn_plugins.trainer_sft.loop import language_loss

        ids = torch.zeros((rows, longest), dtype=torch.long, device=self.context.device)
        language_loss(self.model, {"input_ids": ids, "labels": ids}, 1.0).backward()

    def _log_plan(self) -> None:
        steps, batches = self.schedule, self.batches
        learns = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        precision = str(self.dtype).removeprefix("torch.")
        self.context.log(
            f"{self.params.method} on {self.context.device} in {precision}: "
            f"{learns:,} weights learn, {batches.batch_size} rows at a time x "
            f"{batches.accumulation}, {steps.total_steps} steps, "
            f"learning rate {self.params.resolved_learning_rate:g}"
            f"{', packed' if self.packed else ''}"
            f"{', gradient checkpointing' if self.checkpointing else ''}."
        )

    # --- fit ---------------------------------------------------------------------------------

    def _loop(self) -> Any:
        from parsyn_plugins.trainer_sft.configuration import sft_config
        from parsyn_plugins.trainer_sft.dataset import RowsDataset
        from parsyn_plugins.trainer_sft.loop import Loop
        from parsyn_plugins.trainer_sft.packing import PackingCollator
        from parsyn_plugins.trainer_sft.progress import Progress

        self.progress = Progress(
            self.context,
            self.schedule,
            self.course,
            patience=self.params.early_stopping_patience,
            on_better=self._keep_best if self._wants_best() else None,
            answer_samples=self._sampler(),
        )
        self._take_up_best()
        collator = PackingCollator if self.packed else Collator
        loop = Loop(
            self.model,
            sft_config(
                self.params,
                self.context.folder,
                self.context.device,
                self.batches,
                self.schedule,
                fp16=str(self.dtype) == "torch.float16",
                checkpointing=self.checkpointing,
            ),
            self.tokenizer,
            RowsDataset(self.rows, self.chosen),
            collator(self.rows, pad_id_of(self.tokenizer)),
            self.progress,
            self._evaluate,
            self._hand_over,
            batch_seed=self.params.seed,
        )
        if loop.args.fp16:
            for weight in loop.model.parameters():
                if weight.requires_grad:
                    weight.data = weight.data.float()
        return loop

    def _wants_best(self) -> bool:
        asked = self.params.load_best_at_end
        return bool(self.validation) and asked is not False

    def _keep_best(self) -> None:
        from parsyn_plugins.trainer_sft.checkpoints import keep_best

        keep_best(self.model, self.best)

    def _take_up_best(self) -> None:
        """After a resume: the best weights so far are in the checkpoint, beside or as its own."""
        if not self.inputs.resume or self.course.best_step is None:
            return
        saved = self.inputs.resume / "best"
        source = saved if saved.is_dir() else self.inputs.resume
        names = [p for p in source.iterdir() if p.suffix in (".safetensors", ".json")]
        self.best.mkdir()
        for path in names:
            shutil.copyfile(path, self.best / path.name)

    def _sampler(self) -> Any:
        from parsyn_plugins.trainer_sft import samples

        asked, source = self.params.sample_prompts, self.inputs.model
        if isinstance(asked, int):
            rows = [self.held_rows.numbers[row] for row in self.validation[:asked]]
            dataset = self.inputs.validation or self.inputs.dataset
            prompts = samples.prompts_from_rows(dataset, rows, source)
        else:
            prompts = samples.prompts_from_texts(asked, source)
        if not prompts:
            return None

        def answer(step: int) -> None:
            length = self.params.sample_tokens
            samples.answer(self.model, self.tokenizer, prompts, self.context, step, length)

        return answer

    def _evaluate(self) -> float:
        """Mean loss of the validation rows, in nats a token."""
        lengths = [self.held_rows.lengths[row] for row in self.validation]
        most = max(EVALUATION_TOKENS, self.size.batch_size * self.size.longest)
        batches = sorted_batches(lengths, most, self.context.max_batch_size)
        collator = Collator(self.held_rows, pad_id_of(self.tokenizer))
        total, learnt = 0.0, 0
        for done, batch in enumerate(batches):
            self.progress.stop_if_cancelled()
            self.context.phase(TaskPhase.EVALUATING, done, len(batches))
            tensors = collator([self.validation[at] for at in batch])
            learnt += tensors["learnt"]
            placed = {name: tensors[name].to(self.model.device) for name in ("input_ids", "labels")}
            total += sum(row_losses(self.model, placed))
        self.context.phase(TaskPhase.TRAINING)
        return total / learnt

    def _hand_over(self, folder: Path) -> None:
        from parsyn_plugins.trainer_sft import checkpoints

        step = int(folder.name.removeprefix("step-"))
        self.context.phase(TaskPhase.SAVING)
        checkpoints.write_run(folder, self.record, self.course)
        is_best = self.course.best_step == step
        if self.best.is_dir() and not is_best:
            shutil.copytree(self.best, folder / "best", copy_function=os.link)
        checkpoints.sync(folder)
        metrics = {"loss": self.course.last_loss, "eval_loss": self.course.best_loss}
        self.context.checkpoint(
            step,
            folder,
            epoch=step / self.schedule.steps_per_epoch,
            metrics={name: value for name, value in metrics.items() if value is not None},
            best=is_best,
        )
        self.context.phase(TaskPhase.TRAINING)

    # --- finish ------------------------------------------------------------------------------

    def _finish(self, loop: Any) -> TaskOutcome:
        from parsyn_plugins.trainer_sft.checkpoints import load_weights
        from parsyn_plugins.trainer_sft.result import write_result

        self.context.phase(TaskPhase.SAVING)
        course, steps = self.course, loop.state.global_step
        if self.best.is_dir() and course.best_step not in (None, steps):
            load_weights(self.model, self.best)
            self.context.log(f"The result is step {course.best_step}, the best of the validation.")
        folder = write_result(self.model, self.inputs.model, self.context.folder / "result")
        facts = {
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
            "max_seq_length": self.max_length,
            "learning_rate": self.params.resolved_learning_rate,
            "precision": str(self.dtype).removeprefix("torch."),
        }
        return TaskOutcome(folder, facts)
