"""What a task needs to find its bytes: files, models, datasets. No paths, no URLs, only keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from parsyn.wire.states import Compression, FileFormat, SchemaKind


class Frozen(BaseModel):
    """Base of everything that travels: immutable, and tolerant of newer peers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FileRef(Frozen):
    """One stored file: `path` inside its folder, `key` in the storage, size in bytes."""

    path: str
    key: str
    size: int = Field(ge=0)
    sha256: str


class ModelRef(Frozen):
    """A model as an agent gets it: its own files, or a Hub id, and for an adapter its base.

    Exactly one of `files` (whole weights or an adapter in our storage) and `hub_id` is set.
    `base` is set where `files` hold a PEFT adapter, which is applied to that base.
    """

    id: int
    name: str
    slug: str
    architecture: str | None = None
    context_length: int | None = None
    files: tuple[FileRef, ...] = ()
    hub_id: str | None = None
    revision: str | None = None
    base: ModelRef | None = None


class DatasetRef(Frozen):
    """A dataset as an agent gets it: one file as it was uploaded, and how to read it."""

    id: int
    name: str
    file: FileRef
    file_format: FileFormat
    compression: Compression = Compression.NONE
    schema_kind: SchemaKind
    mapping: dict[str, str] | None = None
    row_count: int | None = None


class CheckpointRef(Frozen):
    """A verified checkpoint from which a task resumes."""

    step: int
    attempt: int
    files: tuple[FileRef, ...]
