"""LoRA's linear layer as one operation: y = x W' + s (x A') B'.

PEFT computes the same with a pass over the whole output for the scale, one for the sum, and
another three on the way back; here the scale goes to the r-wide middle and the sums into the
matrix products. Only layers that are exactly this are replaced, the others stay PEFT's.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch


class _LoraLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, a: Any, b: Any, scale: float) -> Any:
        flat = x.reshape(-1, x.shape[-1])
        out = torch.nn.functional.linear(flat, weight, bias)
        low = (flat @ a.t()).mul_(scale)
        out.addmm_(low, b.t())
        ctx.save_for_backward(flat, weight, a, b, low)
        ctx.scale, ctx.shape = scale, x.shape
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        flat, weight, a, b, low = ctx.saved_tensors
        grad = grad.reshape(-1, grad.shape[-1])
        grad_b = grad.t() @ low
        grad_low = (grad @ b).mul_(ctx.scale)
        grad_a = grad_low.t() @ flat
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = (grad @ weight).addmm_(grad_low, a).view(ctx.shape)
        return grad_x, None, None, grad_a, grad_b, None


def speed_up(model: Any) -> int:
    """Replace the forward of every layer that qualifies; how many there were."""
    from peft.tuners.lora import Linear

    count = 0
    for layer in model.modules():
        if type(layer) is Linear and _qualifies(layer):
            layer.forward = MethodType(_forward, layer)
            count += 1
    return count


def _qualifies(layer: Any) -> bool:
    base = layer.get_base_layer()
    if type(base) is not torch.nn.Linear or len(layer.active_adapters) != 1:
        return False
    name = layer.active_adapters[0]
    if name not in layer.lora_A or layer.lora_variant.get(name) is not None or layer.merged:
        return False
    a, b = layer.lora_A[name], layer.lora_B[name]
    plain = isinstance(layer.lora_dropout[name], torch.nn.Identity) and b.bias is None
    frozen = not base.weight.requires_grad and (base.bias is None or not base.bias.requires_grad)
    return plain and frozen and a.weight.dtype == b.weight.dtype == base.weight.dtype


def _forward(layer: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if layer.disable_adapters or layer.merged or x.dtype != layer.weight.dtype:
        return type(layer).forward(layer, x, *args, **kwargs)
    name = layer.active_adapters[0]
    base = layer.get_base_layer()
    a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
    return _LoraLinear.apply(x, base.weight, base.bias, a, b, layer.scaling[name])
