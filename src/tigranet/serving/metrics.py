"""Metrics of a server in the format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of the metrics."""
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Upper limits of the classes of the histogram of batch sizes."""


class ServerMetrics:
    """The counters of one server. Labels have few values, whatever clients send."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "tigranet_requests", "Number of requests.", ["endpoint", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "tigranet_request_seconds", "Duration of requests.", ["endpoint"], registry=self.registry
        )
        self.in_work = Gauge(
            "tigranet_requests_in_work", "Number of requests with images that are in work.", registry=self.registry
        )
        self.batches = Histogram(
            "tigranet_batch_images",
            "Number of images per batch.",
            ["model"],
            buckets=BATCH_SIZES,
            registry=self.registry,
        )

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self.registry)
