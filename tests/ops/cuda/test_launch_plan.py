import pytest

from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits

LIMITS = DeviceLimits(100 * 1024, 512, 32 * 1024)


def test_a_plan_within_the_limits_has_no_reason_against_it():
    plan = LaunchPlan((32, 16, 1), (), dynamic_shared_memory=99 * 1024, static_shared_memory=1024, registers=64)
    assert plan.threads == 512
    assert plan.why_too_large(LIMITS, "a map") is None


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (LaunchPlan((32, 1, 1), (), 100 * 1024, 1), "a map needs 101 KiB of shared memory, .* 100 KiB per block"),
        (LaunchPlan((32, 1, 1), (), 0, 49 * 1024), "a map needs 49 KiB of static shared memory, CUDA allows 48 KiB"),
        (LaunchPlan((32, 17, 1), ()), "a map needs 544 threads, this device has 512"),
        (LaunchPlan((32, 16, 1), (), registers=65), "a map needs 33280 registers, this device has 32768"),
    ],
)
def test_the_limit_that_is_exceeded_is_named(plan, reason):
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(plan.why_too_large(LIMITS, "a map"))
