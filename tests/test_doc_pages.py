"""What doc_pages.py reads from a page."""

from __future__ import annotations

from doc_pages import anchors, blocks_to_run, links, shell_script

FENCE = "```"


def page(text: str) -> str:
    return text.replace("~~~", FENCE)


def test_a_text_block_right_below_is_the_output():
    (block,) = blocks_to_run(page("# A\n\n~~~python\nprint(1)\n~~~\n\n~~~text\n1\n~~~\n"))
    assert (block.code, block.line, block.output) == ("print(1)\n", 4, "1\n")


def test_a_text_block_below_other_words_is_no_output():
    (block,) = blocks_to_run(page("~~~python\nprint(1)\n~~~\nThe picture:\n~~~text\na -> b\n~~~\n"))
    assert block.output is None


def test_a_block_may_be_left_out_with_a_reason():
    assert blocks_to_run(page("<!-- not run: needs a server -->\n~~~python\n1 / 0\n~~~\n")) == []


def test_only_shell_blocks_that_call_recall_run():
    found = blocks_to_run(page("~~~bash\nmake demo\n~~~\n~~~bash\necho a | recall add -\n~~~\n~~~json\n{}\n~~~\n"))
    assert [block.code for block in found] == ["echo a | recall add -\n"]


def test_installing_commands_do_nothing_in_a_script():
    (block,) = blocks_to_run(page("~~~bash\npip install dualrecall\nrecall stats\n~~~\n"))
    assert "pip() { :; }" in shell_script(block)


def test_a_console_block_is_a_list_of_commands_with_their_output():
    text = page("~~~console\n$ recall add \\\n    hello\nadded\n$ ls\n$ recall stats\n~~~\n")
    found = blocks_to_run(text)
    assert [(block.code, block.line, block.output) for block in found] == [
        ("recall add \\\n    hello\n", 2, "added\n"),
        ("recall stats\n", 6, None),
    ]


def test_a_block_in_a_list_loses_its_indent():
    (block,) = blocks_to_run(page("1. first\n   ~~~python\n   if True:\n       print(1)\n   ~~~\n"))
    assert block.code == "if True:\n    print(1)\n"


def test_links_to_other_sites_and_in_code_are_no_concern():
    text = page("[a](docs/a.md#b) [c](https://example.org) ![d](e.png)\n~~~text\n[x](y)\n~~~\n")
    assert links(text) == ["docs/a.md#b", "e.png"]


def test_headings_get_the_anchors_of_github(tmp_path):
    (tmp_path / "a.md").write_text("# Why `where=`, and how?\n## 中文 搜索\n## Same\n## Same\n", "utf-8")
    assert anchors(tmp_path / "a.md") == {"why-where-and-how", "中文-搜索", "same", "same-1"}
