import json
import sqlite3
from datetime import UTC, datetime, timedelta

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_core.errors import InvalidInputError
from recall_core.filters import (
    MAX_CONDITIONS,
    MAX_DEPTH,
    OPERATORS,
    And,
    Condition,
    Not,
    Or,
    Selection,
    make_selection,
    matches,
    selects,
)
from recall_core.models import Record
from recall_core.store.compile import FOLD_FUNCTION, compile_filter, compile_selection, fold_text
from recall_core.times import to_micros

T = datetime(2026, 1, 31, tzinfo=UTC)
SCHEMA = """
CREATE TABLE record(
  id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, session TEXT, turn INTEGER, role TEXT, kind TEXT NOT NULL,
  text TEXT NOT NULL, payload TEXT, metadata TEXT NOT NULL, tags TEXT NOT NULL, source TEXT, importance REAL NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, accessed_at INTEGER, expires_at INTEGER)
"""


def open_apsw():
    connection = apsw.Connection(":memory:")
    connection.create_scalar_function(FOLD_FUNCTION, fold_text, 1, deterministic=True)
    connection.execute(SCHEMA)
    return connection


def open_stdlib():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function(FOLD_FUNCTION, 1, fold_text, deterministic=True)
    connection.execute(SCHEMA)
    return connection


def has_json():
    try:
        sqlite3.connect(":memory:").execute("SELECT value FROM json_each('[1]')").close()
    except sqlite3.OperationalError:
        return False
    return True


needs_json = pytest.mark.skipif(not has_json(), reason="this Python's sqlite3 has no JSON functions")


@pytest.fixture(scope="module", params=[open_apsw, pytest.param(open_stdlib, marks=needs_json)])
def connection(request):
    connection = request.param()
    yield connection
    connection.close()


def micros(time):
    return None if time is None else to_micros(time)


def store(connection, records, *, ascii_only=False):
    connection.execute("DELETE FROM record")
    rows = [
        (
            r.id, r.scope, r.session, r.turn, r.role, r.kind, r.text, None,
            json.dumps(dict(r.metadata), ensure_ascii=ascii_only), json.dumps(r.tags, ensure_ascii=ascii_only),
            r.source, r.importance, *map(micros, (r.created_at, r.updated_at, r.accessed_at, r.expires_at)),
        )
        for r in records
    ]  # fmt: skip
    connection.executemany(f"INSERT INTO record VALUES ({', '.join('?' * 16)})", rows)


def find(connection, clause):
    rows = list(connection.execute(f"SELECT id, {clause.sql} FROM record", (*clause.bindings,)))
    assert {value for _, value in rows} <= {0, 1}
    return {id_ for id_, value in rows if value}


def make_record(index=0, metadata=None, **fields):
    fields = {"text": "", "created_at": T, "updated_at": T, **fields}
    return Record(id=f"r{index}", metadata=metadata or {}, **fields)


# Values that meet each other often, and near misses. Integers stop where floats get coarser than SQLite's reading of
# long digit strings is exact; beyond, an integer and a float may differ by one unit in the last place.
STRINGS = [
    "",
    "a",
    "ab",
    "A",
    "1",
    "true",
    "null",
    "[]",
    "b%",
    "ß",
    "SS",
    "ﬁ",
    "fi",
    "é",
    "e\u0301",
    "研究",
    "研究团队",
    "😀",
]
NUMBERS = [
    0, 1, -1, 1.0, -0.0, 0.1, 254.95411, 859.06644, 1e22, 10**22, 5e-324, 1.7976931348623157e308, 2**53, 2**53 + 1,
    float(2**53), 2**63 - 1, 2**63, float(2**63), -(2**63), -(2**63) - 1, 2**64,
]  # fmt: skip
texts = st.sampled_from(STRINGS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)
numbers = (
    st.sampled_from(NUMBERS)
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1000, 1000)
)
scalars = st.none() | st.booleans() | texts | numbers
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2), max_leaves=5
)
keys = st.sampled_from(["k", "路径", "a.b", 'a"b', "a'b", "a\\b", "@x", "$y", "", "0", "x') OR 1=1 --"])
times = st.sampled_from([T + timedelta(microseconds=n) for n in (-1, 0, 1)] + [T - timedelta(days=20_000)])
names = st.sampled_from(STRINGS)
scopes = st.sampled_from(
    ["", "a", "ab", "a/b", "a/b/c", "a0", "a.", "A", "b", "研究团队", "研究团队/甲", "研究", "a/😀"]
)
turns = st.sampled_from([0, 1, 2, -1, 2**40])
importances = st.sampled_from([0.0, 0.1, 0.5, 1.0]) | st.floats(0, 1)
records = st.lists(
    st.builds(
        make_record,
        st.integers(),
        st.dictionaries(keys, values, max_size=4),
        scope=scopes,
        session=st.none() | names,
        turn=st.none() | turns,
        role=st.none() | names,
        kind=names,
        text=texts,
        tags=st.lists(names, max_size=3).map(tuple),
        source=st.none() | names,
        importance=importances,
        created_at=times,
        updated_at=times,
        accessed_at=st.none() | times,
        expires_at=st.none() | times,
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda record: record.id,
)
FIELDS = {
    **dict.fromkeys(["@id", "@scope", "@session", "@role", "@kind", "@text", "@source"], names),
    **dict.fromkeys(["@turn", "@importance"], turns | importances | st.just(2**70)),
    **dict.fromkeys(["@created_at", "@updated_at", "@accessed_at", "@expires_at"], times),
}


def conditions_on(field, operands, ordered, *, null):
    scalar = st.none() | operands if null else operands
    listed = st.lists(scalar, max_size=3)
    by_operator = {
        **dict.fromkeys(["eq", "ne"], scalar),
        **dict.fromkeys(["gt", "gte", "lt", "lte"], ordered),
        **dict.fromkeys(["in", "not_in", "any", "all"], listed),
        "is_empty": st.booleans(),
        "text_match": names,
        "contains": names if field.startswith("@") and not field.startswith("@@") else scalar,
    }
    allowed = [operator for operator in OPERATORS if operator in by_operator]
    if field in ("@turn", "@importance") or field.endswith("_at"):
        allowed = [operator for operator in allowed if operator not in ("contains", "text_match")]
    if field == "@tags":
        allowed = ["any", "all", "contains", "is_empty"]
    return st.sampled_from(allowed).flatmap(lambda o: st.builds(Condition, st.just(field), st.just(o), by_operator[o]))


def on_metadata(key):
    field = "@" + key if key.startswith("@") else key
    return conditions_on(field, scalars, texts | numbers, null=True)


conditions = st.one_of(
    keys.flatmap(on_metadata),
    keys.flatmap(on_metadata),
    st.sampled_from(sorted(FIELDS)).flatmap(lambda f: conditions_on(f, FIELDS[f], FIELDS[f], null=True)),
    conditions_on("@tags", names, names, null=False),
)
filters = st.recursive(
    conditions,
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=3)) | st.builds(Or, st.lists(inner, max_size=3)) | st.builds(Not, inner)
    ),
    max_leaves=5,
)
selections = st.builds(
    make_selection,
    now=times,
    scope=scopes,
    where=st.none() | filters,
    session=st.none() | names,
    roles=st.none() | st.lists(names, max_size=3),
    tags=st.none() | st.lists(names, max_size=3),
    since=st.none() | times,
    until=st.none() | times,
)


@settings(max_examples=400, deadline=None)
@given(records=records, filter=filters)
def test_sql_and_python_agree_on_filters(connection, records, filter):
    store(connection, records)
    assert find(connection, compile_filter(filter)) == {r.id for r in records if matches(filter, r)}


@settings(max_examples=200, deadline=None)
@given(records=records, selection=selections)
def test_sql_and_python_agree_on_selections(connection, records, selection):
    store(connection, records)
    assert find(connection, compile_selection(selection)) == {r.id for r in records if selects(selection, r)}


@settings(max_examples=100, deadline=None)
@given(records=records, filter=filters)
def test_escapes_in_stored_json_change_nothing(connection, records, filter):
    store(connection, records, ascii_only=True)
    assert find(connection, compile_filter(filter)) == {r.id for r in records if matches(filter, r)}


@settings(deadline=None)
@given(records=records, scope=scopes, filter=filters)
def test_no_filter_reaches_outside_the_scope(connection, records, scope, filter):
    store(connection, records)
    clause = compile_selection(Selection(scope=scope, where=Or([filter, And([])]), now=0, ignores_expiry=True))
    inside = {r.id for r in records if f"{r.scope}/".startswith(f"{scope}/" if scope else "")}
    assert find(connection, clause) == inside


@pytest.mark.parametrize("stored", STRINGS + NUMBERS + [None, True, False], ids=repr)
def test_every_scalar_finds_itself(connection, stored):
    store(connection, [make_record(0, {"k": stored}), make_record(1, {"k": [stored]})])
    assert find(connection, compile_filter(Condition("k", "eq", stored))) == {"r0"}
    assert find(connection, compile_filter(Condition("k", "any", [stored]))) == {"r0", "r1"}
    assert find(connection, compile_filter(Condition("k", "all", [stored, stored]))) == {"r0", "r1"}


@given(numbers)
def test_a_number_finds_itself_however_sqlite_reads_it(number):
    connection = open_apsw()
    store(connection, [make_record(0, {"k": [number]}), make_record(1, {"k": number})])
    for condition in (Condition("k", "any", [number]), And([Condition("k", o, number) for o in ("eq", "gte", "lte")])):
        assert "r1" in find(connection, compile_filter(condition))
    connection.close()


def test_blanks_in_stored_json_change_nothing(connection):
    store(connection, [make_record(0)])
    connection.execute("""UPDATE record SET metadata = ' { "k" : [ ] , "m" : { } , "n" : [ "a" , 1.50 ] } '""")
    empty = [Condition(key, "is_empty") for key in ("k", "m", "missing")]
    assert find(connection, compile_filter(And([*empty, Condition("n", "all", ["a", 1.5])]))) == {"r0"}


@pytest.mark.parametrize("operator", ["in", "not_in", "any", "all"])
@pytest.mark.parametrize("field", ["k", "@source"])
def test_a_list_may_be_longer_than_sqlite_has_bindings(connection, field, operator):
    store(connection, [make_record(0, {"k": "v39999"}, source="v39999"), make_record(1, {"k": "x"}, source="x")])
    found = find(connection, compile_filter(Condition(field, operator, [f"v{n}" for n in range(40_000)])))
    assert found == {"in": {"r0"}, "any": {"r0"}, "not_in": {"r1"}, "all": set()}[operator]


def test_as_many_conditions_as_allowed_can_be_run(connection):
    store(connection, [make_record(0, {"k": 1})])
    filter = Or([Condition("k", "contains", "a")] * (MAX_CONDITIONS - 1) + [Condition("k", "any", [1])])
    assert find(connection, compile_selection(make_selection(scope="", where=filter, now=T))) == {"r0"}


def test_a_filter_as_deep_as_allowed_can_be_run():
    connection = open_apsw()  # an old SQLite of the standard library has a fixed parser stack
    store(connection, [make_record(0, {"k": 1})])
    filter = leaf = Condition("k", "all", [1])
    for level in range(MAX_DEPTH - 1):
        filter = And([leaf, filter]) if level % 2 else Or([Condition("k", "any", ["x", None]), filter])
    with pytest.raises(InvalidInputError):
        Not(filter)
    assert find(connection, compile_selection(make_selection(scope="", where=filter, now=T))) == {"r0"}
    connection.close()


@pytest.mark.parametrize("hostile", ["x' OR '1'='1", '"; DROP TABLE record; --', "?", ":a", "%s", "{}", "{0}"])
def test_keys_and_values_never_become_sql(connection, hostile):
    record = make_record(0, {hostile: hostile}, session=hostile, tags=(hostile,), scope="a")
    store(connection, [record, make_record(1)])
    clause = compile_selection(
        make_selection(scope="a", session=hostile, tags=hostile, where={hostile: {"$text": hostile}}, now=T)
    )
    assert hostile not in clause.sql or hostile == "?"
    assert find(connection, clause) == {"r0"}


@given(selections)
def test_a_clause_can_stand_in_a_format_string_and_beside_others(selection):
    clause = compile_selection(selection)
    assert not set("{}%") & set(clause.sql)
    assert clause.sql.count("?") == len(clause.bindings)


def test_an_index_on_scope_serves_a_selection():
    connection = open_apsw()
    connection.execute("CREATE INDEX record_scope ON record(scope, created_at)")
    clause = compile_selection(make_selection(scope="研究团队", where={"lang": "zh"}, now=T))
    plan = [
        row[3]
        for row in connection.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM record WHERE {clause.sql}", clause.bindings)
    ]
    assert "SEARCH record USING INDEX record_scope (scope=?)" in plan
    assert "SEARCH record USING INDEX record_scope (scope>? AND scope<?)" in plan
    connection.close()
