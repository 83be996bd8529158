from tigranet.workflows.result_stream import ResultStream


def test_a_stream_passes_results_on_and_knows_the_classes():
    stream = ResultStream(("a", "b"), iter([1, 2]))
    assert stream.class_names == ("a", "b")
    assert list(stream) == [1, 2]
