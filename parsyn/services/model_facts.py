"""What the files of a model say about it, and the files that are refused.

Only headers and small text files are read. Nothing here runs what it reads: configurations are
JSON of a bounded size, weights are safetensors whose headers are checked against their sizes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.storage import Storage

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
HEADER_BYTES = 8 << 20
JSON_BYTES = 4 << 20
TOKENIZER_CONFIG_BYTES = 32 << 20
TEMPLATE_BYTES = 1 << 20
MOST_TENSORS = 100_000
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
KEPT = (".json", ".safetensors", ".jinja", ".txt", ".md", ".model", ".tiktoken")
RUNS_CODE = re.compile(r"auto_map|trust_remote_code|_attn_implementation.*")
CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx")
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6,
    "F6_E3M2": 6, "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


class Files(Protocol):
    """The files of one model: their sizes by name, and a bounded look into each."""

    @property
    def sizes(self) -> Mapping[str, int]: ...

    def read(self, name: str, length: int, offset: int = 0) -> bytes: ...


@dataclass(frozen=True)
class FolderFiles:
    """Files of a folder on this machine."""

    folder: Path
    sizes: Mapping[str, int]

    def read(self, name: str, length: int, offset: int = 0) -> bytes:
        with (self.folder / name).open("rb") as file:
            file.seek(offset)
            return file.read(length)


@dataclass(frozen=True)
class StoredFiles:
    """Files in the storage, by name."""

    storage: Storage
    keys: Mapping[str, str]
    sizes: Mapping[str, int]

    def read(self, name: str, length: int, offset: int = 0) -> bytes:
        return b"".join(self.storage.get(self.keys[name], offset, length))


@dataclass(frozen=True)
class Facts:
    """`parameters` counts the numbers in the weights' files; None where there are none."""

    architecture: str | None
    parameters: int | None
    context_length: int | None
    chat_template: str | None
    license: str | None


def inspect(files: Files) -> Facts:
    """Check a whole model and describe it. Raises 422 `unsupported` with one sentence."""
    _refuse_pickles(files.sizes)
    if CONFIG not in files.sizes:
        adapter = "adapter_config.json" in files.sizes
        raise _refused(
            "It is an adapter without its model; import the model that it was trained on."
            if adapter
            else f"There is no {CONFIG}, so this is no Hugging Face model folder."
        )
    config = _json(files, CONFIG, JSON_BYTES)
    weights = sorted(name for name in files.sizes if name.endswith(".safetensors"))
    if not weights:
        raise _refused("There are no weights: no file ends in .safetensors.")
    _refuse_missing_shards(files)
    if not any(name in files.sizes for name in TOKENIZERS):
        raise _refused("There is no tokenizer (tokenizer.json); save it beside the weights.")
    tokenizer = _json(files, "tokenizer_config.json", TOKENIZER_CONFIG_BYTES, missing={})
    for name, value in ((CONFIG, config), ("tokenizer_config.json", tokenizer)):
        _refuse_code(name, value)
    return Facts(
        architecture=_architecture(config),
        parameters=sum(count_parameters(files, name) for name in weights),
        context_length=_context_length(config),
        chat_template=_template(files, tokenizer),
        license=_license(files),
    )


def template_of(files: Files) -> str | None:
    """The chat template, where the files hold one that can be read."""
    try:
        tokenizer = _json(files, "tokenizer_config.json", TOKENIZER_CONFIG_BYTES, missing={})
        return _template(files, tokenizer)
    except ParsynError:
        return None


def is_kept(name: str) -> bool:
    """Whether a file of a folder belongs to the model: text, tokenizer or safetensors."""
    return name.endswith(KEPT) or name.upper().startswith(("LICENSE", "LICENCE", "NOTICE"))


# --- weights ---------------------------------------------------------------------------------


def count_parameters(files: Files, name: str) -> int:
    """The numbers in one safetensors file, after its header was checked.

    The format: 8 bytes of header length (little endian), a JSON object of tensors, their bytes
    without gaps (github.com/huggingface/safetensors, "Format").
    """
    size = files.sizes[name]
    length = int.from_bytes(files.read(name, 8), "little")
    if size < 8 or not 2 <= length <= min(size - 8, HEADER_BYTES):
        raise _refused(f"{name} is not a safetensors file, or it is cut off.")
    try:
        header = json.loads(files.read(name, length, 8))
    except (ValueError, RecursionError):
        raise _refused(f"The header of {name} is not valid JSON.") from None
    if not isinstance(header, dict):
        raise _refused(f"The header of {name} names no tensors.")
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
    if len(tensors) > MOST_TENSORS:
        raise _refused(f"{name} claims {len(tensors):,} tensors; at most {MOST_TENSORS:,} can be.")
    spans = [_tensor(name, key, value) for key, value in tensors.items()]
    _refuse_gaps(name, [span for _, span in spans], size - 8 - length)
    return sum(count for count, _ in spans)


def _tensor(file: str, key: str, value: Any) -> tuple[int, tuple[int, int]]:
    """(how many numbers, where their bytes lie)."""
    try:
        bits, shape, (start, end) = BITS[value["dtype"]], value["shape"], value["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, start, end))
        count = math.prod(shape) if whole else -1
    except (KeyError, TypeError, ValueError):
        count = -1
    if count < 0 or count > 1 << 48 or (end - start) * 8 != count * bits:
        raise _refused(f"The header of {file} contradicts itself at the tensor {key[:100]!r}.")
    return count, (start, end)


def _refuse_gaps(file: str, spans: Iterable[tuple[int, int]], size: int) -> None:
    at = 0
    for start, end in sorted(spans):
        if start != at:
            raise _refused(f"The tensors of {file} overlap or leave gaps; write the file anew.")
        at = end
    if at != size:
        raise _refused(f"{file} has {size:,} bytes of tensors where its header claims {at:,}.")


def _refuse_missing_shards(files: Files) -> None:
    if INDEX not in files.sizes:
        return
    names = _json(files, INDEX, HEADER_BYTES).get("weight_map")
    shards = set(names.values()) if isinstance(names, dict) else set()
    missing = sorted(str(shard)[:100] for shard in shards if shard not in files.sizes)
    if missing:
        raise _refused(f"{INDEX} names {', '.join(missing[:3])}, which is not there.")


def _refuse_pickles(names: Iterable[str]) -> None:
    pickles = sorted(name for name in names if name.lower().endswith(PICKLES))
    if pickles:
        raise _refused(
            f"{pickles[0]} may be a pickle, which can run code when it is read. "
            "Save the model as safetensors and leave such files out."
        )


# --- configurations --------------------------------------------------------------------------


def _json(
    files: Files, name: str, limit: int, missing: dict[str, Any] | None = None
) -> dict[str, Any]:
    if name not in files.sizes and missing is not None:
        return missing
    if files.sizes[name] > limit:
        raise _refused(f"{name} is larger than {limit:,} bytes.")
    try:
        value = json.loads(files.read(name, limit))
    except (ValueError, RecursionError):
        raise _refused(f"{name} is not valid JSON.") from None
    if not isinstance(value, dict):
        raise _refused(f"{name} is not a JSON object.")
    return value


def _refuse_code(name: str, value: Any) -> None:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            for key in inner:
                if RUNS_CODE.fullmatch(str(key)):
                    raise _refused(
                        f"{name} wants code of its own to be run ({key[:60]}). "
                        "Only architectures that transformers itself has can be used."
                    )
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner


def _architecture(config: Mapping[str, Any]) -> str | None:
    names = config.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0][:200]
    return None


def _context_length(config: Mapping[str, Any]) -> int | None:
    text = config.get("text_config")
    for source in (config, text if isinstance(text, dict) else {}):
        for key in CONTEXT_KEYS:
            value = source.get(key)
            if type(value) is int and 0 < value < 1 << 31:
                return value
    return None


def _template(files: Files, tokenizer: Mapping[str, Any]) -> str | None:
    if "chat_template.jinja" in files.sizes:
        text = _text(files, "chat_template.jinja", TEMPLATE_BYTES)
        return text if text.strip() else None
    found = tokenizer.get("chat_template")
    if isinstance(found, list):
        named = {item.get("name"): item.get("template") for item in found if isinstance(item, dict)}
        found = named.get("default")
    return found if isinstance(found, str) and found.strip() else None


def _license(files: Files) -> str | None:
    """The licence that the front matter of README.md names."""
    if "README.md" not in files.sizes:
        return None
    head = files.read("README.md", 65_536).decode("utf-8", "replace")
    front = re.match(r"---\s*\n(.*?)\n---", head, re.DOTALL)
    found = (
        re.search(r"^license:\s*[\"']?([\w.+-]{1,100})", front[1], re.MULTILINE) if front else None
    )
    return found[1] if found else None


def _text(files: Files, name: str, limit: int) -> str:
    if files.sizes[name] > limit:
        raise _refused(f"{name} is larger than {limit:,} bytes.")
    try:
        text = files.read(name, limit).decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(f"{name} is not UTF-8.") from None
    return text.replace("\0", "")


def _refused(sentence: str) -> ParsynError:
    return ParsynError(ErrorCode.UNSUPPORTED, sentence)
