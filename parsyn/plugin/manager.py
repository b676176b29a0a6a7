"""Find, block and load plugins; hand out what they registered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from parsyn.errors import ErrorCode, ParsynError
from parsyn.plugin import hookspecs

if TYPE_CHECKING:
    from parsyn.plugin.evaluator import Evaluator
    from parsyn.plugin.exporter import Exporter
    from parsyn.plugin.storage import Storage
    from parsyn.plugin.trainer import Trainer

GROUP = "parsyn"
T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PluginInfo:
    """One line of `parsyn plugins`. `state` is enabled, disabled or failed."""

    name: str
    kinds: tuple[str, ...]
    version: str
    distribution: str
    state: str
    error: str | None = None


class Plugins:
    """The plugins of this process. A disabled one is never imported."""

    def __init__(self, disabled: Iterable[str] = ()) -> None:
        self.disabled = frozenset(disabled)
        self.failed: dict[str, str] = {}
        self.pluggy = pluggy.PluginManager("parsyn")
        self.pluggy.add_hookspecs(hookspecs)
        self._load()

    def _load(self) -> None:
        for name in self.disabled:
            self.pluggy.set_blocked(name)
        for entry in entry_points(group=GROUP):
            if entry.name in self.disabled or self.pluggy.has_plugin(entry.name):
                continue
            try:
                self.pluggy.register(entry.load(), name=entry.name)
                self.pluggy.check_pending()
            except Exception as error:
                # A stranger's broken plugin must not keep the appliance from starting.
                log.exception("plugin %s failed to load", entry.name)
                self.failed[entry.name] = f"{type(error).__name__}: {error}"
                if self.pluggy.has_plugin(entry.name):
                    self.pluggy.unregister(name=entry.name)

    @cached_property
    def storages(self) -> dict[str, type[Storage]]:
        return _by_name(self.pluggy.hook.register_storages)

    @cached_property
    def trainers(self) -> dict[str, Trainer[Any]]:
        return {name: cls() for name, cls in _by_name(self.pluggy.hook.register_trainers).items()}

    @cached_property
    def exporters(self) -> dict[str, Exporter[Any]]:
        return {name: cls() for name, cls in _by_name(self.pluggy.hook.register_exporters).items()}

    @cached_property
    def evaluators(self) -> dict[str, Evaluator[Any]]:
        return {name: cls() for name, cls in _by_name(self.pluggy.hook.register_evaluators).items()}

    def trainer(self, name: str) -> Trainer[Any]:
        return _find(self.trainers, name, "trainer")

    def exporter(self, name: str) -> Exporter[Any]:
        return _find(self.exporters, name, "exporter")

    def evaluator(self, name: str) -> Evaluator[Any]:
        return _find(self.evaluators, name, "evaluator")

    def infos(self) -> list[PluginInfo]:
        """Every installed plugin, enabled or not, in name order."""
        return [self._info(entry) for entry in sorted(entry_points(group=GROUP), key=_entry_name)]

    def _info(self, entry: Any) -> PluginInfo:
        state = "enabled"
        if entry.name in self.disabled:
            state = "disabled"
        elif entry.name in self.failed:
            state = "failed"
        plugin = self.pluggy.get_plugin(entry.name)
        kinds = (
            [caller.name for caller in self.pluggy.get_hookcallers(plugin) or ()] if plugin else []
        )
        dist = entry.dist
        return PluginInfo(
            name=entry.name,
            kinds=tuple(sorted(kind.removeprefix("register_") for kind in kinds)),
            version=dist.version if dist else "",
            distribution=dist.name if dist else "",
            state=state,
            error=self.failed.get(entry.name),
        )


def _entry_name(entry: Any) -> str:
    return str(entry.name)


def _by_name(hook: Callable[[], list[Iterable[Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for classes in hook():
        for cls in classes:
            if cls.name in found:
                log.warning("two plugins offer %s; %s wins", cls.name, found[cls.name].__module__)
                continue
            found[cls.name] = cls
    return found


def _find(known: dict[str, T], name: str, kind: str) -> T:
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise ParsynError(
            ErrorCode.VALIDATION_FAILED, f"There is no {kind} `{name}`. Installed: {names}."
        )
    return known[name]
