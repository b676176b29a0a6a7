"""Dataset rows, from a file's bytes to token ids: read, recognise, normalise, render, tokenise.

Shared by the hub (validation, preview, statistics, always in the child of `jail`) and by trainers.
Nothing here imports torch or transformers; pyarrow, zstandard and tokenizers are loaded on use.
"""
