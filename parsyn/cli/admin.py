"""`parsyn admin`: accounts, from the hub's own machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from parsyn.cli.main import emit
from parsyn.cli.options import data_option, json_option, open_migrated, settings_from
from parsyn.errors import ErrorCode, ParsynError
from parsyn.services import accounts
from parsyn.wire.states import Role


@click.group("admin")
def admin_command() -> None:
    """Accounts, from the hub's own machine."""


@admin_command.command("create")
@click.option("--email", required=True, help="The address to log in with.")
@click.option("--name", help="The name that others see; default: the address.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option(
    "--role",
    type=click.Choice(["owner", "admin", "user"]),
    help="Default: owner for the first account, then admin.",
)
@data_option
@json_option
def create(
    email: str,
    name: str | None,
    password_stdin: bool,
    role: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Create an account. Works while the hub runs, too."""
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(password) < 8:
        raise ParsynError(ErrorCode.VALIDATION_FAILED, "A password has at least 8 characters.")
    if "@" not in email:
        raise ParsynError(ErrorCode.VALIDATION_FAILED, f"{email} is not an e-mail address.")
    context = open_migrated(settings_from(data))
    try:
        with context.database.transaction():
            chosen = Role(role) if role else Role.OWNER if accounts.needs_setup() else Role.ADMIN
            user = accounts.create_user(email, name or email, password, chosen)
            result = {"id": user.id, "email": user.email, "role": str(user.role)}
    finally:
        context.close()
    emit(result, as_json, f"{result['email']} can log in now (role: {result['role']}).")
