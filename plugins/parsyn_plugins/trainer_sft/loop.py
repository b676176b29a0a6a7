"""TRL's trainer with the parts replaced that cost time or cannot be resumed exactly.

- The loss projects only positions that are learnt from (see `fused_loss`), and TRL's entropy and
  accuracy of every step, which nobody asked for, are not computed.
- Batches come from `LengthGroupedBatches`, whose order depends on seed and epoch alone.
- Right-padded rows under causal attention need no mask: a real token never sees what follows it.
- 16-bit weights are updated through 32-bit copies (see `master_weights`).
- Evaluation and checkpoints are ours; when they happen is decided by `progress`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import PrinterCallback
from trl import SFTConfig, SFTTrainer

from parsyn.plugin.batches import Collator
from parsyn.plugin.scoring import base_of, has_plain_head, last_states
from parsyn_plugins.trainer_sft import checkpoints
from parsyn_plugins.trainer_sft.batches import LengthGroupedBatches
from parsyn_plugins.trainer_sft.dataset import RowsDataset
from parsyn_plugins.trainer_sft.fused_loss import head_loss
from parsyn_plugins.trainer_sft.master_weights import MasterWeights
from parsyn_plugins.trainer_sft.progress import Progress


class Loop(SFTTrainer):
    """`evaluate_rows` answers with the validation loss of the model as it is."""

    def __init__(
        self,
        model: Any,
        config: SFTConfig,
        tokenizer: Any,
        dataset: RowsDataset,
        collator: Collator,
        progress: Progress,
        evaluate_rows: Callable[[], float],
        hand_over: Callable[[Path, int], None],
        *,
        batch_seed: int,
    ) -> None:
        self.optimizer: Any
        self.control: Any
        self.plain_head = has_plain_head(model)
        self.rows = dataset
        self.progress = progress
        self.evaluate_rows = evaluate_rows
        self.hand_over = hand_over
        self.batch_seed = batch_seed
        # TRL wants a table to look at; the rows themselves stay in their own files.
        shown = datasets.Dataset.from_dict({"input_ids": [[0, 0]], "labels": [[0, 0]]})
        super().__init__(
            model=model,
            args=config,
            data_collator=collator,
            train_dataset=shown,
            processing_class=tokenizer,
            callbacks=[progress],
        )
        self.model_accepts_loss_kwargs = True
        self.remove_callback(PrinterCallback)
        if config.fp16:
            # TRL makes a quantised model's adapter bf16; the gradient scaler wants 32 bit.
            for weight in self.model.parameters():
                if weight.requires_grad:
                    weight.data = weight.data.float()

    def _send_telemetry(self) -> None:
        """Nothing is told to anyone."""

    def get_train_dataloader(self) -> Any:
        batches = LengthGroupedBatches(
            self.rows.lengths, self.args.per_device_train_batch_size, self.batch_seed
        )
        return torch.utils.data.DataLoader(
            self.rows,
            batch_sampler=batches,
            collate_fn=self.data_collator,
            # Its own generator: the default one would draw from the state that a resume restores.
            generator=torch.Generator().manual_seed(self.batch_seed),
        )

    def create_optimizer(self, model: Any = None) -> Any:
        weights = [p for p in self.model.parameters() if p.requires_grad]
        halves = [p for p in weights if p.dtype in (torch.bfloat16, torch.float16)]
        if self.optimizer is None and halves:
            kind, options = self.get_optimizer_cls_and_kwargs(self.args, self.model)
            self.optimizer = MasterWeights(self._groups(), lambda groups: kind(groups, **options))
        return super().create_optimizer(model)

    def _groups(self) -> list[dict[str, Any]]:
        decayed = set(self.get_decay_parameter_names(self.model))
        named = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        groups = [
            {
                "params": [p for name, p in named if name in decayed],
                "weight_decay": self.args.weight_decay,
            },
            {"params": [p for name, p in named if name not in decayed], "weight_decay": 0.0},
        ]
        return [group for group in groups if group["params"]]

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> Any:
        """The batches of one update and the number of tokens that they teach."""
        batches = []
        for _ in range(num_batches):
            batch = next(epoch_iterator, None)
            if batch is None:
                break
            batches.append(batch)
        self.progress.tokens_in_step(sum(batch.pop("tokens") for batch in batches))
        return batches, max(1, sum(batch.pop("learnt") for batch in batches))

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        if not self.plain_head:
            if "position_ids" not in inputs:
                inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        with self.accelerator.autocast():
            return language_loss(self.model, inputs, num_items_in_batch)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            self.progress.report(self.state, logs)
        self.control = self.callback_handler.on_log(self.args, self.state, self.control, logs)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        self.model.eval()
        metrics = {"eval_loss": self.evaluate_rows()}
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        self.model.train()
        return metrics

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        folder = Path(self.args.output_dir) / f"step-{self.state.global_step}"
        folder.mkdir(parents=True)
        checkpoints.save_weights(self.model, folder)
        self._save_optimizer_and_scheduler(str(folder))
        self._save_scaler(str(folder))
        self._save_rng_state(str(folder))
        self.state.save_to_json(str(folder / "trainer_state.json"))
        self.hand_over(folder, self.state.global_step)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        checkpoints.load_weights(self.model, Path(resume_from_checkpoint))


def language_loss(model: Any, inputs: dict[str, Any], divisor: Any) -> Any:
    """Next-token loss of a causal model with a plain head, summed and divided by `divisor`."""
    given = {"position_ids": inputs["position_ids"]} if "position_ids" in inputs else {}
    states = last_states(model, inputs["input_ids"], **given)
    return head_loss(states, base_of(model).get_output_embeddings(), inputs["labels"], divisor)
