"""Where the URL and the token come from, and where the token never goes."""

import os
from pathlib import Path

import cairn
import pytest
from cairn.settings import login_file, read_settings, save_login


def env(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path), **more}


def admin_token(folder: Path, token: str = "admin-secret", mode: int = 0o600) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "admin-token"
    path.write_text(token + "\n")
    path.chmod(mode)
    return path


def test_arguments_win_over_environment_over_login_over_admin_token(tmp_path: Path) -> None:
    admin_token(tmp_path / ".local/share/cairn")
    url = "http://127.0.0.1:8400"
    assert read_settings(environ=env(tmp_path)).token == "admin-secret"
    save_login(url, "saved", env(tmp_path))
    assert read_settings(environ=env(tmp_path)).token == "saved"
    told = env(tmp_path, CAIRN_TOKEN="told", CAIRN_URL="http://127.0.0.1:9")
    assert (read_settings(environ=told).url, read_settings(environ=told).token) == (told["CAIRN_URL"], "told")
    assert read_settings(url, "given", told).token == "given"


@pytest.mark.parametrize(("variable", "folder"), [("CAIRN_HOME", "home"), ("XDG_DATA_HOME", "home/cairn")])
def test_the_admin_token_is_found_where_the_service_wrote_it(tmp_path: Path, variable: str, folder: str) -> None:
    admin_token(tmp_path / folder)
    assert read_settings(environ=env(tmp_path, **{variable: str(tmp_path / "home")})).token == "admin-secret"


def test_the_admin_token_stays_on_this_machine(tmp_path: Path) -> None:
    admin_token(tmp_path / ".local/share/cairn")
    away = read_settings("https://cairn.example.org", environ=env(tmp_path))
    assert away.token is None
    for other in (
        "https://127.0.0.1:8400",
        "http://127.0.0.1.example.org",
        "http://127.evil:1",
        "http://10.0.0.1:8400",
    ):
        assert read_settings(other, environ=env(tmp_path)).token is None
    for local in ("http://localhost:8400", "http://[::1]:8400", "http://127.0.0.2:1"):
        settings = read_settings(local, environ=env(tmp_path))
        assert (settings.token, settings.needs_proof) == ("admin-secret", True)
    assert not read_settings("http://127.0.0.1:8400", "told", env(tmp_path)).needs_proof


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({"CAIRN_PORT": "9000"}, "http://127.0.0.1:9000"),
        ({"CAIRN_HOST": "10.0.0.5"}, "http://10.0.0.5:8400"),
        ({"CAIRN_HOST": "::1", "CAIRN_PORT": "9000"}, "http://[::1]:9000"),
        ({"CAIRN_HOST": "0.0.0.0"}, "http://127.0.0.1:8400"),
        ({"CAIRN_HOST": "::", "CAIRN_PORT": ""}, "http://[::1]:8400"),
        ({"CAIRN_URL": "http://h:1", "CAIRN_PORT": "9000"}, "http://h:1"),
        ({}, "https://saved.example.org"),
    ],
)
def test_without_a_url_the_client_looks_where_the_service_would_listen(
    tmp_path: Path, settings: dict[str, str], url: str
) -> None:
    save_login("https://saved.example.org", "saved", env(tmp_path))
    assert read_settings(environ=env(tmp_path, **settings)).url == url


@pytest.mark.parametrize("port", ["0", "65536", "x", "8400.0", "٣", "-1"])
def test_a_port_that_is_none_is_named(tmp_path: Path, port: str) -> None:
    with pytest.raises(cairn.BadSettings, match="CAIRN_PORT is"):
        read_settings(environ=env(tmp_path, CAIRN_PORT=port))


@pytest.mark.parametrize("url", ["http://h:1/api/v1", "http://h:1/api/v1/", "http://h:1/"])
def test_the_prefix_of_the_api_is_no_part_of_the_url(url: str) -> None:
    assert read_settings(url, "t", {}).url == "http://h:1"
    assert read_settings("http://h/cairn/api/v1", "t", {}).url == "http://h/cairn"


def test_a_saved_token_goes_only_where_it_was_saved_for(tmp_path: Path) -> None:
    save_login("https://a.example.org", "for-a", env(tmp_path))
    save_login("https://b.example.org/", "for-b", env(tmp_path))
    read = {url: read_settings(url, environ=env(tmp_path)).token for url in ("https://a.example.org/", "https://c.org")}
    assert read == {"https://a.example.org/": "for-a", "https://c.org": None}
    assert read_settings(environ=env(tmp_path)).url == "https://b.example.org"


def test_the_login_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = save_login("http://127.0.0.1:8400", "secret", env(tmp_path))
    assert path == login_file(env(tmp_path))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(cairn.BadSettings, match="chmod 600"):
        read_settings(environ=env(tmp_path))
    told = env(tmp_path, CAIRN_URL="http://127.0.0.1:9", CAIRN_TOKEN="t")
    assert read_settings(environ=told).token == "t", "a job that was told both needs no login file"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"tokens": 3}', '{"tokens": {"u": 3}}', '{"default": 3}'])
def test_a_damaged_login_file_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = login_file(env(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(cairn.BadSettings, match="cairn login"):
        read_settings(environ=env(tmp_path))


@pytest.mark.parametrize(
    "url",
    ["ftp://a", "127.0.0.1:8400", "http://", "http://user:pw@host", "http://h:99999", "http://h?x=1", "http://h:x"],
)
def test_what_is_no_url_of_a_service_is_refused(url: str) -> None:
    with pytest.raises(cairn.BadSettings):
        read_settings(url, "t", {})


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "schlüssel", "nul\0"])
def test_a_token_that_would_break_its_header_is_refused(token: str) -> None:
    with pytest.raises(cairn.BadSettings, match="no token") as caught:
        read_settings("http://h", token, {})
    assert token not in str(caught.value)


def test_the_token_shows_in_no_representation(tmp_path: Path) -> None:
    settings = read_settings("http://127.0.0.1:1", "secret-token", os.environ)
    assert "secret-token" not in repr(settings)
    with cairn.Client("http://127.0.0.1:1", "secret-token") as client:
        assert "secret-token" not in repr(client)
