"""In which scope a project's memories lie."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recall_core.client_scopes import project_root, project_scope


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path) -> Path:
    folder = tmp_path / "商店 shop"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    return folder


def test_folders_below_a_repository_share_its_scope(repository):
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    assert project_root(below) == repository
    assert project_scope(below) == project_scope(repository)


def test_a_worktree_shares_the_scope_of_its_repository(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "feature"))
    (tmp_path / "feature" / "src").mkdir()
    assert project_scope(tmp_path / "feature" / "src") == project_scope(repository)


def test_worktrees_of_a_bare_repository_share_a_scope(repository, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--bare", str(repository), str(bare))
    for name in ("one", "two"):
        git(bare, "worktree", "add", "-b", name, str(tmp_path / name))
    assert project_scope(tmp_path / "one") == project_scope(tmp_path / "two")


def test_a_submodule_is_a_project_of_its_own(repository, tmp_path):
    sub = repository / "sub"
    sub.mkdir()
    (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert project_root(sub) == sub


@pytest.mark.parametrize("text", ["", "gitdir: /nowhere/.git/worktrees/x", "\0"])
def test_a_worktree_without_its_repository_has_some_scope(tmp_path, text):
    (tmp_path / ".git").write_text(text)
    assert project_scope(tmp_path).startswith("project/")


def test_a_link_leads_to_the_same_scope(repository, tmp_path):
    link = tmp_path / "link"
    try:
        link.symlink_to(repository)
    except OSError:
        pytest.skip("no links here")
    assert project_scope(link) == project_scope(repository)


def test_folders_of_one_name_have_different_scopes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "shop").mkdir(parents=True)
    assert project_scope(tmp_path / "a" / "shop") != project_scope(tmp_path / "b" / "shop")


def test_a_repository_of_the_home_folder_is_no_project_of_all_in_it(repository, monkeypatch):
    monkeypatch.setenv("HOME", str(repository))
    monkeypatch.setenv("USERPROFILE", str(repository))
    for name in ("a", "b"):
        (repository / name).mkdir()
    assert project_root(repository / "a") == repository / "a"
    assert project_scope(repository / "a") != project_scope(repository / "b")
    assert project_root(repository) == repository
