"""A cost model of bulk predictions on a cluster: rates, bottleneck, time and money.

Work flows through stages, and the slowest one sets the rate. With ``c`` cores, ``g`` GPUs, images of ``b`` bytes, ``q``
requests per image, and a pipeline that reaches the share ``s`` of the limit of cores and GPUs, in images per second:

    compute    s * g / gpu_seconds
    cores      s * c / (decode_seconds + b * transfer_seconds_per_byte + q * request_seconds)
    network    machines * network_bytes_per_second / b
    storage    store_bytes_per_second / b
    requests   store_requests_per_second / q
    driver     part_size / driver_seconds_per_part

Without GPUs the network computes on the cores, and its time is added to theirs. Measured values come from files in
``results/``; what a provider sells is an assumption, with its source.
"""

import heapq
import math
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Workload:
    """What an image costs. All values are measured."""

    name: str
    network: str
    image_bytes: float
    """Mean size of an image file."""
    decode_seconds: float
    """Processor time to decode and scale an image."""
    gpu_seconds: float
    """Time of the network on a GPU for an image, in full batches."""
    cpu_seconds: float
    """Processor time of the network on a core for an image."""
    answer_bytes: float = 0.0
    """Size of an answer."""


@dataclass(frozen=True)
class ClientCosts:
    """What reading and organising costs. All values are measured."""

    request_seconds: float
    """Processor time of the client for a request to an object store."""
    transfer_seconds_per_byte: float
    """Processor time of the client to receive a byte."""
    driver_seconds_per_part: float
    """Time that the driver needs for a part."""
    share_of_limit: float
    """The share of the limit of the cores that the pipeline reaches. We assume the same for GPUs."""


@dataclass(frozen=True)
class Provider:
    """What is rented. These are assumptions; replace them by those of your provider."""

    cores_per_gpu: int = 24
    """192 virtual cores for 8 GPUs, as AWS's machines with 8 H200."""
    gpus_per_machine: int = 8
    cores_per_machine: int = 192
    """Of machines without GPUs."""
    network_bytes_per_second: float = 100e9 / 8
    """Of one machine to the store: 100 Gbit/s. The 3,200 Gbit/s of data sheets are for traffic between GPUs."""
    store_bytes_per_second: float = 1e12 / 8
    """Of all machines together: 1 Tbit/s. Stores do not publish a limit; ask for it."""
    store_requests_per_second: float = 5500 * 16
    """AWS S3 User Guide: at least 5,500 GET requests per second per partitioned prefix. We assume 16 prefixes."""
    gpu_dollars_per_hour: float = 5.41
    """EC2 Capacity Blocks, 8 H200 for 43.26 dollars per hour (until 1 January 2025); cores are included."""
    core_dollars_per_hour: float = 0.05
    """A virtual core of a general-purpose machine: a round number, from no price list."""
    dollars_per_request: float = 0.4e-6
    """GET requests of S3 Standard in us-east-1: 0.0004 dollars per 1,000, not looked up again (November 2026)."""
    start_seconds: float = 300.0
    """Until rented machines have started and loaded everything."""
    hours_between_failures: float = 10_000.0
    """Of one machine: about one failure per year."""


@dataclass(frozen=True)
class Cluster:
    """Machines with GPUs, or only cores."""

    gpus: int
    provider: Provider = field(default_factory=Provider)
    cores: int | None = None
    """None for the cores that come with the GPUs."""
    is_sharded: bool = True
    """Whether images are in tar or Parquet files, rather than files of their own."""
    request_bytes: int = 2**23
    """Bytes of a shard that one request reads."""
    part_size: int = 4096

    @property
    def total_cores(self) -> int:
        """Number of cores."""
        return self.gpus * self.provider.cores_per_gpu if self.cores is None else self.cores

    @property
    def machines(self) -> int:
        """Number of machines."""
        by_gpus = math.ceil(self.gpus / self.provider.gpus_per_machine)
        return by_gpus or math.ceil(self.total_cores / self.provider.cores_per_machine)

    @property
    def workers(self) -> int:
        """Number of processes that predict parts: one per GPU, or one per core."""
        return self.gpus or self.total_cores


def requests_per_image(workload: Workload, cluster: Cluster) -> float:
    """Return the number of requests to the store for an image."""
    return workload.image_bytes / cluster.request_bytes if cluster.is_sharded else 1.0


def stage_rates(workload: Workload, costs: ClientCosts, cluster: Cluster) -> dict[str, float]:
    """Return the images per second that each stage allows.

    Args:
        workload: What an image costs.
        costs: What reading and organising costs.
        cluster: The machines.

    Returns:
        The rates by the name of the stage.
    """
    provider, requests = cluster.provider, requests_per_image(workload, cluster)
    core_seconds = (
        workload.decode_seconds
        + workload.image_bytes * costs.transfer_seconds_per_byte
        + requests * costs.request_seconds
        + (0.0 if cluster.gpus else workload.cpu_seconds)
    )
    share = costs.share_of_limit
    rates = {"compute": share * cluster.gpus / workload.gpu_seconds} if cluster.gpus else {}
    return rates | {
        "cores": share * cluster.total_cores / core_seconds,
        "network": cluster.machines * provider.network_bytes_per_second / workload.image_bytes,
        "storage": provider.store_bytes_per_second / workload.image_bytes,
        "requests": provider.store_requests_per_second / requests,
        "driver": cluster.part_size / costs.driver_seconds_per_part,
    }


@dataclass(frozen=True)
class Estimate:
    """What a run takes."""

    images_per_second: float
    bottleneck: str
    seconds: float
    dollars: float


def estimate(images: float, workload: Workload, costs: ClientCosts, cluster: Cluster) -> Estimate:
    """Estimate time and money of a run by the formulas of this module, without failures and without its end.

    Args:
        images: Number of images.
        workload: What an image costs.
        costs: What reading and organising costs.
        cluster: The machines.

    Returns:
        The estimate.
    """
    rates = stage_rates(workload, costs, cluster)
    bottleneck = min(rates, key=rates.__getitem__)
    rate = rates[bottleneck]
    seconds = cluster.provider.start_seconds + images / rate
    return Estimate(rate, bottleneck, seconds, dollars(images, workload, cluster, seconds))


def dollars(images: float, workload: Workload, cluster: Cluster, seconds: float) -> float:
    """Return the price of machines and requests."""
    provider = cluster.provider
    per_hour = cluster.gpus * provider.gpu_dollars_per_hour
    if not cluster.gpus:
        per_hour = cluster.total_cores * provider.core_dollars_per_hour
    requests = images * requests_per_image(workload, cluster) + images / cluster.part_size
    return per_hour * seconds / 3600 + requests * provider.dollars_per_request


def simulate(
    images: float, workload: Workload, costs: ClientCosts, cluster: Cluster, variation: float = 0.1, seed: int = 0
) -> Estimate:
    """Simulate a run part by part: the driver gives parts to workers, which differ in speed and sometimes fail.

    A worker that fails loses its part, which another one does again, and returns after the start time.

    Args:
        images: Number of images.
        workload: What an image costs.
        costs: What reading and organising costs.
        cluster: The machines.
        variation: Standard deviation of the duration of a part, divided by its mean.
        seed: Seed of durations and failures.

    Returns:
        The result. Its rate includes the end, when some workers have no part left; its bottleneck is that of
        :func:`estimate`.
    """
    rates = stage_rates(workload, costs, cluster)
    worker_rate = min(rate for stage, rate in rates.items() if stage != "driver") / cluster.workers
    start, parts = cluster.provider.start_seconds, math.ceil(images / cluster.part_size)
    rng = np.random.default_rng(seed)
    scale = math.sqrt(math.log1p(variation**2))
    mean_seconds = cluster.part_size / worker_rate
    fail_probability = mean_seconds / 3600 / cluster.provider.hours_between_failures
    workers, driver_free, finished = [start] * cluster.workers, start, 0
    while finished < parts:
        count = parts - finished
        durations = mean_seconds * rng.lognormal(-(scale**2) / 2, scale, count)
        for duration, failed in zip(durations.tolist(), (rng.random(count) < fail_probability).tolist(), strict=True):
            driver_free = max(driver_free, workers[0]) + costs.driver_seconds_per_part
            lost_seconds = start - duration / 2 if failed else 0.0  # the worker fails in the middle of the part
            heapq.heapreplace(workers, driver_free + duration + lost_seconds)
            finished += not failed
    seconds = max(workers)
    bottleneck = min(rates, key=rates.__getitem__)
    return Estimate(images / (seconds - start), bottleneck, seconds, dollars(images, workload, cluster, seconds))
