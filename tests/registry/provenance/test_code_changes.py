"""What changed in the code: by git where a mirror is configured, and never by anything that a caller chooses."""

import os
import subprocess
from pathlib import Path

import pytest

from registry.provenance import git_mirrors
from registry.provenance.code_changes import class_of_file, code_suspects, compare_code
from registry.provenance.git_mirrors import NoAnswer, diff_commits, find_mirror, place_of
from registry.snapshots import CodeSpec

REMOTE = "git@github.com:lab/trainer.git"
QUIET = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], env=QUIET, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def mirrors(tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder with one mirror of three commits."""
    work, root = tmp_path / "work", tmp_path / "mirrors"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    commits = []
    for place, files in enumerate(
        (
            {"train.py": "1", "data/loader.py": "1", "README.md": "1", "ünïcode name.py": "1"},
            {"train.py": "2", "data/loader.py": "2", "README.md": "1", "ünïcode name.py": "1"},
            {"train.py": "2", "optim/adam.py": "1", "README.md": "3", "ünïcode name.py": "2"},
        )
    ):
        git(work, "rm", "-rq", "--ignore-unmatch", "--cached", ".")
        for name, text in files.items():
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text(text)
            git(work, "add", name)
        git(work, "commit", "-qm", f"change {place}")
        commits.append(git(work, "rev-parse", "HEAD"))
    (root / "github.com" / "lab").mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", str(work), str(root / "github.com" / "lab" / "trainer.git"))
    return root, commits


def clean(commit: str, remote: str | None = REMOTE, **known: object) -> CodeSpec:
    return CodeSpec(commit, **{"dirty": False, "remote": remote, **known})  # type: ignore[arg-type]


def test_commits_and_files_between_two_are_listed_and_classed(mirrors: tuple[Path, list[str]]) -> None:
    root, commits = mirrors
    found = compare_code(clean(commits[0]), clean(commits[2], "https://github.com/lab/trainer"), root)
    assert found.status == "known"
    assert {each.path: (each.change, each.kind) for each in found.files} == {
        "train.py": ("changed", "code"),
        "data/loader.py": ("removed", "data"),
        "optim/adam.py": ("added", "optimiser"),
        "README.md": ("changed", "inert"),
        "ünïcode name.py": ("changed", "code"),
    }
    assert [each.subject for each in found.log] == ["change 2", "change 1"]
    assert (found.commit_count, found.left_behind) == (2, 0)
    assert found.why == "2 commits later; 5 files differ"
    assert {each.key for each in code_suspects(found)} == {"code.code", "code.data", "code.optimiser", "code.inert"}


def test_a_step_back_says_what_only_the_baseline_has(mirrors: tuple[Path, list[str]]) -> None:
    root, commits = mirrors
    found = compare_code(clean(commits[2]), clean(commits[0]), root)
    assert (found.commit_count, found.left_behind, found.log) == (0, 2, ())


def test_a_dirty_tree_is_unknown_and_the_committed_changes_are_still_listed(mirrors: tuple[Path, list[str]]) -> None:
    root, commits = mirrors
    found = compare_code(clean(commits[0]), clean(commits[1], dirty=True), root)
    assert found.status == "unknown"
    assert "the candidate ran with uncommitted changes" in found.why
    assert [each.path for each in found.files] == ["data/loader.py", "train.py"]
    assert "code.uncommitted" in {each.key for each in code_suspects(found)}


@pytest.mark.parametrize(
    ("remote", "why"),
    [
        (None, "no remote is recorded"),
        ("https://github.com/lab/other", "no mirror"),
        ("https://github.com/../../etc", "no mirror"),
        ("/etc", "no mirror"),
        ("--upload-pack=touch /tmp/x", "no mirror"),
        ("file:///etc/passwd", "no mirror"),
    ],
)
def test_without_a_mirror_the_code_is_unknown_with_the_reason(
    mirrors: tuple[Path, list[str]], remote: str | None, why: str
) -> None:
    root, commits = mirrors
    found = compare_code(clean(commits[0], remote), clean(commits[1], remote), root)
    assert (found.status, found.files) == ("unknown", ())
    assert why in found.why


def test_without_mirrors_it_says_which_setting_is_missing() -> None:
    found = compare_code(clean("a" * 40), clean("b" * 40))
    assert (found.status, "CAIRN_GIT_MIRRORS" in found.why) == ("unknown", True)


def test_a_commit_that_was_never_pushed_is_unknown(mirrors: tuple[Path, list[str]]) -> None:
    root, commits = mirrors
    found = compare_code(clean(commits[0]), clean("f" * 40), root)
    assert (found.status, "the mirror has no commit ffffffffffff" in found.why) == ("unknown", True)


@pytest.mark.parametrize("commit", ["--output=/tmp/x", "HEAD", "main", "a" * 6, "g" * 40, "", "a" * 40 + "\n"])
def test_only_hexadecimal_hashes_reach_git(mirrors: tuple[Path, list[str]], commit: str) -> None:
    root, commits = mirrors
    folder = find_mirror(root, REMOTE)
    assert folder is not None
    with pytest.raises(NoAnswer, match="is no commit hash"):
        diff_commits(folder, commits[0], commit)


def test_two_repositories_have_no_difference(mirrors: tuple[Path, list[str]]) -> None:
    root, commits = mirrors
    found = compare_code(clean(commits[0]), clean(commits[1], "https://gitlab.com/lab/trainer"), root)
    assert (found.status, "two repositories" in found.why) == ("unknown", True)


def test_a_link_out_of_the_mirrors_is_no_mirror(mirrors: tuple[Path, list[str]], tmp_path: Path) -> None:
    root, _ = mirrors
    (root / "github.com" / "evil").symlink_to(tmp_path / "mirrors" / "github.com" / "lab")
    assert find_mirror(root, "https://github.com/evil/trainer") is None


def test_a_mirrors_own_config_runs_nothing(mirrors: tuple[Path, list[str]], tmp_path: Path) -> None:
    root, commits = mirrors
    folder = find_mirror(root, REMOTE)
    assert folder is not None
    ran = tmp_path / "ran"
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    for name in ("diff.external", "core.fsmonitor", "core.pager", "diff.evil.textconv", "diff.evil.command"):
        git(folder, "config", name, str(script))
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text("* diff=evil\n")
    assert diff_commits(folder, commits[0], commits[1]).files
    assert not ran.exists()


def test_a_large_difference_is_refused_and_not_read_into_memory(
    mirrors: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, commits = mirrors
    monkeypatch.setattr(git_mirrors, "MAX_OUTPUT_BYTES", 45)
    git_mirrors._remembered.cache_clear()
    found = compare_code(clean(commits[0]), clean(commits[2]), root)
    assert (found.status, "too large to list" in found.why) == ("unknown", True)


@pytest.mark.parametrize(
    ("remote", "place"),
    [
        ("git@github.com:lab/trainer.git", ("github.com", "lab", "trainer")),
        ("ssh://git@GitHub.com:22/lab/trainer.git", ("github.com", "lab", "trainer")),
        ("https://user:secret@github.com/lab/trainer/", ("github.com", "lab", "trainer")),
        ("https://github.com/.git/config", None),
        ("https://github.com/a/../b", None),
        ("C:\\repo", None),
    ],
)
def test_a_remote_is_read_as_host_and_path(remote: str, place: tuple[str, ...] | None) -> None:
    assert place_of(remote) == place


def test_paths_suggest_classes() -> None:
    paths = ("megatron/data/gpt_dataset.py", "src/tokenizer/bpe.py", "docs/data.md", "model/attention.py", "main.py")
    assert [class_of_file(path) for path in paths] == ["data", "tokenizer", "inert", "model", "code"]
