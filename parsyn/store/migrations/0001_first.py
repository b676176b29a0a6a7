"""The first schema: a frozen copy of the tables as they were then."""

from typing import Any

import peewee


def up(migrator: Any, db: Any) -> None:
    class User(peewee.Model):
        created_at = peewee.DoubleField()
        email = peewee.CharField(unique=True)
        name = peewee.CharField()
        password_hash = peewee.CharField()
        role = peewee.CharField()
        language = peewee.CharField(null=True)
        theme = peewee.CharField()
        disabled = peewee.BooleanField()
        last_login_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "users"
            legacy_table_names = False

    db.create_tables([User])

    class ApiKey(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        name = peewee.CharField()
        prefix = peewee.CharField()
        key_hash = peewee.CharField(unique=True)
        scopes = peewee.TextField()
        expires_at = peewee.DoubleField(null=True)
        last_used_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "api_keys"
            legacy_table_names = False

    db.create_tables([ApiKey])

    class Project(peewee.Model):
        created_at = peewee.DoubleField()
        name = peewee.CharField()
        owner = peewee.ForeignKeyField(
            User, unique=True, null=True, on_delete="CASCADE", backref="+"
        )

        class Meta:
            database = db
            table_name = "projects"
            legacy_table_names = False

    db.create_tables([Project])

    class Model(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        name = peewee.CharField()
        slug = peewee.CharField()
        state = peewee.CharField()
        source = peewee.CharField()
        hub_id = peewee.CharField(null=True)
        revision = peewee.CharField(null=True)
        base_model = peewee.ForeignKeyField("self", null=True, on_delete="RESTRICT", backref="+")
        training_job_id = peewee.IntegerField(index=True, null=True)
        job_id = peewee.IntegerField(null=True)
        version = peewee.IntegerField()
        architecture = peewee.CharField(null=True)
        parameters = peewee.BigIntegerField(null=True)
        context_length = peewee.IntegerField(null=True)
        formats = peewee.TextField()
        chat_template = peewee.TextField(null=True)
        license = peewee.CharField(null=True)
        size = peewee.BigIntegerField()
        failure = peewee.TextField(null=True)

        class Meta:
            database = db
            table_name = "models"
            legacy_table_names = False
            indexes = ((("project", "slug"), True),)

    db.create_tables([Model])

    class Dataset(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        name = peewee.CharField()
        filename = peewee.CharField()
        key = peewee.CharField()
        size = peewee.BigIntegerField()
        sha256 = peewee.CharField()
        status = peewee.CharField()
        requested_format = peewee.CharField()
        file_format = peewee.CharField(null=True)
        compression = peewee.CharField()
        schema_kind = peewee.CharField(null=True)
        needs_mapping = peewee.BooleanField()
        mapping = peewee.TextField(null=True)
        candidates = peewee.TextField()
        strict = peewee.BooleanField()
        columns = peewee.TextField()
        row_count = peewee.IntegerField(null=True)
        bad_row_count = peewee.IntegerField(null=True)
        problems = peewee.TextField()
        problems_count = peewee.IntegerField()
        summary = peewee.TextField(null=True)
        parent = peewee.ForeignKeyField("self", null=True, on_delete="SET NULL", backref="+")
        operation = peewee.CharField(null=True)
        stats_status = peewee.CharField()
        stats = peewee.TextField(null=True)
        revision = peewee.IntegerField()
        lease_until = peewee.DoubleField(0.0)
        tries = peewee.IntegerField()

        class Meta:
            database = db
            table_name = "datasets"
            legacy_table_names = False

    db.create_tables([Dataset])

    class Job(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        kind = peewee.CharField()
        name = peewee.CharField()
        status = peewee.CharField()
        model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL", backref="+")
        dataset = peewee.ForeignKeyField(Dataset, null=True, on_delete="SET NULL", backref="+")
        validation_dataset = peewee.ForeignKeyField(
            Dataset, null=True, on_delete="SET NULL", backref="+"
        )
        request = peewee.TextField()
        params = peewee.TextField()
        progress = peewee.TextField()
        metrics_latest = peewee.TextField()
        placement = peewee.TextField()
        waiting = peewee.TextField(null=True)
        failure = peewee.TextField(null=True)
        result = peewee.TextField(null=True)
        result_model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL", backref="+")
        started_at = peewee.DoubleField(null=True)
        finished_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "jobs"
            legacy_table_names = False
            indexes = ((("kind", "status"), False),)

    db.create_tables([Job])

    class MasterKey(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        name = peewee.CharField()
        description = peewee.TextField(null=True)
        prefix = peewee.CharField()
        key_hash = peewee.CharField(unique=True)
        auto_name_prefix = peewee.CharField(null=True)
        default_worker_type = peewee.CharField()
        max_enrollments = peewee.IntegerField(null=True)
        enrollments = peewee.IntegerField()
        expires_at = peewee.DoubleField(null=True)
        revoked_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "master_keys"
            legacy_table_names = False

    db.create_tables([MasterKey])

    class Worker(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        name = peewee.CharField()
        kind = peewee.CharField()
        worker_type = peewee.CharField()
        status = peewee.CharField()
        key_hash = peewee.CharField(unique=True)
        master_key = peewee.ForeignKeyField(MasterKey, null=True, on_delete="SET NULL", backref="+")
        device = peewee.CharField(null=True)
        hardware = peewee.TextField(null=True)
        benchmark = peewee.TextField(null=True)
        metrics = peewee.TextField(null=True)
        max_batch_size = peewee.IntegerField()
        trust_remote_code = peewee.BooleanField()
        version = peewee.CharField(null=True)
        connection = peewee.CharField(null=True)
        last_seen_at = peewee.DoubleField(null=True)
        paused = peewee.BooleanField()
        draining = peewee.BooleanField()
        deleted_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "workers"
            legacy_table_names = False
            indexes = ((("project", "name"), False),)

    db.create_tables([Worker])

    class Artifact(peewee.Model):
        created_at = peewee.DoubleField()
        job = peewee.ForeignKeyField(Job, on_delete="CASCADE", backref="+")
        kind = peewee.CharField()
        round = peewee.IntegerField(null=True)
        worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL", backref="+")
        step = peewee.IntegerField(null=True)
        path = peewee.CharField()
        key = peewee.CharField()
        size = peewee.BigIntegerField()
        sha256 = peewee.CharField()

        class Meta:
            database = db
            table_name = "artifacts"
            legacy_table_names = False
            indexes = ((("job", "kind", "path"), True),)

    db.create_tables([Artifact])

    class Task(peewee.Model):
        created_at = peewee.DoubleField()
        job = peewee.ForeignKeyField(Job, on_delete="CASCADE", backref="+")
        kind = peewee.CharField()
        status = peewee.CharField(index=True)
        attempt = peewee.IntegerField()
        first_attempt = peewee.IntegerField()
        worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL", backref="+")
        spec = peewee.TextField()
        resume = peewee.TextField(null=True)
        applied_seq = peewee.IntegerField()
        offered_at = peewee.DoubleField(null=True)
        started_at = peewee.DoubleField(null=True)
        unreachable_since = peewee.DoubleField(null=True)
        refused_by = peewee.TextField()
        cancel_requested_at = peewee.DoubleField(null=True)
        manifest_hash = peewee.CharField(null=True)
        finished_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "tasks"
            legacy_table_names = False

    db.create_tables([Task])

    class Checkpoint(peewee.Model):
        created_at = peewee.DoubleField()
        job = peewee.ForeignKeyField(Job, on_delete="CASCADE", backref="+")
        task = peewee.ForeignKeyField(Task, on_delete="CASCADE", backref="+")
        attempt = peewee.IntegerField()
        step = peewee.IntegerField()
        epoch = peewee.DoubleField(null=True)
        metrics = peewee.TextField()
        best = peewee.BooleanField()
        files = peewee.TextField()
        size = peewee.BigIntegerField()

        class Meta:
            database = db
            table_name = "checkpoints"
            legacy_table_names = False
            indexes = ((("task", "attempt", "step"), True),)

    db.create_tables([Checkpoint])

    class Conversation(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL", backref="+")
        title = peewee.CharField()
        system_prompt = peewee.TextField(null=True)
        params = peewee.TextField()
        updated_at = peewee.DoubleField()

        class Meta:
            database = db
            table_name = "conversations"
            legacy_table_names = False

    db.create_tables([Conversation])

    class IdempotencyKey(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        key = peewee.CharField()
        request_hash = peewee.CharField()
        status = peewee.IntegerField(null=True)
        body = peewee.TextField(null=True)

        class Meta:
            database = db
            table_name = "idempotency_keys"
            legacy_table_names = False
            indexes = ((("user", "key"), True),)

    db.create_tables([IdempotencyKey])

    class JobEvent(peewee.Model):
        created_at = peewee.DoubleField()
        job = peewee.ForeignKeyField(Job, on_delete="CASCADE", backref="+")
        attempt = peewee.IntegerField()
        status = peewee.CharField()
        cause = peewee.TextField()
        worker = peewee.ForeignKeyField(Worker, null=True, on_delete="SET NULL", backref="+")

        class Meta:
            database = db
            table_name = "job_events"
            legacy_table_names = False

    db.create_tables([JobEvent])

    class LoginFailure(peewee.Model):
        created_at = peewee.DoubleField()
        email = peewee.CharField(index=True)

        class Meta:
            database = db
            table_name = "login_failures"
            legacy_table_names = False

    db.create_tables([LoginFailure])

    class Message(peewee.Model):
        created_at = peewee.DoubleField()
        conversation = peewee.ForeignKeyField(Conversation, on_delete="CASCADE", backref="+")
        role = peewee.CharField()
        content = peewee.TextField()
        model = peewee.ForeignKeyField(Model, null=True, on_delete="SET NULL", backref="+")
        worker_name = peewee.CharField(null=True)
        finish_reason = peewee.CharField(null=True)
        usage = peewee.TextField(null=True)
        timings = peewee.TextField(null=True)

        class Meta:
            database = db
            table_name = "messages"
            legacy_table_names = False

    db.create_tables([Message])

    class ModelFile(peewee.Model):
        created_at = peewee.DoubleField()
        model = peewee.ForeignKeyField(Model, on_delete="CASCADE", backref="+")
        path = peewee.CharField()
        key = peewee.CharField()
        size = peewee.BigIntegerField()
        sha256 = peewee.CharField()

        class Meta:
            database = db
            table_name = "model_files"
            legacy_table_names = False
            indexes = ((("model", "path"), True),)

    db.create_tables([ModelFile])

    class Outbox(peewee.Model):
        created_at = peewee.DoubleField()
        kind = peewee.CharField()
        payload = peewee.TextField()
        attempts = peewee.IntegerField()
        next_at = peewee.DoubleField(index=True)
        done_at = peewee.DoubleField(index=True, null=True)

        class Meta:
            database = db
            table_name = "outbox"
            legacy_table_names = False

    db.create_tables([Outbox])

    class ProjectMember(peewee.Model):
        created_at = peewee.DoubleField()
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        role = peewee.CharField()

        class Meta:
            database = db
            table_name = "project_members"
            legacy_table_names = False
            indexes = ((("project", "user"), True),)

    db.create_tables([ProjectMember])

    class Session(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        token_hash = peewee.CharField(unique=True)
        csrf_token = peewee.CharField()
        user_agent = peewee.CharField()
        ip = peewee.CharField()
        last_used_at = peewee.DoubleField()
        expires_at = peewee.DoubleField()

        class Meta:
            database = db
            table_name = "sessions"
            legacy_table_names = False

    db.create_tables([Session])

    class SetupToken(peewee.Model):
        created_at = peewee.DoubleField()
        token_hash = peewee.CharField(unique=True)
        expires_at = peewee.DoubleField()
        used_at = peewee.DoubleField(null=True)

        class Meta:
            database = db
            table_name = "setup_tokens"
            legacy_table_names = False

    db.create_tables([SetupToken])

    class StoredObject(peewee.Model):
        created_at = peewee.DoubleField()
        task = peewee.ForeignKeyField(Task, on_delete="CASCADE", backref="+")
        attempt = peewee.IntegerField()
        path = peewee.CharField()
        key = peewee.CharField(unique=True)
        size = peewee.BigIntegerField()
        sha256 = peewee.CharField()

        class Meta:
            database = db
            table_name = "stored_objects"
            legacy_table_names = False

    db.create_tables([StoredObject])

    class Upload(peewee.Model):
        created_at = peewee.DoubleField()
        user = peewee.ForeignKeyField(User, on_delete="CASCADE", backref="+")
        project = peewee.ForeignKeyField(Project, on_delete="CASCADE", backref="+")
        filename = peewee.CharField()
        size = peewee.BigIntegerField()
        purpose = peewee.CharField()
        part_size = peewee.BigIntegerField()
        sha256 = peewee.CharField(null=True)
        key = peewee.CharField()
        status = peewee.CharField()
        expires_at = peewee.DoubleField(index=True)

        class Meta:
            database = db
            table_name = "uploads"
            legacy_table_names = False

    db.create_tables([Upload])

    class UploadPart(peewee.Model):
        created_at = peewee.DoubleField()
        upload = peewee.ForeignKeyField(Upload, on_delete="CASCADE", backref="+")
        n = peewee.IntegerField()
        size = peewee.BigIntegerField()
        sha256 = peewee.CharField()
        key = peewee.CharField()

        class Meta:
            database = db
            table_name = "upload_parts"
            legacy_table_names = False
            indexes = ((("upload", "n"), True),)

    db.create_tables([UploadPart])
