import os
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance

from tigranet.serving.application import create_application
from tigranet.serving.limits import ServerLimits
from tigranet.serving.openapi import openapi_schema


def test_every_route_is_described(predictors):
    routes = {route.path for route in create_application(predictors).app.routes}
    described = set(openapi_schema(list(predictors), ServerLimits())["paths"])
    assert described == routes - {"/", "/v2/", "/static", "/openapi.json"}


def test_references_lead_to_schemas():
    schema = openapi_schema(["digits"], ServerLimits())
    names = set(re.findall(r"#/components/schemas/(\w+)", str(schema)))
    assert names == set(schema["components"]["schemas"])


EXAMPLES = int(os.environ.get("TIGRANET_SCHEMA_EXAMPLES") or 10)
"""Number of random requests per endpoint and kind."""
OPERATIONS = [
    (path, method, mode)
    for path, item in openapi_schema(["grey", "color"], ServerLimits())["paths"].items()
    for method, operation in item.items()
    for mode in GenerationMode
    if mode == GenerationMode.POSITIVE or operation.get("parameters")  # without parameters nothing can be wrong
]


@pytest.mark.parametrize(("path", "method", "mode"), OPERATIONS)
def test_the_server_keeps_to_its_description(client, path, method, mode):
    """Random requests that follow the description, and others that do not, get answers as described."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app, headers={"Host": "localhost"})
    operation = schema[path][method.upper()]

    @given(operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def check(case):
        response = case.call_and_validate(headers={"Host": "localhost"}, excluded_checks=[positive_data_acceptance])
        assert response.status_code == 200 or method == "post" or mode == GenerationMode.NEGATIVE

    check()
