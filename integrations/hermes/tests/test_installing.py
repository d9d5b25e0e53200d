"""`recall-hermes install` makes Hermes find the provider, keeps what is there, and can be undone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from agents import telegram
from click.testing import CliRunner

from recall_core.cli.app import app as command
from recall_hermes.installing import find_profile_home, install, set_provider, uninstall
from recall_hermes.main import main
from recall_hermes.names import memory_file, plugin_folder

CONFIG = """\
# my Hermes
model:
  default: "scripted"   # quotes stay
memory:
  memory_enabled: true
  provider: ''  # none yet
  user_char_limit: 1375
toolsets:
  - hermes-cli
  - web
长: 值
"""


def files_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def hermes(*arguments):
    """Run Hermes' own command."""
    code = "import sys; from hermes_cli.main import main; sys.argv[0] = 'hermes'; main()"
    environment = {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, encoding="utf-8", env=environment
    )
    return done.stdout + done.stderr


def test_a_home_without_a_config_gets_one(home):
    assert install(home).changed
    assert (home / "config.yaml").read_text() == "memory:\n  provider: recall\n"


def test_all_that_a_config_says_stays(home):
    (home / "config.yaml").write_text(CONFIG, "utf-8")
    install(home)
    assert (home / "config.yaml").read_text("utf-8") == CONFIG.replace("provider: ''", "provider: recall")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("memory: {provider: honcho, x: 1}\n", "memory: {provider: recall, x: 1}\n"),
        ("memory:\n    # limits\n    x: 1\n", "memory:\n    # limits\n    provider: recall\n    x: 1\n"),
        ('memory:\n  provider: "mem0" # mine\n', "memory:\n  provider: recall # mine\n"),
        ("a: 1", "a: 1\nmemory:\n  provider: recall\n"),
        ("memory:\na: 1\n", "memory:\n  provider: recall\na: 1\n"),
        ("memory:\n  provider:\n  x: 1\n", "memory:\n  provider: recall\n  x: 1\n"),
        ("memory: {}  # none\nl:\n    - odd\n", "memory: {provider: recall}  # none\nl:\n    - odd\n"),
        ("memory: {x: 1}\nl:\n    - odd\n", "memory: {provider: recall, x: 1}\nl:\n    - odd\n"),
        ("memory: ~ # none\nl:\n    - odd\n", "memory: # none\n  provider: recall\nl:\n    - odd\n"),
        ("memory:\r\n\r\na: 1\r\n", "memory:\r\n  provider: recall\r\n\r\na: 1\r\n"),
        ("memory:", "memory:\n  provider: recall\n"),
    ],
)
def test_only_the_provider_is_changed(before, after):
    assert set_provider(before, "recall") == after


def test_installing_twice_changes_nothing(home):
    (home / "config.yaml").write_text(CONFIG, "utf-8")
    install(home)
    before = files_below(home)
    assert not install(home).changed
    assert files_below(home) == before


def test_uninstalling_gives_the_provider_from_before_back_and_keeps_memories(home, hosts):
    (home / "config.yaml").write_text(CONFIG.replace("''", "honcho"), "utf-8")
    assert install(home).before == "honcho"
    hosts.say(hosts.start(), "I live in Ghent")
    assert uninstall(home).changed
    assert (home / "config.yaml").read_text("utf-8") == CONFIG.replace("''", "honcho")
    assert not plugin_folder(home).exists()
    assert memory_file(home).exists()
    assert not uninstall(home).changed


@pytest.mark.parametrize(
    "config",
    [
        None,
        "",
        "model: x",
        CONFIG,
        CONFIG.replace("\n", "\r\n"),
        "\ufeff" + CONFIG,
        "memory:\n  memory_enabled: true\n",
        'a: 1\nmemory:\n  provider: ""\n',
        "memory:\n  provider:\n",
        "memory: {memory_enabled: true}\n",
        "known: &known\n  provider: mem0\nmemory:\n  <<: *known\n  user_char_limit: 9\n",
        "list:\n      - odd\nmemory: {}  # none\n",
        "list:\n      - odd\nmemory: {  }",
        "memory: ~ # none\nlist:\n      - odd\n",
        "memory:   # none\r\nlist:\r\n      - odd\r\n",
        "memory:\n        x: 1   # odd\n        provider: !!str mem0\nlist:\n - odd\n",
        "memory: {x: 1,\n  provider: >-\n   mem0\n  }\n".replace(">-\n   ", ""),
        "memory:\n  provider: >-\n    mem0\nlist:\n      - odd\n",
        "? memory\n: provider: mem0\n",
        '"memory":\n  "provider": mem0\n',
        "---\nmemory:\n  x: 1\n...\n",
        "# only a comment",
        "\n\n",
        "memory:\n\n  # odd\n\n  x: 1\n\n\n",
    ],
)
def test_uninstalling_gives_the_config_back_byte_by_byte(home, config):
    path = home / "config.yaml"
    path.unlink(missing_ok=True)
    if config is not None:
        path.write_bytes(config.encode())
    for _ in range(2):
        install(home)
        install(home)
        assert b"recall" in path.read_bytes()
        uninstall(home)
        assert (path.read_bytes() if path.exists() else None) == (None if config is None else config.encode())


def test_what_was_changed_in_the_config_meanwhile_stays(home):
    path = home / "config.yaml"
    path.write_bytes(b"model: x\r\n")
    install(home)
    path.write_bytes(path.read_bytes().replace(b"model: x", b"model: y"))
    uninstall(home)
    assert path.read_bytes() == b"model: y\r\nmemory:\r\n  provider: ''\r\n"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there, and there are no modes")
def test_a_config_that_is_a_link_stays_one_and_keeps_its_mode(home, tmp_path):
    real, path = tmp_path / "dotfiles.yaml", home / "config.yaml"
    real.write_text(CONFIG, "utf-8")
    real.chmod(0o640)
    path.unlink(missing_ok=True)
    path.symlink_to(real)
    install(home)
    assert path.is_symlink()
    assert "provider: recall" in real.read_text("utf-8")
    assert real.stat().st_mode & 0o777 == 0o640
    uninstall(home)
    assert path.is_symlink()
    assert real.read_text("utf-8") == CONFIG


def test_a_config_that_is_not_in_utf8_is_left_alone(home, capsys):
    path = home / "config.yaml"
    path.write_bytes(b"model: caf\xe9\n")
    assert main(["install", "--home", str(home)]) == 2
    assert "UTF-8" in capsys.readouterr().err
    assert path.read_bytes() == b"model: caf\xe9\n"
    assert not plugin_folder(home).exists()


@pytest.mark.parametrize("config", [None, CONFIG, "memory: {}"])
def test_a_dry_run_shows_what_would_change_and_changes_nothing(home, capsys, config):
    path = home / "config.yaml"
    path.unlink(missing_ok=True)
    if config is not None:
        path.write_text(config, "utf-8")
    before = files_below(home)
    assert main(["install", "--dry-run", "--home", str(home)]) == 0
    shown = capsys.readouterr().out
    assert "provider: recall" in shown
    assert "plugin.yaml" in shown
    assert files_below(home) == before
    install(home)
    installed = files_below(home)
    assert main(["install", "--dry-run", "--home", str(home)]) == 0
    assert "nothing would be changed" in capsys.readouterr().out
    assert main(["uninstall", "--dry-run", "--home", str(home)]) == 0
    assert "deleted" in capsys.readouterr().out
    assert files_below(home) == installed
    uninstall(home)
    assert files_below(home) == before
    assert main(["uninstall", "--dry-run", "--home", str(home)]) == 0
    assert "nothing would be changed" in capsys.readouterr().out


def test_the_core_s_command_installs_and_uninstalls_too(home):
    (home / "config.yaml").write_text(CONFIG, "utf-8")
    before = files_below(home)

    def recall(*arguments):
        return CliRunner().invoke(command, [*arguments, "hermes"])

    assert "+  provider: recall" in recall("install", "--dry-run").output
    assert files_below(home) == before
    assert recall("install").exit_code == 0
    assert plugin_folder(home).is_dir()
    assert "-  provider: recall" in recall("uninstall", "--dry-run").output
    assert recall("uninstall").exit_code == 0
    assert files_below(home) == before


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_a_config_that_is_read_only_is_left_alone_and_nothing_else_is_written(home, capsys):
    path = home / "config.yaml"
    path.write_text(CONFIG, "utf-8")
    path.chmod(0o400)
    before = files_below(home)
    assert main(["install", "--home", str(home)]) == 2
    assert "read-only" in capsys.readouterr().err
    assert files_below(home) == before


def test_what_an_interrupted_uninstallation_has_left_is_in_nobodys_way(home):
    bytecode = plugin_folder(home) / "__pycache__"
    bytecode.mkdir(parents=True)
    (bytecode / "cli.cpython-311.pyc").write_bytes(b"x")
    assert install(home).changed
    assert uninstall(home).changed
    assert not plugin_folder(home).exists()


def test_another_plugin_of_the_name_keeps_the_config_from_being_changed_back(home, capsys):
    install(home)
    (plugin_folder(home) / "__init__.py").write_text("# MemoryProvider of somebody else")
    before = files_below(home)
    assert main(["uninstall", "--home", str(home)]) == 2
    assert "another plugin" in capsys.readouterr().err
    assert files_below(home) == before


def test_another_provider_that_was_chosen_meanwhile_stays(home):
    install(home)
    (home / "config.yaml").write_text("memory:\n  provider: mem0\n")
    uninstall(home)
    assert (home / "config.yaml").read_text() == "memory:\n  provider: mem0\n"


def test_what_is_not_ours_is_left_alone(home, capsys):
    plugin_folder(home).mkdir(parents=True)
    (plugin_folder(home) / "__init__.py").write_text("# MemoryProvider of somebody else")
    before = files_below(home)
    assert main(["install", "--home", str(home)]) == 2
    assert main(["uninstall", "--home", str(home)]) == 2
    assert "another plugin" in capsys.readouterr().err
    assert files_below(home) == before


@pytest.mark.parametrize("broken", ["memory: [unclosed", "- a list", "memory: words"])
def test_a_config_that_can_not_be_read_is_left_alone(home, capsys, broken):
    (home / "config.yaml").write_text(broken)
    assert main(["install", "--home", str(home)]) == 2
    assert "config.yaml" in capsys.readouterr().err
    assert files_below(home) == {(home / "config.yaml").relative_to(home): broken.encode()}


def test_a_profile_has_a_home_of_its_own(home, monkeypatch, capsys):
    monkeypatch.delenv("HERMES_HOME")
    root = find_profile_home(None, "default")
    folder = root / "profiles" / "coder"
    folder.mkdir(parents=True)
    assert main(["install", "--profile", "coder"]) == 0
    assert plugin_folder(folder).is_dir()
    assert not plugin_folder(root).exists()
    assert main(["install", "--profile", "nobody"]) == 2
    assert "there is no profile 'nobody'" in capsys.readouterr().err


def test_the_plugin_imports_nothing_before_it_is_called(home):
    """Hermes, asked by two users at once, takes a module that is still being loaded for one without a provider."""
    install(home)
    code = f"""if True:
        import runpy, sys
        for name in ("__init__", "cli"):
            assert runpy.run_path({str(plugin_folder(home))!r} + "/" + name + ".py")
        print(sorted(name for name in sys.modules if "recall" in name))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_hermes_shows_the_provider_and_runs_its_commands(home, hosts):
    install(home)
    hosts.say(hosts.start(), "The boiler stands in the cellar", "I see.")
    hosts.close()
    shown = hermes("memory", "status")
    assert "Provider:  recall" in shown
    assert "available ✓" in shown
    assert str(memory_file(home)) in shown
    status = hermes("recall", "status")
    assert "memories:             2" in status
    assert "last failure:         none" in status
    assert "The boiler stands in the cellar" in hermes("recall", "search", "where is the boiler")
    assert "All is well." in hermes("recall", "doctor")


def test_hermes_memory_setup_needs_no_answers(home):
    install(home)
    (home / "config.yaml").write_text("memory:\n  provider: ''\n")
    assert "Memory provider: recall" in hermes("memory", "setup", "recall")
    assert "provider: recall" in (home / "config.yaml").read_text()


def test_the_commands_say_what_is_wrong(home, capsys):
    assert main(["--home", str(home), "status"]) == 0
    assert "nothing has been remembered" in capsys.readouterr().out
    memory_file(home).parent.mkdir()
    memory_file(home).write_text("no database, but a text that is long enough to be read as one" * 20)
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(home), "status"])
    assert ended.value.code == 2
    assert "memory.db" in capsys.readouterr().err


def test_a_renamed_profile_keeps_its_memories(home, hosts, capsys):
    for session, given in (("a", {}), ("b", telegram("1"))):
        hosts.say(hosts.start(session, **given), f"I live in Ghent, says {session}")
    hosts.close()
    assert main(["--home", str(home), "rename-profile", "default", "coder/2"]) == 0
    assert "4 memories" in capsys.readouterr().out
    renamed = {"agent_identity": "coder/2"}
    assert "says a" in hosts.start("c", **renamed).prefetch_all("Where do I live?")
    assert "says b" in hosts.start("d", **{**telegram("1"), **renamed}).prefetch_all("Where do I live?")
    assert hosts.start("e").prefetch_all("Where do I live?") == ""
