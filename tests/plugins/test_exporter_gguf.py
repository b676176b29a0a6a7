"""GGUF files of a tiny model: written, read back, compared; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parsyn.plugin.task import LocalModel, TaskCancelled, TaskFailure
from parsyn.plugin.testing_task import RecordingContext
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_plugins.exporter_gguf import architectures, converter, parity
from parsyn_plugins.exporter_gguf.exporter import GgufExporter
from tests.plugins.conftest import Run

exporter = GgufExporter()
pytest.importorskip("llama_cpp")


def _metadata(path: Path) -> dict[str, object]:
    import gguf

    fields = gguf.GGUFReader(path).fields
    return {name: field.contents() for name, field in fields.items()}


@pytest.mark.parametrize("quantization", ["F16", "Q8_0", "Q4_K_M"])
def test_what_is_written_says_what_the_model_says(
    tiny: LocalModel, tmp_path: Path, quantization: str
) -> None:
    context = RecordingContext(tmp_path / "export")
    outcome = exporter.export(exporter.parse({"quantization": quantization}), tiny, context)
    assert outcome.folder is not None
    (path,) = outcome.folder.iterdir()
    assert path.name == f"tiny-{quantization}.gguf"
    found = outcome.facts["parity"]
    assert found["tokenizer_agrees"]
    assert found["compared_tokens"] >= 20
    assert found["token_agreement"] >= (0.5 if quantization == "Q4_K_M" else 0.9)
    template = (tiny.path / "chat_template.jinja").read_text()
    assert _metadata(path)["tokenizer.chat_template"] == template
    assert outcome.facts["size"] == path.stat().st_size
    expected = [TaskPhase.LOADING, TaskPhase.CONVERTING, TaskPhase.QUANTIZING, TaskPhase.VERIFYING]
    if quantization == "F16":
        expected.remove(TaskPhase.QUANTIZING)
    assert context.phases == expected


def test_an_adapter_is_merged_into_what_is_written(
    tiny: LocalModel, run: Run, tmp_path: Path
) -> None:
    """The file must say what the adapted model says, and that is not what the base says."""
    config = {"epochs": 30, "lr": 3e-2, "batch_size": 8, "sample_prompts": 0}
    trained, _ = run({**config, "max_steps": 40, "gradient_accumulation_steps": 1})
    tuned = LocalModel(tiny.path, adapter=trained.folder, name="tuned")
    params = exporter.parse({"quantization": "F16"})
    context = RecordingContext(tmp_path / "export")
    outcome = exporter.export(params, tuned, context)
    assert TaskPhase.MERGING in context.phases
    assert outcome.facts["parity"]["verdict"] in ("same", "close")

    base = exporter.export(params, tiny, RecordingContext(tmp_path / "base"))
    assert base.folder is not None
    assert outcome.folder is not None
    (base_file,), (tuned_file,) = base.folder.iterdir(), outcome.folder.iterdir()
    prompts = parity.prompts_for(tiny)
    from parsyn_plugins.exporter_gguf.loaded import loaded

    said = []
    for path in (base_file, tuned_file):
        with loaded(path, 256) as file:
            said.append([file.next_tokens(file.tokenize(prompt))[-1] for prompt in prompts])
    assert said[0] != said[1]


def test_an_unknown_architecture_is_refused_with_the_nearest() -> None:
    params = exporter.parse({})
    assert exporter.refuses("LlamaForCausalLM", params) is None
    assert exporter.refuses(None, params) is None
    said = exporter.refuses("LlamaForCausalLN", params)
    assert said is not None
    assert "LlamaForCausalLM" in said
    assert exporter.refuses("T5ForConditionalGeneration", params) is not None


def test_the_committed_architectures_are_the_converters() -> None:
    assert converter.bundled_architectures() == architectures.COMMITTED


def test_a_model_that_cannot_be_exported_fails_in_words(tiny: LocalModel, tmp_path: Path) -> None:
    model = LocalModel(tiny.path, name="tiny", architecture="UnheardOfForCausalLM")
    with pytest.raises(TaskFailure, match="UnheardOf") as caught:
        exporter.export(exporter.parse({}), model, RecordingContext(tmp_path / "export"))
    assert caught.value.failure.reason is FailureReason.USER_ERROR


def test_it_stops_when_cancelled(tiny: LocalModel, tmp_path: Path) -> None:
    context = RecordingContext(
        tmp_path / "export", cancel_when=lambda seen: TaskPhase.CONVERTING in seen.phases
    )
    with pytest.raises(TaskCancelled):
        exporter.export(exporter.parse({}), tiny, context)
    assert TaskPhase.QUANTIZING not in context.phases


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ({"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "gpt-2"),
        ({"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}, None),
        (
            {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Digits", "individual_digits": True},
                    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                ],
            },
            "smollm",
        ),
        (
            {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Split", "pattern": {"Regex": converter.LLAMA3}},
                    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                ],
            },
            "llama-bpe",
        ),
        ({"type": "Metaspace"}, None),
        (None, None),
    ],
)
def test_tokenizers_are_known_by_how_they_cut(
    tmp_path: Path, step: object, name: str | None
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"pre_tokenizer": step}))
    assert converter.pretokenizer_name(path) == name


@pytest.mark.parametrize(
    ("agreement", "alike", "verdict"),
    [
        (1.0, True, "same"),
        (0.9, True, "close"),
        (0.5, True, "different"),
        (1.0, False, "different"),
    ],
)
def test_verdicts(agreement: float, alike: bool, verdict: str) -> None:
    assert parity.Parity(agreement, 10, alike).verdict == verdict
