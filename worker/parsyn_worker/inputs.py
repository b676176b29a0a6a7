"""From references to folders: what a task or chat reads, brought to this machine's disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin.task import LocalDataset, LocalModel
from parsyn.wire.refs import CheckpointRef, DatasetRef, FileRef, ModelRef
from parsyn.wire.tasks import EvaluateSpec, ExportSpec, TrainSpec
from parsyn_worker.cache import Cache, safe_path
from parsyn_worker.hub_models import HubModels
from parsyn_worker.transfer import Progress, Scope, Transfer

WorkSpec = TrainSpec | EvaluateSpec | ExportSpec


@dataclass(frozen=True)
class LocalInputs:
    """Everything that a task's child reads."""

    model: LocalModel
    dataset: LocalDataset | None = None
    validation: LocalDataset | None = None
    resume: Path | None = None


class Inputs:
    """Fetches into the cache, then links into folders."""

    def __init__(self, transfer: Transfer, cache: Cache, hub_models: HubModels) -> None:
        self.transfer, self.cache, self.hub_models = transfer, cache, hub_models

    async def for_task(
        self, spec: WorkSpec, scope: Scope, folder: Path, progress: Progress
    ) -> LocalInputs:
        """Everything below `folder`, so that no eviction takes it away while the task runs."""
        await self.transfer.fetch_all(list(_files(spec)), scope, progress)
        return LocalInputs(
            model=await self._model(spec.model, progress, folder),
            dataset=await self._dataset(getattr(spec, "dataset", None), folder, "dataset"),
            validation=await self._dataset(getattr(spec, "validation", None), folder, "validation"),
            resume=await self._checkpoint(getattr(spec, "resume", None), folder),
        )

    async def for_chat(self, model: ModelRef, scope: Scope, progress: Progress) -> LocalModel:
        """The model's folders in the cache; at once when they are there."""
        await self.transfer.fetch_all(
            [
                file
                for part in (model, model.base)
                if part and part.files and not self.cache.assembled(part.files)
                for file in part.files
            ],
            scope,
            progress,
        )
        return await self._model(model, progress, None)

    async def _model(self, ref: ModelRef, progress: Progress, folder: Path | None) -> LocalModel:
        base = ref.base or ref
        if ref.base and ref.base.base:
            raise ParsynError(
                ErrorCode.UNSUPPORTED,
                f"{ref.name} is an adapter of an adapter. Merge {ref.base.name} first.",
            )
        path = await self._weights(base, progress, folder, "model")
        adapter = await self._weights(ref, progress, folder, "adapter") if ref.base else None
        return LocalModel(
            path=path,
            adapter=adapter,
            name=ref.name,
            architecture=base.architecture or ref.architecture,
            context_length=ref.context_length or base.context_length,
        )

    async def _weights(
        self, ref: ModelRef, progress: Progress, folder: Path | None, name: str
    ) -> Path:
        if ref.hub_id:
            return (await self.hub_models.model(ref.hub_id, ref.revision, progress)).path
        if not ref.files:
            raise ParsynError(ErrorCode.MODEL_UNAVAILABLE, f"{ref.name} has no files.")
        return await self._folder(ref.files, folder / name if folder else None)

    async def _folder(self, files: tuple[FileRef, ...], target: Path | None) -> Path:
        if target is None and (found := self.cache.assembled(files)):
            return found
        return await asyncio.to_thread(self.cache.assemble, files, target)

    async def _dataset(
        self, ref: DatasetRef | None, folder: Path, name: str
    ) -> LocalDataset | None:
        if ref is None:
            return None
        path = await self._folder((ref.file,), folder / name) / safe_path(ref.file.path)
        return LocalDataset(
            path=path,
            file_format=ref.file_format,
            schema_kind=ref.schema_kind,
            compression=ref.compression,
            mapping=ref.mapping,
            name=ref.name,
        )

    async def _checkpoint(self, ref: CheckpointRef | None, folder: Path) -> Path | None:
        if ref is None:
            return None
        return await self._folder(ref.files, folder / f"resume-{ref.step}")


def _files(spec: WorkSpec) -> Iterator[FileRef]:
    yield from spec.model.files
    if spec.model.base:
        yield from spec.model.base.files
    if isinstance(spec, TrainSpec | EvaluateSpec):
        yield spec.dataset.file
    if isinstance(spec, TrainSpec):
        if spec.validation:
            yield spec.validation.file
        if spec.resume:
            yield from spec.resume.files
