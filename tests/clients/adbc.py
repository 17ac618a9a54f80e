"""Drives a server with the official ADBC Flight SQL driver, as its users do. Every check must hold.

usage: adbc.py URI [TOKEN]
"""

import concurrent.futures
import datetime
import sys

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
        cursor.execute("select date_trunc('month', ?) as m", (datetime.datetime(2024, 2, 3, 4, 5, 6),))
        assert cursor.fetchall() == [(datetime.datetime(2024, 2, 1),)]
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


@check
def temporary_tables_end_with_their_connection():
    table = pyarrow.table({"i": pyarrow.array(range(1_000))})
    with connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("scratch", table, mode="create", temporary=True)
        cursor.execute("select sum(i) from scratch")
        assert cursor.fetchone() == (sum(range(1_000)),)
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
