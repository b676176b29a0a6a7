"""The child that runs one task: `python -m parsyn_worker.task`, order in, events out."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import traceback

from parsyn.errors import ParsynError
from parsyn.plugin.manager import Plugins
from parsyn.plugin.task import TaskCancelled, TaskOutcome
from parsyn.plugin.trainer import TrainInputs
from parsyn_worker.channel import Channel
from parsyn_worker.context import ChildContext
from parsyn_worker.events import (
    CancelledEvent,
    DoneEvent,
    FailedEvent,
    TaskOrder,
    TerminalEvent,
)
from parsyn_worker.failures import classify
from parsyn_worker.vram import keep_to_cap


def main() -> int:
    # It warns of a kernel package that only 4-bit inference on a CPU would want.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    channel = Channel()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    order = TaskOrder.model_validate_json(next(channel.orders()))
    channel.on_orphaned()
    keep_to_cap(order.device)
    channel.emit(outcome(order, ChildContext(channel, order, stop), stop))
    return 0


def outcome(order: TaskOrder, context: ChildContext, stop: threading.Event) -> TerminalEvent:
    """Run the order's plugin to its end and say how it ended."""
    try:
        done = run(order, context)
    except TaskCancelled:
        return CancelledEvent()
    except Exception as error:
        if stop.is_set():
            # Whatever breaks after the request to stop is the stopping.
            return CancelledEvent()
        if not isinstance(error, ParsynError):
            # What a plugin says in a sentence needs no traceback; anything else is a fault.
            traceback.print_exc(file=sys.stderr)
        return FailedEvent(failure=classify(error))
    return DoneEvent(folder=done.folder, facts=done.facts)


def run(order: TaskOrder, context: ChildContext) -> TaskOutcome:
    plugins = Plugins()
    if order.kind == "train":
        assert order.dataset is not None
        trainer = plugins.trainer(order.plugin)
        inputs = TrainInputs(order.model, order.dataset, order.validation, order.resume)
        return trainer.train(trainer.parse(order.params), inputs, context)
    if order.kind == "evaluate":
        assert order.dataset is not None
        evaluator = plugins.evaluator(order.plugin)
        params = evaluator.parse(order.params)
        return evaluator.evaluate(params, order.model, order.dataset, context)
    exporter = plugins.exporter(order.plugin)
    return exporter.export(exporter.parse(order.params), order.model, context)


if __name__ == "__main__":
    sys.exit(main())
