"""The OpenAPI description of a server's endpoints."""

from collections.abc import Sequence
from typing import Any

import tigranet
from tigranet.serving.inference_protocol import HEADER_LENGTH, INPUT, OUTPUTS
from tigranet.serving.limits import ServerLimits
from tigranet.serving.tensor_data import BYTES, DATATYPES, MAX_AXES

REFUSALS = {
    400: "The request does not follow the protocol, or an image cannot be used.",
    401: "The bearer token is missing or wrong.",
    404: "There is no such model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    421: "The request names another host.",
    422: "The network has no finite answer.",
    503: "Too many requests are in work, or the models are not ready.",
    504: "The answer was not computed in time.",
}
"""Errors, by status."""
PREDICTION: dict[str, Any] = {
    "model": {"type": "string"},
    "label": {"type": "string"},
    "probability": {"type": "number"},
    "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
    "unknown": {"type": "boolean", "description": "Whether the label is 'unknown'."},
}
"""Properties of the answer for one image file."""


def openapi_schema(models: Sequence[str], limits: ServerLimits) -> dict[str, Any]:
    """Describe all endpoints of a server.

    Args:
        models: Names of the models.
        limits: Limits of the server.

    Returns:
        A document in OpenAPI 3.1, as a JSON object.
    """
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string", "enum": list(models)}}
    model_parameter = {
        "name": "model",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "enum": list(models)},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tigranet",
            "version": tigranet.__version__,
            "description": "Image classification that does not depend on the rotation of the image, by the Open "
            "Inference Protocol, version 2.",
        },
        "paths": {
            "/v2/health/live": _get("Whether the server runs.", _object(live={"type": "boolean"}), 421),
            "/v2/health/ready": _get(
                "Whether all models answer.", _object(ready={"type": "boolean"}), 421, not_ready=True
            ),
            "/v2": _get(
                "Describe the server.",
                _object(name={"type": "string"}, version={"type": "string"}, extensions=_list({"type": "string"})),
                401,
                421,
            ),
            "/v2/models": _get("List the models.", _object(models=_list({"type": "string"})), 401, 421),
            "/v2/models/{model}": _get(
                "Describe the inputs and outputs of a model.",
                _object(
                    name={"type": "string"},
                    platform={"type": "string"},
                    inputs=_list(_reference("TensorMetadata")),
                    outputs=_list(_reference("TensorMetadata")),
                ),
                *(401, 404, 421),
                parameters=[name],
            ),
            "/v2/models/{model}/ready": _get(
                "Whether a model answers.",
                _object(name={"type": "string"}, ready={"type": "boolean"}),
                *(401, 404, 421),
                parameters=[name],
                not_ready=True,
            ),
            "/v2/models/{model}/infer": {"post": _infer(name, limits)},
            "/models/{model}/classes": _get(
                "List the classes of a model.",
                _object(
                    model={"type": "string"},
                    classes=_list({"type": "string"}),
                    image_size={"type": "integer"},
                    detects_unknown={"type": "boolean"},
                ),
                *(401, 404, 421),
                parameters=[name],
            ),
            "/predict": {"post": _predict(model_parameter)},
            "/explain": {"post": _explain(model_parameter)},
            "/preview": {"post": _preview()},
            "/metrics": {
                "get": {
                    "summary": "Metrics for Prometheus.",
                    "responses": {"200": {"description": "Text.", "content": {"text/plain": {}}}, **_errors(401, 421)},
                }
            },
        },
        "components": {
            "schemas": {
                "Error": _object(error={"type": "string"}),
                "TensorMetadata": _object(
                    name={"type": "string"}, datatype={"type": "string"}, shape=_list({"type": "integer"})
                ),
                "Parameters": {"type": "object"},
                "InferenceRequest": _inference_request(limits),
                "InferenceResponse": _inference_response(),
                "Prediction": _object(**PREDICTION),
                "Explanation": _object(
                    **PREDICTION,
                    explained_class={"type": "string"},
                    score={"type": "number", "description": "The logit of the class minus the mean of all logits."},
                    constant={"type": "number", "description": "The score minus the sum of the evidence."},
                    evidence=_list(_list({"type": "number"}), description="One number for each pixel, row by row."),
                ),
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _object(required: Sequence[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties if required is None else required), "properties": properties}


def _list(items: dict[str, Any], **limits: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _errors(*statuses: int) -> dict[str, Any]:
    return {
        str(status): {"description": REFUSALS[status], "content": _content(_reference("Error"))} for status in statuses
    }


def _get(
    summary: str, schema: dict[str, Any], *errors: int, parameters: Sequence[Any] = (), not_ready: bool = False
) -> dict[str, Any]:
    responses = {"200": {"description": "The answer.", "content": _content(schema)}, **_errors(*errors)}
    if not_ready:
        responses["503"] = {"description": "Not yet, or not any more.", "content": _content(schema)}
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": responses}}


def _infer(name: dict[str, Any], limits: ServerLimits) -> dict[str, Any]:
    binary = {
        "name": HEADER_LENGTH,
        "in": "header",
        "required": False,
        "description": "Number of bytes of the JSON object, if binary tensor data follows it.",
        "schema": {"type": "integer", "minimum": 0, "maximum": limits.body_bytes},
    }
    answers = {**_content(_reference("InferenceResponse")), "application/octet-stream": {}}
    return {
        "summary": "Predict the classes of images.",
        "parameters": [name, binary],
        "requestBody": {"required": True, "content": _content(_reference("InferenceRequest"))},
        "responses": {
            "200": {"description": "Labels and probabilities.", "content": answers},
            **_errors(*REFUSALS),
        },
    }


def _predict(model_parameter: dict[str, Any]) -> dict[str, Any]:
    summary = "Predict the class of one image file, which is the body."
    return _post_file(summary, _content(_reference("Prediction")), model_parameter)


def _explain(model_parameter: dict[str, Any]) -> dict[str, Any]:
    summary = "Predict the class of one image file, which is the body, and show the evidence for a class by pixel."
    name = "Name of the class to explain, by default the most probable one."
    explained = {"name": "class", "in": "query", "required": False, "description": name, "schema": {"type": "string"}}
    return _post_file(summary, _content(_reference("Explanation")), model_parameter, explained)


def _preview() -> dict[str, Any]:
    return _post_file("Convert one image file, which is the body, to a PNG file of 8 bits.", {"image/png": {}})


def _post_file(summary: str, answer: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": list(parameters),
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {
            "200": {"description": "The answer.", "content": answer},
            **_errors(*REFUSALS),
        },
    }


def _inference_request(limits: ServerLimits) -> dict[str, Any]:
    tensor = _object(
        ("name", "shape", "datatype"),
        name={"type": "string", "enum": [INPUT]},
        shape=_list({"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, maxItems=MAX_AXES),
        datatype={"type": "string", "enum": [*DATATYPES, BYTES]},
        parameters=_reference("Parameters"),
        data={"type": "array", "description": "The elements in row-major order, flat or nested."},
    )
    output = _object(("name",), name={"type": "string", "enum": list(OUTPUTS)}, parameters=_reference("Parameters"))
    example = {"name": INPUT, "shape": [1, 2, 2], "datatype": "UINT8", "data": [0, 255, 255, 0]}
    return {
        **_object(
            ("inputs",),
            id={"type": "string"},
            parameters=_reference("Parameters"),
            inputs=_list(tensor, minItems=1, maxItems=1),
            outputs=_list(output),
        ),
        "description": f"At most {limits.images} images.",
        "examples": [{"inputs": [example]}],
    }


def _inference_response() -> dict[str, Any]:
    output = _object(
        ("name", "datatype", "shape"),
        name={"type": "string"},
        datatype={"type": "string"},
        shape=_list({"type": "integer"}),
        parameters=_reference("Parameters"),
        data={"type": "array"},
    )
    return _object(
        ("model_name", "outputs"), model_name={"type": "string"}, id={"type": "string"}, outputs=_list(output)
    )
