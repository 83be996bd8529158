import pytest

from tigranet.serving.access import has_token, is_local_name, is_loopback, read_token

TOKEN = "0123456789abcdef"


def test_a_token_is_read_without_the_end_of_the_line(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN


@pytest.mark.parametrize("content", [b"", b"short", b"\n" * 20, b"0123456789 abcdef", "ç".encode() * 20, b"a" * 5000])
def test_a_file_without_a_good_token_is_refused(tmp_path, content):
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="token"):
        read_token(path)
    with pytest.raises(FileNotFoundError):
        read_token(tmp_path / "nosuch")


def test_only_the_token_with_its_scheme_is_accepted():
    assert has_token(f"Bearer {TOKEN}", TOKEN)
    assert has_token(f"bearer  {TOKEN} ", TOKEN)
    assert has_token(None, None)
    for wrong in (None, "", TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer ç\udcff"):
        assert not has_token(wrong, TOKEN)


@pytest.mark.parametrize(("host", "expected"), [("127.9.9.9", True), ("localhost", True), ("::", False), ("", False)])
def test_loopback_addresses(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("LOCALHOST:1", True),
        ("127.0.0.1", True),
        ("[::1]:80", True),
        (None, False),
        ("", False),
        ("localhost.evil", False),
    ],
)
def test_names_of_this_machine(host, expected):
    assert is_local_name(host) is expected
