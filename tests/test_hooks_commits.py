"""Which commits a shell command makes, and what their messages say."""

from __future__ import annotations

import pytest

from recall_core.hooks.commits import find_messages

TRAILERS = "🤖 Generated with [Claude Code](https://claude.com/code)\n\nCo-Authored-By: Claude <a@example.com>"
COMMANDS = [
    ("git add . && git commit -m 'Use Redis for sessions'", ["Use Redis for sessions"]),
    (
        f"git commit -m \"$(cat <<'EOF'\nUse Redis\n\nIt is faster\n\n{TRAILERS}\nEOF\n)\"",
        ["Use Redis\n\nIt is faster"],
    ),
    ("git commit -F - <<'EOF'\nUse Redis\n\nIt is faster\nEOF", ["Use Redis\n\nIt is faster"]),
    ("cat <<EOF > notes.txt\nsome file content here\nEOF\ngit commit -am 'Add the notes'", ["Add the notes"]),
    ("git log --grep commit -m 5", []),
    ("echo 'git commit' && docker run -m 512m x", []),
    ("git tag -m 'version one' v1; grep commit x", []),
    ("git -C '/my repo' -c user.name=x commit -qam\"Fix the parser at last\"", ["Fix the parser at last"]),
    ("git commit --message='Move to UTC everywhere' --no-verify", ["Move to UTC everywhere"]),
    ("git commit -m 'Subject line' -m 'Body text here'", ["Subject line\n\nBody text here"]),
    ("git commit -m wip", []),
    ("git commit -m 修复登录", ["修复登录"]),
    ("git commit", []),
    ("git commit --amend --no-edit", []),
    ("git commit -m 'unclosed", []),
    ('git commit -m "$MSG is here"', []),
    ("git commit --dry-run -m 'Not yet done'", []),
    ("git commit -m 'One thing done' && git commit -m 'Another thing done'", ["One thing done", "Another thing done"]),
    ("git commit -m 'a; b && c | d'", ["a; b && c | d"]),
    ("GIT_AUTHOR_DATE=now git commit -m 'With a date'", ["With a date"]),
    ("git commit-tree -m 'no commit at all'", []),
    ("cd x\ngit commit -m 'On its own line'\ngit push -m x", ["On its own line"]),
    ("git commit -m 'Handle: $HOME and `ls`'", ["Handle: $HOME and `ls`"]),
    ("(cd sub && git commit -m 'In a subshell')", ["In a subshell"]),
    ("if true; then git commit -m 'Inside of an if'; fi", ["Inside of an if"]),
    ("git commit -m 'It'\"'\"'s quoted in parts'", ["It's quoted in parts"]),
    ("git commit -m 'First' --author='A B <a@b.c>'", []),
]


@pytest.mark.parametrize(("command", "messages"), COMMANDS)
def test_the_messages_of_the_commits_of_a_command_are_found(command, messages):
    assert list(find_messages(command)) == messages


def test_a_command_of_options_alone_takes_no_time_to_speak_of():
    assert list(find_messages("git " + "-c " * 5_000)) == []
