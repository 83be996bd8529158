from tigranet.serving.metrics import ServerMetrics


def test_two_servers_count_for_themselves():
    first, second = ServerMetrics(), ServerMetrics()
    first.requests.labels("model_infer", "200").inc()
    first.batches.labels("digits").observe(3)
    assert b'tigranet_requests_total{endpoint="model_infer",status="200"} 1.0' in first.text()
    assert b'tigranet_batch_images_bucket{le="4.0",model="digits"} 1.0' in first.text()
    assert b"model_infer" not in second.text()
