"""llama.cpp's converter, as auto-round bundles it: where it is, and running it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import logging
import sys
from pathlib import Path
from typing import Any

from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {LLAMA3: "llama-bpe", LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"): "qwen2"}
"""Ways to cut text before BPE, and llama.cpp's names for them."""


def bundled_folder() -> Path | None:
    """The folder that holds the package `conversion`; auto-round itself is not imported."""
    found = importlib.util.find_spec("auto_round")
    for place in (found.submodule_search_locations or []) if found else []:
        folder = Path(place) / "export" / "export_to_gguf"
        if (folder / "conversion" / "__init__.py").is_file():
            return folder
    return None


def bundled_architectures() -> frozenset[str] | None:
    """Read from the converter's source, without running it; None where it is not installed."""
    folder = bundled_folder()
    if folder is None:
        return None
    tree = ast.parse((folder / "conversion" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "TEXT_MODEL_MAP":
            assert node.value is not None
            return frozenset(name for name in ast.literal_eval(node.value) if generates(name))
    return None


def generates(architecture: str) -> bool:
    """Whether the name is that of a text generator; the converter knows encoders too."""
    return architecture.endswith(("ForCausalLM", "LMHeadModel"))


def convert(model_dir: Path, architecture: str, target: Path, name: str) -> None:
    """Write `model_dir` as GGUF in 16 bit. Raises TaskFailure `user_error` for what it refuses."""
    try:
        conversion, gguf = _load()
        model_class = conversion.get_model_class(architecture)
        own = {"model_arch": model_class.model_arch}
        known: Any = type(model_class.__name__, (_KnownPretokenizer, model_class), own)
        ftype = gguf.LlamaFileType.MOSTLY_F16
        _write(known(model_dir, ftype, target, model_name=name))
    except NotImplementedError as error:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            f"{architecture} cannot be exported to GGUF.",
            line=str(error)[:500],
            advice="Export to another format, or use a model whose tokenizer llama.cpp knows.",
        ) from error


def _write(conversion: Any) -> None:
    """The converter's own `write`, without its progress bar."""
    conversion.prepare_tensors()
    conversion.prepare_metadata(vocab_only=False)
    writer = conversion.gguf_writer
    writer.write_header_to_file(path=conversion.fname_out)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()


def _load() -> tuple[Any, Any]:
    folder = bundled_folder()
    if folder is None:
        raise TaskFailure(
            FailureReason.USER_ERROR,
            "This agent cannot convert to GGUF: auto-round is not installed on it.",
            advice="Install the `gguf` extra on the agent.",
        )
    logging.getLogger("hf-to-gguf").setLevel(logging.ERROR)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module("conversion"), importlib.import_module("gguf")


class _KnownPretokenizer:
    """Recognises a tokenizer by how it cuts text, where the converter's list of hashes does not
    have it (a vocabulary of one's own over a common way of cutting)."""

    dir_model: Path

    def get_vocab_base_pre(self, tokenizer: Any) -> str:
        try:
            return str(super().get_vocab_base_pre(tokenizer))  # type: ignore[misc]
        except NotImplementedError:
            name = pretokenizer_name(self.dir_model / "tokenizer.json")
            if name is None:
                raise
            return name


def pretokenizer_name(path: Path) -> str | None:
    """llama.cpp's name for the way in which this tokenizer.json cuts text, when it is sure."""
    try:
        step = json.loads(path.read_bytes()).get("pre_tokenizer") or {}
    except (OSError, ValueError):
        return None
    steps = step["pretokenizers"] if step.get("type") == "Sequence" else [step]
    kinds = [one.get("type") for one in steps]
    if not steps or kinds[-1] != "ByteLevel" or steps[-1].get("add_prefix_space"):
        return None
    cuts_itself = steps[-1].get("use_regex", True)
    if kinds == ["ByteLevel"] and cuts_itself:
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and cuts_itself and steps[0].get("individual_digits"):
        return "smollm"
    if kinds == ["Split", "ByteLevel"] and not cuts_itself:
        return SPLITS.get(steps[0].get("pattern", {}).get("Regex", ""))
    return None
