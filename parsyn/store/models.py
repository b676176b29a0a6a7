"""Models and their files: imported ones, ones on the Hugging Face Hub, fine-tunes."""

from __future__ import annotations

import peewee

from parsyn.store.base import Json, Table
from parsyn.store.projects import Owned
from parsyn.wire.states import ModelState


class Model(Owned):
    """`formats`: `hf` (whole weights), `adapter` (PEFT, applied to `base_model`), `gguf`.

    `job_id` is the job that makes or fetches it; `training_job_id` the training it came from.
    """

    name = peewee.CharField()
    slug = peewee.CharField()
    state = peewee.CharField(default=ModelState.REGISTERED)
    source = peewee.CharField()
    hub_id = peewee.CharField(null=True)
    revision = peewee.CharField(null=True)
    base_model = peewee.ForeignKeyField("self", null=True, on_delete="RESTRICT")
    training_job_id = peewee.IntegerField(null=True, index=True)
    job_id = peewee.IntegerField(null=True)
    version = peewee.IntegerField(default=1)
    architecture = peewee.CharField(null=True)
    parameters = peewee.BigIntegerField(null=True)
    context_length = peewee.IntegerField(null=True)
    formats = Json(default=list)
    chat_template = peewee.TextField(null=True)
    license = peewee.CharField(null=True)
    size = peewee.BigIntegerField(default=0)
    failure = Json(null=True)

    class Meta:
        table_name = "models"
        indexes = ((("project", "slug"), True),)


class ModelFile(Table):
    model = peewee.ForeignKeyField(Model, backref="files", on_delete="CASCADE")
    path = peewee.CharField()
    key = peewee.CharField()
    size = peewee.BigIntegerField()
    sha256 = peewee.CharField()

    class Meta:
        table_name = "model_files"
        indexes = ((("model", "path"), True),)


TABLES = (Model, ModelFile)
