"""Contract tests for plugin authors: subclass one, give it its fixtures, and pytest runs the rest.

class TestMyStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        return MyStorage(MyStorage.Settings(), tmp_path)
"""

from __future__ import annotations

from parsyn.plugin.testing_runs import EvaluatorContract, ExporterContract, TrainerContract
from parsyn.plugin.testing_storage import StorageContract
from parsyn.plugin.testing_task import RecordingContext

__all__ = [
    "EvaluatorContract",
    "ExporterContract",
    "RecordingContext",
    "StorageContract",
    "TrainerContract",
]
