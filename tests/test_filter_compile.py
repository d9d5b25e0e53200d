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
    RECORD_FIELDS,
    And,
    Condition,
    Not,
    Or,
    Selection,
    make_selection,
    matches,
    resolve_field,
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


# Values that meet each other often, and near misses.
STRINGS = [
    "",
    "a",
    "ab",
    "A",
    "b%",
    "1",
    "true",
    "null",
    "[]",
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
SCALARS = [*STRINGS, *NUMBERS, None, True, False]
NESTED = [
    [1],
    [],
    {},
    [[]],
    [{}],
    {"a": 1},
    {"a": "a"},
    ["a", "A"],
    ["a", 1, True, None],
    [["a"], "ab"],
    [1.0, "1"],
    ["[]", ""],
]
SCOPES = ["", "a", "ab", "a/b", "a/b/c", "a0", "a.", "A", "b", "研究团队", "研究团队/甲", "研究", "a/😀"]
TIMES = [T, T + timedelta(microseconds=1), T - timedelta(microseconds=1), T - timedelta(days=20_000)]
TURNS = [0, 1, 2, -1, 2**40]
OPERANDS = {
    None: SCALARS,
    "text": [*STRINGS, *SCOPES, None],
    "number": [*TURNS, 0.1, 0.5, 1.0, 2**70, None],
    "time": [*TIMES, None],
    "list": STRINGS,
}


def make_condition(field, operator, value):
    try:
        return Condition(field, operator, value)
    except InvalidInputError:
        return None


def make_conditions(field, operator):
    """Return the conditions of a field and an operator with every value there is to compare with."""
    scalars = OPERANDS[resolve_field(field)[1]]
    lists = [[], *([x] for x in scalars), *([x, y] for x, y in zip(scalars, scalars[3:], strict=False))]
    made = [make_condition(field, operator, value) for value in [*scalars, *lists]]
    return [condition for condition in made if condition is not None]


def make_corpus():
    """Return records that hold every value somewhere."""
    stored = [{"k": value} for value in [*SCALARS, *NESTED]] + [{}, {"@k": 1}, {"kk": "a"}]
    names, turns, times = [*STRINGS, None], [*TURNS, None], [*TIMES, None]
    return [
        make_record(
            n,
            metadata,
            scope=SCOPES[n % len(SCOPES)],
            session=names[n % len(names)],
            role=names[-n % len(names)],
            kind=STRINGS[n % len(STRINGS)],
            text=STRINGS[-n % len(STRINGS)],
            source=names[n * 7 % len(names)],
            turn=turns[n % len(turns)],
            importance=[0.0, 0.1, 0.5, 1.0][n % 4],
            tags=tuple(STRINGS[n : n + n % 4]),
            created_at=TIMES[n % 4],
            updated_at=TIMES[-n % 4],
            accessed_at=times[n % 5],
            expires_at=times[-n % 5],
        )
        for n, metadata in enumerate(stored)
    ]


# Integers stop where SQLite's reading of long digit strings is no longer exact on every platform.
texts = st.sampled_from(STRINGS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)
numbers = st.sampled_from(NUMBERS) | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.sampled_from(SCALARS) | texts | numbers
values = st.sampled_from([*SCALARS, *NESTED]) | st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2), max_leaves=5
)
keys = st.sampled_from(["k", "路径", "a.b", 'a"b', "a'b", "a\\b", "@x", "$y", "", "0", "x') OR 1=1 --"])
times = st.sampled_from(TIMES)
names = st.sampled_from(STRINGS)
scopes = st.sampled_from(SCOPES)
records = st.lists(
    st.builds(
        make_record,
        st.integers(),
        st.dictionaries(keys, values, max_size=4),
        scope=scopes,
        session=st.none() | names,
        turn=st.none() | st.sampled_from(TURNS),
        role=st.none() | names,
        text=texts,
        tags=st.lists(texts, max_size=3).map(tuple),
        importance=st.floats(0, 1),
        created_at=times,
        expires_at=st.none() | times,
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda record: record.id,
)


@st.composite
def conditions(draw):
    field = draw(st.sampled_from([f"@{name}" for name in RECORD_FIELDS]) | keys.map(lambda k: k.replace("@", "@@")))
    kind = resolve_field(field)[1]
    operand = st.sampled_from(OPERANDS[kind]) | scalars if kind is None else st.sampled_from(OPERANDS[kind])
    operator = draw(st.sampled_from(OPERATORS))
    value = draw(st.lists(operand, max_size=3) if operator in ("in", "not_in", "any", "all") else operand)
    return make_condition(field, operator, value) or Condition(field, "is_empty", value is None)


filters = st.recursive(
    conditions(),
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


@pytest.mark.parametrize("field", ["k", "@@k", *(f"@{name}" for name in RECORD_FIELDS)])
def test_every_operator_agrees_on_every_pair_of_values(connection, field):
    records = make_corpus()
    store(connection, records)
    for condition in (c for operator in OPERATORS for c in make_conditions(field, operator)):
        found = find(connection, compile_filter(condition))
        assert found == {r.id for r in records if matches(condition, r)}, condition


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_seen_with_its_subtree_only(connection, scope):
    records = [make_record(n, scope=inner) for n, inner in enumerate(SCOPES)]
    store(connection, records)
    selection = make_selection(scope=scope, now=T)
    found = find(connection, compile_selection(selection))
    assert found == {r.id for r in records if selects(selection, r)}
    assert found == {r.id for r in records if not scope or r.scope == scope or r.scope.startswith(scope + "/")}


@settings(max_examples=150, deadline=None)
@given(records=records, filter=filters)
def test_sql_and_python_agree_on_filters(connection, records, filter):
    store(connection, records)
    assert find(connection, compile_filter(filter)) == {r.id for r in records if matches(filter, r)}


@settings(max_examples=100, deadline=None)
@given(records=records, selection=selections)
def test_sql_and_python_agree_on_selections(connection, records, selection):
    store(connection, records)
    assert find(connection, compile_selection(selection)) == {r.id for r in records if selects(selection, r)}


def test_escapes_in_stored_json_change_nothing(connection):
    metadata = {'路径"': "研究😀\n", "tags": ["é\t"]}
    store(connection, [make_record(0, metadata, tags=("团队",))], ascii_only=True)
    where = {'路径"': "研究😀\n", "tags": {"$any": ["é\t"]}, "@tags": {"$all": ["团队"]}}
    assert find(connection, compile_selection(make_selection(where=where, now=T))) == {"r0"}


@settings(max_examples=50, deadline=None)
@given(records=records, scope=scopes, filter=filters)
def test_no_filter_reaches_outside_the_scope(connection, records, scope, filter):
    store(connection, records)
    clause = compile_selection(Selection(scope=scope, where=Or([filter, And([])]), now=0, ignores_expiry=True))
    inside = {r.id for r in records if f"{r.scope}/".startswith(f"{scope}/" if scope else "")}
    assert find(connection, clause) == inside


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
