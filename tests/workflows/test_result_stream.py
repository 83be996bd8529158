from tigranet.workflows.result_stream import ResultStream


def test_a_stream_passes_results_on_and_knows_the_classes():
    stream = ResultStream(("a", "b"), iter([1, 2]))
    assert stream.class_names == ("a", "b")
    assert list(stream) == [1, 2]


def test_closing_a_stream_ends_what_computes_it():
    ended = []

    def results():
        try:
            yield from range(10)
        finally:
            ended.append(True)

    stream = ResultStream(("a", "b"), results())
    assert next(stream) == 0
    stream.close()
    assert ended == [True]
    ResultStream(("a", "b"), iter([1])).close()
