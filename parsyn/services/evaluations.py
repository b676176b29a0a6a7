"""Evaluations: measure a model on a dataset."""

from __future__ import annotations

from typing import Any

from parsyn.services import ingredients, jobs, tasks
from parsyn.services.context import Context
from parsyn.services.datasets import dataset_ref
from parsyn.services.models import model_ref
from parsyn.services.principal import Principal, require_role
from parsyn.store.jobs import Job
from parsyn.wire.api.audit import AuditAction
from parsyn.wire.api.models import EvaluationIn
from parsyn.wire.states import JobKind, ProjectRole
from parsyn.wire.tasks import EvaluateSpec


def create(context: Context, who: Principal, body: EvaluationIn) -> dict[str, Any]:
    """A queued evaluation in the model's project. Raises 422 at the field that does not fit."""
    evaluator = ingredients.plugin(context.plugins.evaluators, body.evaluator, "evaluator")
    model = ingredients.model(who, body.model_id)
    require_role(who, model.project_id, ProjectRole.EDITOR, loc="model_id")
    dataset = ingredients.dataset(who, body.dataset_id, evaluator.accepts)
    params = evaluator.parse(body.params).model_dump(mode="json")
    job = Job.create(
        user=who.user_id,
        project=model.project_id,
        kind=JobKind.EVALUATION,
        name=f"{evaluator.title} of {model.name}"[:200],
        model=model,
        dataset=dataset,
        request={"evaluator": body.evaluator},
        params=params,
    )
    jobs.record(who, AuditAction.JOB_STARTED, job)
    spec = EvaluateSpec(
        evaluator=body.evaluator,
        params=params,
        model=model_ref(model),
        dataset=dataset_ref(dataset),
    )
    return tasks.queue(context, job, spec, "Created.")
