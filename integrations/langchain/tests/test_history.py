"""The message history beyond the contract: streams, odd contents, searching, windows, messages of others."""

from __future__ import annotations

import pytest
from agents import scripted
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from recall_core import Memory
from recall_langchain import RecallChatMessageHistory, RecallRetriever


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory.db") as memory:
        yield memory


@pytest.fixture
def history(memory):
    return RecallChatMessageHistory("talk", memory)


def contents(messages) -> list[str]:
    return [message.content for message in messages]


# Streams


def test_the_parts_of_a_streamed_message_become_one(history):
    history.add_messages([HumanMessage("Hi."), AIMessageChunk("Good ", id="a"), AIMessageChunk("morn", id="a")])
    history.add_message(AIMessageChunk("ing.", id="a"))
    history.add_message(AIMessageChunk("Another.", id="b"))
    assert contents(history.messages) == ["Hi.", "Good morning.", "Another."]
    assert history.search("Good morning", k=1)[0].content == "Good morning."


def test_parts_without_an_id_are_kept_apart(history):
    history.add_messages([AIMessageChunk("a"), AIMessageChunk("b")])
    assert contents(history.messages) == ["a", "b"]


def test_calls_of_tools_in_a_stream_are_whole_again(history):
    for arguments in ('{"q": ', '"tea"}'):
        chunk = {"name": "find" if arguments.startswith("{") else None, "args": arguments, "id": None, "index": 0}
        history.add_message(AIMessageChunk("", id="a", tool_call_chunks=[chunk]))
    (message,) = history.messages
    assert message.tool_calls[0]["args"] == {"q": "tea"}


async def test_a_chain_that_streams_leaves_one_message(memory):
    chain = RunnableWithMessageHistory(
        scripted("Good morning, how are you?"), lambda session_id: RecallChatMessageHistory(session_id, memory)
    )
    config = {"configurable": {"session_id": "s"}}
    assert [part async for part in chain.astream([HumanMessage("Hi.")], config)]
    assert contents(RecallChatMessageHistory("s", memory).messages) == ["Hi.", "Good morning, how are you?"]


# Contents


def test_what_json_can_not_hold_is_noted_and_the_rest_is_kept(history):
    artifact = {"table": object(), "number": float("nan"), "pair": (1, 2)}
    history.add_messages([ToolMessage("done", tool_call_id="1", artifact=artifact)])
    (message,) = history.messages
    assert message.content == "done"
    assert message.artifact == {"table": {"not_stored": "builtins.object"}, "number": "nan", "pair": [1, 2]}


def test_a_message_longer_than_a_record_comes_back_whole(history):
    long = "The boiler is in the cellar. " + "x" * 1_000_000 + " The end."
    history.add_messages([HumanMessage(long), AIMessage("I see.")])
    assert contents(history.messages) == [long, "I see."]
    assert contents(history.search("Where is the boiler?", k=1)) == [long]


def test_a_role_that_no_record_can_have_is_kept_in_the_message(history):
    history.add_messages([ChatMessage("hello", role="x" * 600), ChatMessage("hello", role="a\nb")])
    assert [message.role for message in history.messages] == ["x" * 600, "a\nb"]


def test_many_messages_stay_in_their_order(history):
    history.add_messages([HumanMessage(str(number)) for number in range(600)])
    history.add_ai_message("end")
    assert contents(history.messages) == [*map(str, range(600)), "end"]


def test_all_messages_of_a_call_are_kept_or_none(history):
    class Odd(HumanMessage):
        @property
        def text(self):
            raise RuntimeError("no text")

    with pytest.raises(RuntimeError):
        history.add_messages([HumanMessage("a"), Odd("b")])
    assert history.messages == []


def test_the_next_part_of_a_stream_is_kept_with_what_follows_it_or_neither_is(history):
    class Odd(HumanMessage):
        @property
        def text(self):
            raise RuntimeError("no text")

    history.add_message(AIMessageChunk("Good ", id="a"))
    with pytest.raises(RuntimeError):
        history.add_messages([AIMessageChunk("morning.", id="a"), Odd("b")])
    assert contents(history.messages) == ["Good "]
    history.add_messages([AIMessageChunk("morning.", id="a"), HumanMessage("Hello.")])
    assert contents(history.messages) == ["Good morning.", "Hello."]


def test_secrets_are_kept_unless_they_are_to_be_taken_out(memory):
    key = "sk-proj-" + "a1B2c3D4e5" * 5
    for session, redact in (("kept", False), ("safe", True)):
        history = RecallChatMessageHistory(session, memory, redact=redact)
        history.add_user_message(f"My key is {key}")
        assert (key in history.messages[0].content) is not redact


# Searching and windows


async def test_messages_are_found_in_this_conversation_or_in_all(memory, history):
    history.add_messages([HumanMessage("My cat is called Mo."), AIMessage("A lovely name.")])
    other = RecallChatMessageHistory("other", memory)
    other.add_messages([HumanMessage("My dog is called Rex.")])
    assert history.search("What is the cat's name?", k=1) == history.messages[:1]
    assert contents(other.search("cat")) == ["My dog is called Rex."]
    assert contents(await other.asearch("cat", k=1, all_sessions=True)) == ["My cat is called Mo."]


def test_a_window_begins_with_the_user_and_keeps_calls_with_their_results(history):
    call = ToolCall(name="find", args={}, id="1", type="tool_call")
    history.add_messages(
        [
            SystemMessage("Be kind."),
            HumanMessage("First."),
            AIMessage("", tool_calls=[call]),
            ToolMessage("result", tool_call_id="1"),
            AIMessage("Found."),
            HumanMessage("Second."),
            AIMessage("Yes."),
        ]
    )
    assert contents(history.window(5)) == ["Be kind.", "Second.", "Yes."]
    assert contents(history.window(100)) == contents(history.messages)


def test_reading_the_whole_history_is_not_cut(history):
    history.add_messages([HumanMessage("x")] * 120)
    assert len(history.messages) == 120


# Scopes, sessions, others' records


def test_sessions_of_the_same_name_in_two_scopes_are_two(memory):
    one, below = (RecallChatMessageHistory("s", memory, scope=scope) for scope in ("a", "a/b"))
    one.add_user_message("one")
    below.add_user_message("below")
    one.clear()
    assert (one.messages, contents(below.messages)) == ([], ["below"])
    assert memory.deleted() == []


def test_messages_that_others_stored_are_messages_too(memory, history):
    session = memory.session("talk")
    for role in ("user", "assistant", "system", "tool", "critic"):
        session.append(role, f"from {role}")
    memory.add("a note", session="talk")
    assert [message.type for message in history.messages] == ["human", "ai", "system", "tool", "chat"]
    assert contents(history.messages)[0] == "from user"


def test_a_history_of_another_connection_sees_what_was_added(tmp_path):
    path = tmp_path / "memory.db"
    RecallChatMessageHistory("s", path).add_user_message("kept")
    with RecallChatMessageHistory("s", path) as history:
        assert contents(history.messages) == ["kept"]


@pytest.mark.parametrize("session", ["a\nb", "a\0", "x" * 600, "x" * 601, "derived:" + "0" * 32])
def test_any_string_can_be_the_id_of_a_conversation(memory, session):
    history = RecallChatMessageHistory(session, memory)
    history.add_user_message("My locker code is 4711.")
    RecallChatMessageHistory(session + "'", memory).add_user_message("Mine is 1234.")
    assert history.session_id == session
    assert contents(history.messages) == contents(history.search("locker code")) == ["My locker code is 4711."]
    found = RecallRetriever(memory=memory, session=session).invoke("locker code")
    assert [document.page_content for document in found] == ["My locker code is 4711."]
    history.clear()
    assert history.messages == []
    assert memory.count() == 1


@pytest.mark.parametrize("session", ["", None])
def test_an_id_that_is_none_is_refused(memory, session):
    with pytest.raises(ValueError, match="session"):
        RecallChatMessageHistory(session, memory)


def test_a_chain_keeps_the_words_of_both_sides(memory):
    chain = RunnableWithMessageHistory(
        RunnableLambda(lambda given: AIMessage(f"{len(given['past'])} before")),
        lambda session_id: RecallChatMessageHistory(session_id, memory),
        input_messages_key="question",
        history_messages_key="past",
    )
    for _ in range(2):
        chain.invoke({"question": "How many?"}, {"configurable": {"session_id": "s"}})
    said = contents(RecallChatMessageHistory("s", memory).messages)
    assert said == ["How many?", "0 before", "How many?", "2 before"]


def test_a_search_takes_the_where_of_the_core(tmp_path):
    with RecallChatMessageHistory("s", tmp_path / "memory.db") as history:
        history.add_messages([HumanMessage("The cat is called Tom."), AIMessage("Tom the cat: noted.")])
        where = {"@role": "assistant"}
        assert [found.type for found in history.search("the cat Tom", where=where)] == ["ai"]
