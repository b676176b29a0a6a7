"""Parsyn: an appliance that fine-tunes language models on GPUs that its users bring."""

__version__ = "0.1.0"
