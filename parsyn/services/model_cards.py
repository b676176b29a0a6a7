"""A model's card: what is known of it, as markdown that can go where the model goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from parsyn.services import models
from parsyn.services.context import Context
from parsyn.services.principal import Principal
from parsyn.store.jobs import Job
from parsyn.store.models import Model, ModelFile
from parsyn.store.projects import visible
from parsyn.wire.states import JobKind, JobStatus

TOLD = (
    "trainer", "method", "epochs", "max_steps", "learning_rate", "lr_scheduler", "batch_size",
    "gradient_accumulation_steps", "max_seq_length", "lora_r", "lora_alpha", "mixed_precision",
    "seed",
)  # fmt: skip


def card(context: Context, who: Principal, model_id: int) -> str:
    """Markdown with a front matter. Raises 404."""
    row = models.find(who, model_id)
    job = Job.get_or_none((Job.id == (row.training_job_id or 0)) & visible(Job, who.user_id))
    parts = [
        "\n".join(_front_matter(row)),
        f"# {_line(row.name)}",
        "\n".join(_facts(row)),
        *(["\n".join(_training(job))] if job is not None else []),
        "\n".join(_results(who, row)),
        "\n".join(_use(context, row)),
        "\n".join(_files(row)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(row: Model) -> Iterator[str]:
    yield "---"
    if row.license:
        yield f"license: {json.dumps(row.license)}"
    base = row.base_model
    if base is not None:
        yield f"base_model: {json.dumps(base.hub_id or base.name, ensure_ascii=False)}"
    yield f"library_name: {'peft' if 'adapter' in row.formats else 'transformers'}"
    yield "---"


def _facts(row: Model) -> Iterator[str]:
    base = row.base_model
    made = {
        "hub": f"Fetched from the Hugging Face Hub as `{row.hub_id}`"
        + (f" at revision `{row.revision}`." if row.revision else "."),
        "upload": "Uploaded.",
        "import": "Imported from a folder.",
        "training": f"A fine-tune of {_line(base.name)}." if base else "A fine-tune.",
    }
    yield made.get(row.source, "")
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    told: dict[str, Any] = {
        "Version": row.version,
        "Architecture": row.architecture,
        "Parameters": f"{row.parameters:,}" if row.parameters else None,
        "Context": f"{row.context_length:,} tokens" if row.context_length else None,
        "Formats": ", ".join(row.formats),
        "Size": f"{row.size:,} bytes" if row.size else None,
        "Licence": row.license,
        "Chat template": "yes" if row.chat_template else "none",
    }
    for name, value in told.items():
        if value not in (None, ""):
            yield f"| {name} | {_cell(value)} |"


def _training(job: Job) -> Iterator[str]:
    yield "## Training"
    yield ""
    if job.dataset is not None:
        rows = f" ({job.dataset.row_count:,} rows)" if job.dataset.row_count else ""
        yield f"Trained on the dataset {_line(job.dataset.name)}{rows}."
        yield ""
    yield "| setting | value |"
    yield "| --- | --- |"
    values = {"trainer": job.request.get("trainer"), **job.params}
    for name in TOLD:
        if values.get(name) is not None:
            yield f"| `{name}` | {_cell(values[name])} |"
    result: dict[str, Any] = job.result or {}
    for name in ("steps", "final_loss", "trained_tokens", "duration_seconds"):
        if result.get(name) is not None:
            yield f"| {name.replace('_', ' ')} | {_cell(result[name])} |"


def _results(who: Principal, row: Model) -> Iterator[str]:
    runs = Job.select().where(
        (Job.model == row)
        & (Job.kind == JobKind.EVALUATION)
        & (Job.status == JobStatus.COMPLETED)
        & visible(Job, who.user_id)
    )
    lines = [
        f"| {_cell(name)} | {_cell(metric.get('value'))} | {_cell(metric.get('stderr') or '')} "
        f"| {_cell(run.dataset.name) if run.dataset else 'a deleted dataset'} |"
        for run in runs.order_by(Job.id)
        for name, metric in ((run.result or {}).get("metrics") or {}).items()
    ]
    if lines:
        yield "## Evaluation"
        yield ""
        yield "| metric | value | standard error | dataset |"
        yield "| --- | --- | --- | --- |"
        yield from lines


def _use(context: Context, row: Model) -> Iterator[str]:
    yield "## Use"
    yield ""
    yield "```python"
    yield "from openai import OpenAI"
    yield ""
    yield f'client = OpenAI(base_url="{context.settings.url}/v1", api_key="psn_…")'
    yield "answer = client.chat.completions.create("
    yield f'    model="{row.slug}", messages=[{{"role": "user", "content": "…"}}]'
    yield ")"
    yield "```"


def _files(row: Model) -> Iterator[str]:
    files = list(ModelFile.select().where(ModelFile.model == row).order_by(ModelFile.path))
    if files:
        yield "## Files"
        yield ""
        yield "| file | bytes | SHA-256 |"
        yield "| --- | --- | --- |"
        for file in files:
            yield f"| `{_cell(file.path)}` | {file.size:,} | `{file.sha256}` |"


def _line(text: str) -> str:
    return " ".join(str(text).split())


def _cell(value: Any) -> str:
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return _line(shown).replace("|", "\\|")
