from tigranet.ops.nvrtc import cache_folder, store


def test_compiled_kernels_are_stored_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "new"))
    store(cache_folder() / "kernel.cubin", b"binary")
    assert [path.name for path in cache_folder().iterdir()] == ["kernel.cubin"]
    assert (cache_folder() / "kernel.cubin").read_bytes() == b"binary"


def test_without_a_place_to_store_nothing_is_stored(tmp_path):
    (tmp_path / "file").write_text("")
    store(tmp_path / "file" / "kernel.cubin", b"binary")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
