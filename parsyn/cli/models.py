"""`parsyn models`: models, from the hub's own machine."""

from __future__ import annotations

from pathlib import Path

import click

from parsyn.cli.main import emit
from parsyn.cli.options import data_option, json_option, open_migrated, settings_from
from parsyn.errors import ErrorCode, ParsynError
from parsyn.services import imports
from parsyn.store.users import User
from parsyn.wire.states import Role


@click.group("models")
def models_command() -> None:
    """Models, from the hub's own machine."""


@models_command.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="What the model shall be called.")
@click.option("--user", "email", help="Whose it is, by e-mail; default: the owner.")
@data_option
@json_option
def import_folder(
    folder: Path, name: str, email: str | None, data: Path | None, as_json: bool
) -> None:
    """Bring a Hugging Face folder (config.json, tokenizer.json, safetensors) into the hub."""
    context = open_migrated(settings_from(data))
    try:
        with context.database.connection():
            user = _user(email)
            model = imports.import_folder(context, user, folder, name)
            result = {"id": model.id, "name": model.name, "slug": model.slug, "size": model.size}
    finally:
        context.close()
    emit(result, as_json, f"{result['name']} is ready as `{result['slug']}` (id {result['id']}).")


def _user(email: str | None) -> User:
    query = User.email == email.lower() if email else User.role == Role.OWNER
    found: User | None = User.get_or_none(query)
    if found is None:
        raise ParsynError(
            ErrorCode.NOT_FOUND,
            f"There is no account {email}."
            if email
            else "There is no account yet: run "
            "`parsyn admin create --email E --password-stdin` first.",
        )
    return found
