"""langchain-tests 1.1.x: VectorStoreIntegrationTests, 24 tests (12 sync + 12 async) + 1 guard."""

import pytest
import target
from langchain_tests.integration_tests import VectorStoreIntegrationTests


class TestVectorStoreStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        with target.vectorstore(self.get_embeddings(), tmp_path) as vs:
            yield vs
