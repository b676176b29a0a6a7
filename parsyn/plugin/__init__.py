"""The plugin API. Everything that a plugin author imports is here or in a module beside it."""

from parsyn.plugin.hookspecs import hookimpl

__all__ = ["hookimpl"]
