"""langchain-tests 1.1.x: RetrieversIntegrationTests, 4 tests + 1 guard.

The suite reads plain properties, not fixtures, so the data is prepared once per class.
"""

import pytest
import target
from langchain_tests.integration_tests import RetrieversIntegrationTests


class TestRetrieverStandard(RetrieversIntegrationTests):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _case(cls, tmp_path_factory):
        with target.retriever(tmp_path_factory.mktemp("retr")) as case:
            cls.case = case
            yield

    @property
    def retriever_constructor(self):
        return self.case.cls

    @property
    def retriever_constructor_params(self):
        return dict(self.case.params)

    @property
    def retriever_query_example(self):
        return self.case.query

    @property
    def num_results_arg_name(self):
        return self.case.k_arg
