"""The parts that compute: each against the plain way of computing the same."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from parsyn.plugin.batches import Collator
from parsyn.plugin.scoring import has_plain_head, row_losses
from parsyn.plugin.task import LocalDataset, LocalModel
from parsyn.plugin.testing_task import RecordingContext
from parsyn.plugin.tokens import TokenRows, tokenise_dataset
from parsyn_plugins.trainer_sft import fused_loss
from parsyn_plugins.trainer_sft.fast_lora import speed_up
from parsyn_plugins.trainer_sft.loop import language_loss
from parsyn_plugins.trainer_sft.master_weights import MasterWeights
from parsyn_plugins.trainer_sft.packing import PackingCollator, keeps_rows_apart


def _load(tiny: LocalModel) -> Any:
    return AutoModelForCausalLM.from_pretrained(tiny.path, dtype=torch.float32)


@pytest.fixture
def rows(tiny: LocalModel, chats: LocalDataset, tmp_path: Any) -> TokenRows:
    return tokenise_dataset(chats, tiny, RecordingContext(tmp_path / "rows"), max_length=64)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("chunk", [3, 256])
def test_the_fused_loss_is_cross_entropy(
    monkeypatch: pytest.MonkeyPatch, bias: bool, chunk: int
) -> None:
    monkeypatch.setattr(fused_loss, "CHUNK", chunk)
    torch.manual_seed(0)
    head = nn.Linear(8, 50, bias=bias)
    hidden = torch.randn(3, 7, 8, requires_grad=True)
    labels = torch.randint(0, 50, (3, 7))
    labels[0, :5] = -100
    labels[2] = -100

    def plain() -> Any:
        logits = head(hidden)[:, :-1].reshape(-1, 50)
        wanted = labels[:, 1:].reshape(-1)
        return nn.functional.cross_entropy(logits, wanted, ignore_index=-100, reduction="sum") / 5

    found = []
    for loss in (plain, lambda: fused_loss.head_loss(hidden, head, labels, 5)):
        head.zero_grad()
        hidden.grad = None
        value = loss()
        (value * 3).backward()
        found.append([value.detach(), hidden.grad, *(p.grad.clone() for p in head.parameters())])
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right)


def test_a_batch_without_a_label_has_no_loss_and_no_gradient() -> None:
    head = nn.Linear(4, 9)
    hidden = torch.randn(2, 3, 4, requires_grad=True)
    loss = fused_loss.head_loss(hidden, head, torch.full((2, 3), -100), 1)
    loss.backward()
    assert float(loss.detach()) == 0
    assert hidden.grad is not None
    assert float(hidden.grad.abs().sum()) == 0


def test_without_gradients_none_are_computed() -> None:
    head = nn.Linear(4, 9)
    hidden, labels = torch.randn(1, 5, 4), torch.randint(0, 9, (1, 5))
    with torch.no_grad():
        loss = fused_loss.head_loss(hidden, head, labels, 1)
    expected = nn.functional.cross_entropy(head(hidden)[0, :-1], labels[0, 1:], reduction="sum")
    torch.testing.assert_close(loss, expected)


def _adapted(tiny: LocalModel, **options: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    config = LoraConfig(
        r=4, lora_alpha=12, target_modules="all-linear", task_type="CAUSAL_LM", **options
    )
    model = get_peft_model(_load(tiny), config)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(0, 0.1)
    return model


def test_fast_lora_is_pefts_lora(tiny: LocalModel) -> None:
    model = _adapted(tiny)
    ids = torch.randint(0, 300, (2, 9))

    def gradients() -> list[Any]:
        model.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        learnt = [p.grad.clone() for p in model.parameters() if p.requires_grad]
        return [loss.detach(), *learnt]

    plain = gradients()
    assert speed_up(model) == 14
    for left, right in zip(plain, gradients(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


def test_fast_lora_respects_a_disabled_adapter(tiny: LocalModel) -> None:
    model, base = _adapted(tiny), _load(tiny)
    speed_up(model)
    ids = torch.randint(0, 300, (1, 9))
    with torch.no_grad(), model.disable_adapter():
        torch.testing.assert_close(model(input_ids=ids).logits, base(input_ids=ids).logits)


@pytest.mark.parametrize("options", [{"use_dora": True}, {"lora_dropout": 0.1}])
def test_what_is_not_plain_lora_stays_pefts(tiny: LocalModel, options: dict[str, Any]) -> None:
    assert speed_up(_adapted(tiny, **options)) == 0


def test_master_weights_keep_updates_that_bf16_would_lose() -> None:
    weight = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    plain = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    masters = MasterWeights([{"params": [weight]}], lambda groups: torch.optim.SGD(groups, lr=1.0))
    bare = torch.optim.SGD([plain], lr=1.0)
    for _ in range(20):
        for one in (weight, plain):
            one.grad = torch.full((4,), 1e-3, dtype=torch.bfloat16)
        masters.step()
        bare.step()
    assert float(plain[0].detach()) == 1.0
    assert float(weight[0].detach()) == pytest.approx(0.98, abs=0.003)


def test_master_weights_are_saved_and_taken_up_exactly() -> None:
    def make() -> tuple[Any, MasterWeights]:
        torch.manual_seed(3)
        weight = nn.Parameter(torch.randn(6, dtype=torch.bfloat16))
        groups = [{"params": [weight], "weight_decay": 0.1}]
        return weight, MasterWeights(groups, lambda found: torch.optim.AdamW(found, lr=0.01))

    def steps(weight: Any, optimizer: MasterWeights, numbers: range) -> None:
        for number in numbers:
            torch.manual_seed(number)
            weight.grad = torch.randn(6).bfloat16()
            optimizer.step()

    weight, optimizer = make()
    steps(weight, optimizer, range(5))
    saved, value = deepcopy(optimizer.state_dict()), weight.detach().clone()
    again, taken_up = make()
    again.data.copy_(value)
    taken_up.load_state_dict(saved)
    steps(weight, optimizer, range(5, 9))
    steps(again, taken_up, range(5, 9))
    assert torch.equal(weight, again)
    assert all(map(torch.equal, optimizer.copies, taken_up.copies))


def test_a_schedulers_rate_reaches_the_copies() -> None:
    weight = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    optimizer = MasterWeights([{"params": [weight]}], lambda g: torch.optim.SGD(g, lr=1.0))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0)
    weight.grad = torch.ones(2, dtype=torch.bfloat16)
    optimizer.step()
    schedule.step()
    assert float(weight.detach().sum()) == 2.0


def test_padding_changes_no_rows_loss(tiny: LocalModel, rows: TokenRows) -> None:
    """Right padding without a mask: a row's loss is the same alone and beside a longer one."""
    model = _load(tiny)
    collator = Collator(rows, pad_id=0)
    together = row_losses(model, collator(range(6)))
    alone = [row_losses(model, collator([row]))[0] for row in range(6)]
    assert together == pytest.approx(alone, rel=1e-5)
    assert len({rows.lengths[row] for row in range(6)}) > 1


def test_packed_loss_is_the_unpacked_loss(tiny: LocalModel, rows: TokenRows) -> None:
    model = _adapted(tiny)
    chosen = range(8)

    def loss_and_gradients(collator: Collator) -> tuple[float, list[Any]]:
        model.zero_grad()
        batch = collator(chosen)
        loss = language_loss(model, batch, batch["learnt"])
        loss.backward()
        return float(loss.detach()), [p.grad.clone() for p in model.parameters() if p.requires_grad]

    plain, plain_gradients = loss_and_gradients(Collator(rows, pad_id=0))
    packed, packed_gradients = loss_and_gradients(PackingCollator(rows, pad_id=0))
    assert packed == pytest.approx(plain, rel=1e-5)
    for left, right in zip(plain_gradients, packed_gradients, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-6)


def test_isolation_is_proven_on_the_model_itself(tiny: LocalModel) -> None:
    model = _load(tiny)
    assert keeps_rows_apart(model)
    assert keeps_rows_apart(model.to(torch.bfloat16))

    class Leaky(type(model)):  # type: ignore[misc]
        """Forgets where rows begin, as a model without position-aware masks would."""

        @property
        def base_model(self) -> Any:
            inner = super().base_model
            return lambda position_ids=None, **given: inner(**given)

    model.__class__ = Leaky
    assert not keeps_rows_apart(model)


def test_row_losses_of_a_scaled_head_are_those_of_its_logits(tiny: LocalModel) -> None:
    model = _load(tiny)
    ids = torch.randint(0, 300, (2, 11))
    batch = {"input_ids": ids, "labels": ids.clone()}
    assert has_plain_head(model)
    plain = row_losses(model, batch)
    model.config.logit_scale = 1.0
    assert not has_plain_head(model)
    assert row_losses(model, batch) == pytest.approx(plain, rel=1e-5)
