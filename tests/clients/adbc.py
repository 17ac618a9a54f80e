"""Drives a server with the official ADBC Flight SQL driver, as its users do. Every check must hold.

usage: adbc.py URI [TOKEN]
"""

import concurrent.futures
import datetime
import decimal
import sys
import uuid

import adbc_driver_manager
import pyarrow
from adbc_driver_flightsql import DatabaseOptions, dbapi

URI = sys.argv[1]
TOKEN = sys.argv[2] if len(sys.argv) > 2 else None
CHECKS = []


def connect(options=None):
    options = dict(options or {})
    if TOKEN:
        # Basic credentials: the driver shakes hands and goes on with the bearer token it is given.
        options[adbc_driver_manager.DatabaseOptions.USERNAME.value] = "anybody"
        options[adbc_driver_manager.DatabaseOptions.PASSWORD.value] = TOKEN
    return dbapi.connect(URI, db_kwargs=options, autocommit=True)


def check(function):
    CHECKS.append(function)
    return function


def rows(sql, options=None):
    with connect(options) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def refusal(sql):
    try:
        rows(sql)
    except dbapi.Error as error:
        return error
    raise AssertionError(f"no error from {sql}")


@check
def values_arrive_with_their_types():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "select cast(1 as bigint) i, 1.5e0 d, 'x' s, true b, date '2024-02-03' dt, "
            "timestamp '2024-02-03 04:05:06' ts, cast(null as int) n, [1, 2] l"
        )
        table = cursor.fetch_arrow_table()
    assert table.schema.field("s").type == pyarrow.string(), table.schema
    assert table.schema.field("i").type == pyarrow.int64(), table.schema
    row = table.to_pylist()[0]
    assert row["dt"] == datetime.date(2024, 2, 3) and row["n"] is None and row["l"] == [1, 2], row


@check
def aggregates_have_the_schema_that_was_told():
    # The driver fails where the stream's schema is not FlightInfo's, nullability included.
    found = rows("select count(*) n, max(x) m, min(x) lo, avg(x) av from (values (1), (2)) v(x)")
    assert found == [(2, 2, 1, 1.5)], found
    assert rows("select max(x) from (values (1)) v(x) where false") == [(None,)]


@check
def empty_results_keep_their_columns():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 1 as a, 'x' as b where false")
        table = cursor.fetch_arrow_table()
    assert (table.num_rows, table.column_names) == (0, ["a", "b"])


@check
def statements_run_exactly_once():
    rows("create table once (a int)")
    rows("insert into once values (1)")
    assert rows("select count(*) from once") == [(1,)]
    rows("drop table once")


@check
def information_is_given():
    with connect() as connection:
        information = connection.adbc_get_info()
    assert information["vendor_name"] == "Querent", information
    assert information["vendor_version"], information


@check
def objects_are_listed_at_every_depth():
    with connect() as connection:
        for depth in ("catalogs", "db_schemas", "tables", "columns"):
            listed = connection.adbc_get_objects(depth=depth).read_all().to_pylist()
            assert [catalog["catalog_name"] for catalog in listed] == ["querent"], (depth, listed)
        listed = connection.adbc_get_objects(depth="columns", table_name_filter="clients_%").read_all().to_pylist()
    schemas = [schema for schema in listed[0]["catalog_db_schemas"] if schema["db_schema_tables"]]
    assert [schema["db_schema_name"] for schema in schemas] == ["default"], schemas
    (table,) = schemas[0]["db_schema_tables"]
    assert (table["table_name"], table["table_type"]) == ("clients_seeded", "BASE TABLE"), table
    assert [column["column_name"] for column in table["table_columns"]] == ["i", "s"], table


@check
def table_schemas_and_types_are_given():
    with connect() as connection:
        schema = connection.adbc_get_table_schema("clients_seeded")
        types = connection.adbc_get_table_types()
    assert schema.names == ["i", "s"] and schema.field("s").type == pyarrow.string(), schema
    assert {"BASE TABLE", "EXTERNAL TABLE", "VIEW"} <= set(types), types


@check
def schemas_are_told_without_executing():
    with connect() as connection:
        statement = adbc_driver_manager.AdbcStatement(connection.adbc_connection)
        try:
            statement.set_sql_query("select 1 as a, 'x' as b")
            handle = statement.execute_schema()
            schema = pyarrow.Schema._import_from_c(handle.address)
        finally:
            statement.close()
    assert schema.names == ["a", "b"], schema


@check
def partitions_can_be_read_later():
    with connect() as connection, connection.cursor() as cursor:
        partitions, schema = cursor.adbc_execute_partitions("select 1 as a")
        assert (len(partitions), schema.names) == (1, ["a"]), partitions
        cursor.adbc_read_partition(partitions[0])
        assert cursor.fetchone() == (1,)


@check
def errors_say_what_is_wrong():
    unknown = refusal("select * from clients_seedd")
    assert "clients_seedd" in str(unknown) and "did you mean `clients_seeded`?" in str(unknown), unknown
    assert isinstance(unknown, dbapi.ProgrammingError), type(unknown)
    assert isinstance(refusal("selec"), dbapi.ProgrammingError)
    with connect() as connection, connection.cursor() as cursor:
        try:
            cursor.execute("selec")
        except dbapi.Error:
            pass
        cursor.execute("select 2")
        assert cursor.fetchone() == (2,), "the connection goes on after an error"


@check
def writes_without_a_fetch_are_written():
    # The driver opens a result in the background, and cancels it when the cursor is closed unread.
    with connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("create table unread (a int)")
        for number in range(60):
            with connection.cursor() as cursor:
                cursor.execute(f"insert into unread values ({number})")
    assert rows("select count(*), sum(a) from unread") == [(60, sum(range(60)))]
    rows("drop table unread")


@check
def parameters_are_bound():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("select ? + 1 as a", (41,))
        assert cursor.fetchall() == [(42,)]
        cursor.execute("select $2 as b, $1 as a", (41, "x"))
        assert cursor.fetchall() == [("x", 41)]
        cursor.execute("select coalesce(cast(? as bigint), 7)", (None,))
        assert cursor.fetchall() == [(7,)]
        cursor.execute("select coalesce(?, X'00') as a, [?, X'00'] as b", (b"\1", None))
        assert cursor.fetchall() == [(b"\1", [None, b"\0"])]
        cursor.execute("select date_trunc('month', ?) as m", (datetime.datetime(2024, 2, 3, 4, 5, 6),))
        assert cursor.fetchall() == [(datetime.datetime(2024, 2, 1),)]
        day = datetime.timedelta(days=1)
        cursor.execute("select timestamp '2024-02-03' + ? as a, date '2024-02-03' - ? as b", (day, 2))
        assert cursor.fetchall() == [(datetime.datetime(2024, 2, 4), datetime.date(2024, 2, 1))]
        cursor.execute("select v.a from (select now() as t, 7 as a) v where t > now() - ? and a = ?", (day, 7))
        assert cursor.fetchall() == [(7,)]
        cursor.execute("select ? as a", pyarrow.record_batch([pyarrow.array([1, 2, 3])], names=["0"]))
        assert sorted(cursor.fetchall()) == [(1,), (2,), (3,)]
        try:
            cursor.execute("select ? as a, ? as b", (1,))
            cursor.fetchall()
        except dbapi.Error as error:
            assert "1 values were given" in str(error), error
        else:
            raise AssertionError("a missing value was made up")


@check
def many_rows_are_one_statement():
    values = [(number, f"name {number}", datetime.date(2024, 1, 1 + number % 28), None) for number in range(2_000)]
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("create table many (a bigint, b varchar, c date, d double)")
        cursor.executemany("insert into many values (?, ?, ?, ?)", values)
        assert cursor.rowcount in (2_000, -1), cursor.rowcount
        cursor.execute("select a, b, c, d from many order by a")
        assert cursor.fetchall() == values
        cursor.execute("drop table many")


@check
def rows_behind_returning_arrive():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("create table returned (a bigint, b varchar)")
        cursor.execute("insert into returned values (1, 'x'), (2, 'y') returning a, b")
        assert cursor.fetchall() == [(1, "x"), (2, "y")]
        cursor.execute("insert into returned values (?, ?) returning a + 1", (3, "z"))
        assert cursor.fetchall() == [(4,)]
        cursor.execute("update returned set b = ? where a = ? returning b", ("q", 3))
        assert cursor.fetchall() == [("q",)]
        cursor.executemany("insert into returned values (?, ?) returning a", [(5, "v"), (6, "w")])
        assert cursor.rowcount == 2, cursor.rowcount
        cursor.execute("delete from returned where a > 1 returning a")
        assert sorted(cursor.fetchall()) == [(2,), (3,), (5,), (6,)]
        for number in range(20):
            with connection.cursor() as unread:
                unread.execute(f"insert into returned values ({number + 7}, 'unread') returning a")
        # Without being prepared.
        with connection.cursor() as unread:
            unread.adbc_statement.set_sql_query("insert into returned values (27, 'unread') returning a")
            unread.adbc_statement.execute_query()
        cursor.execute("select a from returned order by a")
        kept = [(1,), *((number,) for number in range(7, 28))]
        assert cursor.fetchall() == kept, "each statement is executed once, read or not"
        try:
            cursor.execute("insert into returned select cast(b as bigint), b from returned returning a")
        except dbapi.Error as error:
            assert "unread" in str(error) or "x" in str(error), error
        else:
            raise AssertionError("the failure is told by the statement, not by its rows")
        cursor.execute("drop table returned")


@check
def tables_are_ingested():
    table = pyarrow.table({"i": pyarrow.array(range(5)), "s": ["a", "b", None, "d", "é"], "d": [1.0, 2.0, 3.0, None, 5.0]})
    with connect() as connection, connection.cursor() as cursor:
        for mode, expected in (("create", 5), ("append", 10), ("replace", 5), ("create_append", 10)):
            assert cursor.adbc_ingest("ingested", table, mode=mode) == 5, mode
            cursor.execute("select count(*) from ingested")
            assert cursor.fetchone() == (expected,), mode
        try:
            cursor.adbc_ingest("ingested", table, mode="create")
        except dbapi.Error as error:
            assert error.status_code == adbc_driver_manager.AdbcStatusCode.ALREADY_EXISTS, error
        else:
            raise AssertionError("the table was there")
        cursor.execute("drop table ingested")


def types_and_what_tables_hold():
    """Values of every Arrow type with the type of a column that was made for them; None where no table can hold it."""
    us, utc = pyarrow.timestamp("us"), pyarrow.timestamp("us", "UTC")
    day, number = datetime.date(2024, 2, 29), decimal.Decimal("1.25")
    integers = [pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64()]
    integers += [pyarrow.uint8(), pyarrow.uint16(), pyarrow.uint32(), pyarrow.uint64()]
    pairs = [(pyarrow.array([7, None], kind), kind) for kind in integers]
    pairs += [(pyarrow.array([1.5, None], kind), kind) for kind in (pyarrow.float32(), pyarrow.float64())]
    pairs.append((pyarrow.array([True, None]), pyarrow.bool_()))
    pairs.append((pyarrow.nulls(2), pyarrow.string()))
    for given in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
        pairs.append((pyarrow.array(["a word that is longer than a view", None], given), pyarrow.string()))
    for given in (pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view(), pyarrow.binary(3)):
        pairs.append((pyarrow.array([b"a\x00\xff", None], given), pyarrow.binary()))
    for given in (pyarrow.date32(), pyarrow.date64()):
        pairs.append((pyarrow.array([day, None], given), pyarrow.date32()))
    for given in (pyarrow.time32("s"), pyarrow.time32("ms"), pyarrow.time64("us"), pyarrow.time64("ns")):
        pairs.append((pyarrow.array([datetime.time(1, 2, 3), None], given), pyarrow.time64("us")))
    moment = datetime.datetime(1969, 7, 20, 20, 17, 40)
    for unit in ("s", "ms", "us", "ns"):
        pairs.append((pyarrow.array([moment, None], pyarrow.timestamp(unit)), pyarrow.timestamp(unit)))
        pairs.append((pyarrow.array([moment, None], pyarrow.timestamp(unit, "Asia/Tokyo")), utc))
    for given in (pyarrow.decimal32(5, 2), pyarrow.decimal64(12, 2), pyarrow.decimal128(38, 10)):
        pairs.append((pyarrow.array([number, None], given), pyarrow.decimal128(given.precision, given.scale)))
    pairs.append((pyarrow.array([number, None], pyarrow.decimal256(60, 2)), None))
    pairs.append((pyarrow.array([datetime.timedelta(1), None], pyarrow.duration("us")), None))
    pairs.append((pyarrow.array([(1, 2, 3), None], pyarrow.month_day_nano_interval()), None))
    numbers = pyarrow.list_(pyarrow.int64())
    for given in (numbers, pyarrow.large_list(pyarrow.int64()), pyarrow.list_view(pyarrow.int64())):
        pairs.append((pyarrow.array([[1, None], None], given), numbers))
    pair = pyarrow.list_(pyarrow.int64(), 2)
    pairs.append((pyarrow.array([[1, 2], None], pair), pair))
    record = pyarrow.struct([("a", pyarrow.int64()), ("when", us)])
    pairs.append((pyarrow.array([{"a": 1, "when": moment}, None], record), record))
    for given in (pyarrow.map_("string", "int64"), pyarrow.map_("string", "int64", keys_sorted=True)):
        pairs.append((pyarrow.array([[("k", 1)], None], given), pyarrow.map_("string", "int64")))
    # DuckDB, which reads the same tables, has no struct with two fields of one name, case aside, and no map with a key twice.
    pairs.append((pyarrow.StructArray.from_arrays([pyarrow.array([1, 2]), pyarrow.array([3, 4])], ["a", "A"]), None))
    pairs.append((pyarrow.array([[("k", 1), ("k", 2)], None], pyarrow.map_("string", "int64")), None))
    pairs.append((pyarrow.array(["a", None]).dictionary_encode(), pyarrow.string()))
    runs = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 2], "int32"), pyarrow.array([5, None]))
    pairs.append((runs, pyarrow.int64()))
    return pairs


@check
def every_type_is_ingested_or_refused():
    with connect() as connection, connection.cursor() as cursor:
        for values, kept in types_and_what_tables_hold():
            table = pyarrow.table({"i": [1, 2], "a": values})
            try:
                cursor.adbc_ingest("typed", table, mode="replace")
            except dbapi.Error as error:
                assert kept is None, f"{values.type}: {error}"
                assert error.status_code == adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT, error
                continue
            with connection.cursor() as reader:
                reader.execute("select a from typed order by i")
                found = reader.fetch_arrow_table()
            assert found.schema.field("a").type == kept, f"{values.type}: {found.schema}"
            assert texts(found["a"].to_pylist()) == texts(as_kept(values, kept)), values


@check
def extension_types_are_kept_as_their_values_wherever_they_are():
    text = "12345678-1234-5678-1234-567812345678"
    storage = pyarrow.array([uuid.UUID(text).bytes], pyarrow.binary(16))
    ids = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), storage)
    flags = pyarrow.ExtensionArray.from_storage(pyarrow.bool8(), pyarrow.array([1], pyarrow.int8()))
    table = pyarrow.table({
        "id": ids,
        "flag": flags,
        "list": pyarrow.ListArray.from_arrays([0, 1], ids),
        "record": pyarrow.StructArray.from_arrays([ids, flags], ["id", "flag"]),
    })
    with connect() as connection, connection.cursor() as cursor:
        for temporary in (False, True):
            with connection.cursor() as writer:
                writer.adbc_ingest("extended", table, mode="create", temporary=temporary)
            cursor.execute("select * from extended")
            found = cursor.fetch_arrow_table().to_pylist()
            assert found == [{"id": text, "flag": True, "list": [text], "record": {"id": text, "flag": True}}], found
            # What a cast makes of it is no boolean of eight bits any more.
            cursor.execute("select cast(flag as int) as number from extended")
            assert cursor.fetch_arrow_table() == pyarrow.table({"number": pyarrow.array([1], pyarrow.int32())})
            # As values of parameters they are what they are in tables.
            values = pyarrow.record_batch([ids, flags], names=["0", "1"])
            cursor.execute("select id from extended where id = ? and record['flag'] = ?", values)
            assert cursor.fetchall() == [(text,)]
        cursor.execute("drop table extended")
        cursor.execute("drop table extended")


@check
def fields_of_structs_are_matched_without_regard_to_case():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("create table records (s struct(a int, b varchar))")
        with connection.cursor() as writer:
            writer.adbc_ingest("records", pyarrow.table({"S": [{"B": "x", "A": 1}]}), mode="append")
        cursor.execute("select s from records")
        assert cursor.fetchall() == [({"a": 1, "b": "x"},)]
        cursor.execute("drop table records")


def as_kept(values, kept):
    """The values as Python has them; instants in UTC, numbers with all their digits."""
    changes = pyarrow.types.is_timestamp(kept) or pyarrow.types.is_decimal(kept)
    return (values.cast(kept) if changes else values).to_pylist()


def texts(values):
    return [str(value) for value in values]


@check
def every_type_is_bound():
    with connect() as connection, connection.cursor() as cursor:
        for values, held in types_and_what_tables_hold():
            try:
                cursor.execute("select ? as a", pyarrow.record_batch([values], names=["0"]))
            except dbapi.ProgrammingError as error:
                # What is no value of a table is none of a parameter.
                assert held is None and "the keys of a map have to be different" in str(error), (values, error)
                continue
            assert texts(cursor.fetch_arrow_table()["a"].to_pylist()) == texts(values.to_pylist()), values


@check
def errors_have_the_codes_that_adbc_names():
    codes = adbc_driver_manager.AdbcStatusCode
    missing = pyarrow.table({"a": [1]})

    def code(call):
        try:
            call()
        except dbapi.Error as error:
            return error.status_code
        raise AssertionError("no error")

    with connect() as connection, connection.cursor() as cursor:
        assert code(lambda: cursor.adbc_ingest("t", missing, mode="create", catalog_name="nowhere")) == codes.NOT_FOUND
    with connect() as connection, connection.cursor() as cursor:
        assert code(lambda: connection.adbc_get_table_schema("nowhere")) == codes.NOT_FOUND
        assert code(lambda: cursor.adbc_ingest("nowhere", missing, mode="append")) == codes.NOT_FOUND
        assert code(lambda: cursor.adbc_ingest("t", missing, mode="create", db_schema_name="nowhere")) == codes.NOT_FOUND
        assert code(lambda: setattr(connection, "adbc_current_db_schema", "nowhere")) == codes.NOT_FOUND
        assert code(lambda: setattr(connection, "adbc_current_catalog", "nowhere")) == codes.NOT_FOUND
        assert (connection.adbc_current_catalog, connection.adbc_current_db_schema) == ("querent", "default")
    assert refusal("select * from nowhere").status_code == codes.NOT_FOUND
    assert refusal("selec").status_code == codes.INVALID_ARGUMENT
    assert refusal("begin").status_code == codes.NOT_IMPLEMENTED
    rows("create table existing (a int)")
    assert refusal("create table existing (a int)").status_code == codes.ALREADY_EXISTS
    rows("drop table existing")


@check
def temporary_tables_end_with_their_connection():
    table = pyarrow.table({"i": pyarrow.array(range(1_000))})
    with connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("scratch", table, mode="create", temporary=True)
        with connection.cursor() as reader:
            reader.execute("select sum(i) from scratch")
            assert reader.fetchone() == (sum(range(1_000)),)
        assert connection.adbc_get_table_schema("scratch").names == ["i"]
    assert "scratch" in str(refusal("select * from scratch"))


@check
def a_session_has_a_schema():
    with connect() as connection:
        assert connection.adbc_current_catalog == "querent"
        assert connection.adbc_current_db_schema == "default"
        connection.adbc_current_db_schema = "elsewhere"
        with connection.cursor() as cursor:
            cursor.execute("select count(*) from only_here")
            assert cursor.fetchone() == (0,)


@check
def a_statement_of_nine_megabytes_runs():
    text = "x" * 9_000_000
    assert rows(f"select length('{text}') as n") == [(9_000_000,)]


@check
def rows_of_many_megabytes_arrive():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("select repeat('x', 1000) s from generate_series(1, 20000)")
        assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) == 20_000


@check
def one_row_of_ten_megabytes_arrives():
    assert rows("select length(s), s from (select repeat('x', 10000000) s)")[0][0] == 10_000_000


@check
def connections_work_in_parallel():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: rows(f"select {number}")[0][0], range(32)))
    assert found == list(range(32)), found


@check
def a_header_names_the_database():
    key = DatabaseOptions.RPC_CALL_HEADER_PREFIX.value + "x-database"
    assert rows("select count(*) from only_here", {key: "elsewhere"}) == [(0,)]


def main():
    failed = 0
    rows("create table clients_seeded as select * from (values (1, 'a'), (2, 'b')) v(i, s)")
    rows("create schema elsewhere")
    rows("create table elsewhere.only_here (a int)")
    for function in CHECKS:
        try:
            function()
        except Exception as error:
            failed += 1
            print(f"{function.__name__}: {type(error).__name__}: {error}")
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks hold")
    sys.exit(1 if failed else 0)


main()
