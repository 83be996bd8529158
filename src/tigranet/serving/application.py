"""The HTTP application of a server: the Open Inference Protocol, an endpoint for image files, and the web page."""

import asyncio
import json
import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

import tigranet
from tigranet.data.image_errors import UnreadableImageError
from tigranet.evaluation.batched_inference import NOT_FINITE
from tigranet.evaluation.file_explanations import class_index
from tigranet.serving.answer import Answer
from tigranet.serving.batching import Batcher
from tigranet.serving.image_input import ImageInput
from tigranet.serving.inference_protocol import (
    EXTENSIONS,
    HEADER_LENGTH,
    describe_model,
    format_response,
    parse_request,
)
from tigranet.serving.limits import ServerLimits
from tigranet.serving.metrics import CONTENT_TYPE, ServerMetrics
from tigranet.serving.openapi import openapi_schema
from tigranet.serving.predictor import Predictor
from tigranet.serving.preview import preview_png
from tigranet.serving.request_guard import LOG_FIELDS, RequestError, RequestGuard, read_body
from tigranet.serving.structured_log import log_event

T = TypeVar("T")

STATIC_FOLDER = Path(__file__).parent / "static"
"""The files of the web page."""
DECODING_THREADS = 4
"""Number of threads that parse requests and decode images."""
DECIMALS = 6
"""Number of decimals of the probabilities of an image file, as in the output of ``tigranet predict``."""
EVIDENCE_DECIMALS = 8
"""Number of decimals of the evidence. There are thousands of pixels, so each contributes little."""

mimetypes.add_type("text/javascript", ".js")  # browsers run modules of no other type, which some systems declare


class ModelServer:
    """The models of a server, and the functions that answer requests.

    Args:
        predictors: The models by their names.
        limits: What a request may ask for.
    """

    def __init__(self, predictors: Mapping[str, Predictor], limits: ServerLimits) -> None:
        self.predictors, self.limits, self.metrics = dict(predictors), limits, ServerMetrics()
        self.is_ready = False
        self._inference = ThreadPoolExecutor(1, "inference")
        self._decoding = ThreadPoolExecutor(DECODING_THREADS, "decoding")
        self._batchers = {
            name: Batcher(
                predictor.compute, self._inference, predictor.batch_size, self.metrics.batches.labels(name).observe
            )
            for name, predictor in self.predictors.items()
        }
        self._schema = openapi_schema(list(self.predictors), limits)

    @asynccontextmanager
    async def lifespan(self, app: Router) -> AsyncIterator[None]:
        """Warm up all models before the first request, and wait for running computations at the end.

        Args:
            app: The routes.
        """
        try:
            for name, predictor in self.predictors.items():
                await asyncio.get_running_loop().run_in_executor(self._inference, predictor.warm_up)
                log_event("warmed up", model=name)
            self.is_ready = True
            log_event("ready", models=list(self.predictors))
            yield
        finally:
            self.is_ready = False
            self._decoding.shutdown(cancel_futures=True)
            self._inference.shutdown(cancel_futures=True)

    async def server_live(self, request: Request) -> Response:
        """Tell whether the server runs."""
        return _json({"live": True})

    async def server_ready(self, request: Request) -> Response:
        """Tell whether all models answer."""
        return _json({"ready": self.is_ready}, 200 if self.is_ready else 503)

    async def server_metadata(self, request: Request) -> Response:
        """Describe the server."""
        return _json({"name": "tigranet", "version": tigranet.__version__, "extensions": list(EXTENSIONS)})

    async def model_list(self, request: Request) -> Response:
        """List the names of the models."""
        return _json({"models": list(self.predictors)})

    async def model_ready(self, request: Request) -> Response:
        """Tell whether a model answers."""
        name, _ = self._model(request.path_params["model"])
        return _json({"name": name, "ready": self.is_ready}, 200 if self.is_ready else 503)

    async def model_metadata(self, request: Request) -> Response:
        """Describe the inputs and outputs of a model."""
        name, predictor = self._model(request.path_params["model"])
        return _json(describe_model(name, predictor.network.in_maps, predictor.network.num_classes))

    async def model_classes(self, request: Request) -> Response:
        """List the classes of a model."""
        name, predictor = self._model(request.path_params["model"])
        about = {"classes": list(predictor.class_names), "image_size": predictor.image_size}
        return _json({"model": name, **about, "detects_unknown": predictor.detects_unknown})

    async def model_infer(self, request: Request) -> Response:
        """Answer an inference request of the Open Inference Protocol."""
        name, _ = self._model(request.path_params["model"])
        body = await read_body(request, self.limits.body_bytes)
        header_length = request.headers.get(HEADER_LENGTH)
        parsed = await self._decode(lambda: parse_request(body, header_length, self.limits.images))
        answer = await self._answer(request, name, parsed.images)
        content, json_bytes = format_response(name, parsed, answer)
        if json_bytes is None:
            return Response(content, media_type="application/json")
        return Response(content, headers={HEADER_LENGTH: str(json_bytes)}, media_type="application/octet-stream")

    async def predict_file(self, request: Request) -> Response:
        """Predict the class of one image file, which is the body of the request."""
        name, predictor = self._model(request.query_params.get("model", next(iter(self.predictors))))
        body = await read_body(request, self.limits.body_bytes)
        answer = await self._answer(request, name, [body])
        probabilities = answer.probabilities[0].tolist()
        return _json(_prediction(name, predictor, probabilities, answer.label[0], bool(answer.unknown[0])))

    async def explain_file(self, request: Request) -> Response:
        """Predict the class of one image file, and show the evidence for a class by pixel."""
        name, predictor = self._model(request.query_params.get("model", next(iter(self.predictors))))
        explained_class = request.query_params.get("class")
        body = await read_body(request, self.limits.body_bytes)
        request.scope[LOG_FIELDS] = {"model": name, "images": 1}
        if explained_class is not None:
            await self._decode(lambda: class_index(predictor.network, explained_class))
        image = await self._decode(lambda: predictor.prepare_to_explain(body, self.limits.pixels))
        loop = asyncio.get_running_loop()
        explanation = await loop.run_in_executor(self._inference, predictor.explain_prepared, image, explained_class)
        if not explanation.probabilities.isfinite().all():
            raise RequestError(422, f"{NOT_FINITE} this image: train the model again")
        probabilities = explanation.probabilities.tolist()
        return _json(
            {
                **_prediction(name, predictor, probabilities, explanation.label, explanation.unknown),
                "explained_class": explanation.explained_class,
                "score": round(explanation.score, DECIMALS),
                "constant": round(explanation.constant, DECIMALS),
                "evidence": explanation.evidence.double().numpy().round(EVIDENCE_DECIMALS).tolist(),
            }
        )

    async def preview_file(self, request: Request) -> Response:
        """Return an image file as PNG, for browsers that do not know its format."""
        body = await read_body(request, self.limits.body_bytes)
        request.scope[LOG_FIELDS] = {"images": 1}
        content = await self._decode(lambda: preview_png(body, self.limits.pixels))
        return Response(content, media_type="image/png")

    async def metrics_text(self, request: Request) -> Response:
        """Return the metrics."""
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def openapi(self, request: Request) -> Response:
        """Return the description of all endpoints."""
        return _json(self._schema)

    def _model(self, name: str) -> tuple[str, Predictor]:
        if name not in self.predictors:
            raise RequestError(404, f"there is no such model, expected one of {', '.join(self.predictors)}")
        return name, self.predictors[name]

    async def _decode(self, function: Callable[[], T]) -> T:
        """Run a function that parses or decodes in a thread. What it refuses is an error of the client."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._decoding, function)
        except ValueError as error:
            raise RequestError(400, str(error)) from None

    async def _answer(self, request: Request, name: str, images: list[ImageInput]) -> Answer:
        predictor = self.predictors[name]
        request.scope[LOG_FIELDS] = {"model": name, "images": len(images)}

        def prepare(position: int) -> Any:
            try:
                return predictor.prepare(images[position], self.limits.pixels)
            except UnreadableImageError as error:
                raise ValueError(f"image {position} of {len(images)}: {error}") from None

        prepared = await self._decode(lambda: [prepare(position) for position in range(len(images))])
        rows = await self._batchers[name](prepared)
        if not rows.isfinite().all():
            raise RequestError(422, f"{NOT_FINITE} these images: train the model again")
        return predictor.answer(rows)


def _prediction(
    name: str, predictor: Predictor, probabilities: list[float], label: str, unknown: bool
) -> dict[str, Any]:
    """Return the answer for one image file, for JSON."""
    values = zip(predictor.class_names, probabilities, strict=True)
    return {
        "model": name,
        "label": label,
        "probability": round(max(probabilities), DECIMALS),
        "probabilities": {class_name: round(value, DECIMALS) for class_name, value in values},
        "unknown": unknown,
    }


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


async def _page(request: Request) -> Response:
    """Return the web page."""
    return FileResponse(STATIC_FOLDER / "index.html")


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise RequestError(404, "there is nothing at this address, see /openapi.json for all addresses")


def create_application(
    predictors: Mapping[str, Predictor],
    *,
    limits: ServerLimits | None = None,
    token: str | None = None,
    local_only: bool = True,
) -> RequestGuard:
    """Create the ASGI application of a server.

    Args:
        predictors: The models by their names. The first one answers image files that name no model.
        limits: What a request may ask for.
        token: The bearer token that requests must carry. None needs no token.
        local_only: Whether to refuse requests whose header ``Host`` does not name this machine.

    Returns:
        The application. It loads and warms up all models when it starts.
    """
    limits = limits or ServerLimits()
    server = ModelServer(predictors, limits)
    routes = [
        Route("/v2/health/live", server.server_live),
        Route("/v2/health/ready", server.server_ready),
        Route("/v2", server.server_metadata),
        Route("/v2/", server.server_metadata),
        Route("/v2/models", server.model_list),
        Route("/v2/models/{model}", server.model_metadata),
        Route("/v2/models/{model}/ready", server.model_ready),
        Route("/v2/models/{model}/infer", server.model_infer, methods=["POST"]),
        Route("/models/{model}/classes", server.model_classes),
        Route("/predict", server.predict_file, methods=["POST"]),
        Route("/explain", server.explain_file, methods=["POST"]),
        Route("/preview", server.preview_file, methods=["POST"]),
        Route("/metrics", server.metrics_text),
        Route("/openapi.json", server.openapi),
        Route("/", _page),
        Mount("/static", StaticFiles(directory=STATIC_FOLDER)),
    ]
    router = Router(routes, redirect_slashes=False, default=_nothing, lifespan=server.lifespan)
    return RequestGuard(router, limits, server.metrics, token, local_only)
