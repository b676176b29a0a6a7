"""Contract tests for plugin authors: subclass one, give it a fixture, and pytest runs the rest.

class TestMyStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        return MyStorage(MyStorage.Settings(), tmp_path)
"""

from __future__ import annotations

from parsyn.plugin.testing_storage import StorageContract

__all__ = ["StorageContract"]
