"""The child that fetches a model from the Hugging Face Hub: `python -m parsyn_worker.download`."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parsyn.plugin.task import TaskFailure
from parsyn.wire.states import FailureReason, TaskPhase
from parsyn_worker.channel import Channel
from parsyn_worker.events import DoneEvent, DownloadOrder, FailedEvent, PhaseEvent
from parsyn_worker.failures import classify
from parsyn_worker.hub_models import marker
from parsyn_worker.snapshot import describe

WANTED = (
    "*.json",
    "*.safetensors",
    "*.jinja",
    "tokenizer.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
    "LICENSE*",
    "LICENCE*",
    "NOTICE*",
    "README.md",
)
UNWANTED = ("*/*", "consolidated*", "*.fp16.safetensors", "*.bin.index.json")
"""Files below folders are other formats; `consolidated` is the same weights a second time."""

_HTTP_LIBRARIES = {"httpx", "httpx2", "httpcore", "requests", "urllib3"}


def main() -> int:
    channel = Channel()
    order = DownloadOrder.model_validate_json(next(channel.orders()))
    channel.on_orphaned()
    try:
        folder, facts = fetch(order, channel)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        channel.emit(FailedEvent(failure=classify(error)))
    else:
        channel.emit(DoneEvent(folder=folder, facts=facts))
    return 0


def fetch(order: DownloadOrder, channel: Channel) -> tuple[Path, dict[str, Any]]:
    """The snapshot's folder and its facts. Raises TaskFailure `model_unavailable`."""
    import huggingface_hub as hub

    with _in_words(order):
        info = hub.HfApi().model_info(order.hub_id, revision=order.revision, files_metadata=True)
    sizes = _sizes(info)
    if not any(name.endswith(".safetensors") for name in sizes):
        raise _unavailable(
            f"{order.hub_id} has no weights in safetensors, and Parsyn loads no others.",
            "Choose a copy of the model that has them.",
        )
    with _in_words(order), _watched(order.root, sum(sizes.values()), channel):
        path = Path(
            hub.snapshot_download(
                order.hub_id,
                revision=info.sha,
                cache_dir=order.root,
                allow_patterns=list(sizes),
            )
        )
    _mark(order, str(info.sha), path)
    facts = {**describe(path), "revision": info.sha, "license": _license(info)}
    return path, facts


def _sizes(info: Any) -> dict[str, int]:
    """The files that are wanted, with their sizes in bytes."""
    from huggingface_hub.utils import filter_repo_objects

    sizes = {item.rfilename: int(item.size or 0) for item in info.siblings or ()}
    chosen = filter_repo_objects(sizes, allow_patterns=list(WANTED), ignore_patterns=list(UNWANTED))
    return {name: sizes[name] for name in chosen}


def _license(info: Any) -> str | None:
    card = info.card_data.to_dict() if info.card_data else {}
    value = card.get("license_name") or card.get("license")
    return value if isinstance(value, str) else None


def _mark(order: DownloadOrder, commit: str, path: Path) -> None:
    """Only the commit's mark: a branch may move, and must be asked for again."""
    file = marker(order.root, order.hub_id, commit)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"hub_id": order.hub_id, "path": str(path)}), encoding="utf-8")


@contextmanager
def _watched(root: Path, total: int, channel: Channel) -> Iterator[None]:
    """Report how many bytes have come, twice a second, by the growth of the cache."""
    before, ended = _bytes_below(root), threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            done = min(total, _bytes_below(root) - before)
            channel.emit(PhaseEvent(phase=TaskPhase.DOWNLOADING, done=max(0, done), total=total))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _bytes_below(root: Path) -> int:
    size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and os.path.exists(path):
                size += os.path.getsize(path)
    return size


@contextmanager
def _in_words(order: DownloadOrder) -> Iterator[None]:
    """Turn what the library raises into the reason that a person can act on."""
    from huggingface_hub import errors

    where = os.environ.get("HF_ENDPOINT", "the Hugging Face Hub")
    name = f"{order.hub_id} at {order.revision}" if order.revision else order.hub_id
    try:
        yield
    except errors.GatedRepoError:
        raise _unavailable(
            f"{order.hub_id} is gated, and this agent has no access to it.",
            "Ask for access on its page, then set HF_TOKEN on the agent.",
        ) from None
    except errors.RepositoryNotFoundError:
        raise _unavailable(
            f"{where} has no public model {order.hub_id}.",
            "Check the spelling; for a private model set HF_TOKEN on the agent.",
        ) from None
    except errors.RevisionNotFoundError:
        raise _unavailable(f"{where} has no {name}.", "Check the revision.") from None
    except errors.HFValidationError:
        raise _unavailable(f"{order.hub_id} is no model id.", "Write owner/name.") from None
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise _no_network(where, order) from None
    except Exception as error:
        # Which HTTP library it uses has changed with its versions; it does not wrap their errors.
        if type(error).__module__.partition(".")[0] not in _HTTP_LIBRARIES:
            raise
        raise _no_network(where, order) from None


def _no_network(where: str, order: DownloadOrder) -> TaskFailure:
    return _unavailable(
        f"{where} could not be reached for {order.hub_id}.",
        "Check this agent's network and proxy, or set HF_ENDPOINT to a mirror.",
    )


def _unavailable(message: str, advice: str) -> TaskFailure:
    return TaskFailure(FailureReason.MODEL_UNAVAILABLE, message, advice=advice)


if __name__ == "__main__":
    sys.exit(main())
