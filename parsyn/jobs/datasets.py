"""RQ entry points of datasets."""

from __future__ import annotations

from parsyn.jobs.process import job_context
from parsyn.services import validation


def validate(dataset_id: int, revision: int) -> None:
    """Check a dataset's file."""
    validation.validate(job_context(), dataset_id, revision)


def measure(dataset_id: int, revision: int) -> None:
    """Compute a dataset's statistics."""
    validation.measure(job_context(), dataset_id, revision)
