"""The ADBC project's validation suite (adbc-drivers/validation), with what it has to know of Querent and of the driver.

It is in no registry: make a Python 3.13 with a checkout of it and adbc-driver-flightsql, and run with the server's address in
QUERENT_URL, such as grpc://127.0.0.1:8080:

    pytest -p adbc_drivers_validation.tests.conftest -o xfail_strict=true tests/clients/suites/adbc_validation.py
"""

import dataclasses
import os
import re

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi
import pyarrow
import pytest
from adbc_drivers_validation import model, quirks
from adbc_drivers_validation.tests import connection, ingest, query, statement

URL = os.environ["QUERENT_URL"]

NO_SUCH_DIGITS = "a managed table holds instants and times of day to the microsecond, and refuses columns of more digits"
#: Queries that are left out, with the reason.
LEFT_OUT = {
    "type/select/timestamp7tz": NO_SUCH_DIGITS,
    "type/select/timestamp8tz": NO_SUCH_DIGITS,
    "type/select/timestamp9tz": NO_SUCH_DIGITS,
    "type/bind/timestamptz_ns": NO_SUCH_DIGITS,
    "type/bind/time_ns": NO_SUCH_DIGITS,
}
#: Tests that fail, with the reason.
FAILING = {
    connection.TestConnection.test_get_info: "the driver's wheel calls its own version an unknown development build",
    ingest.TestIngest.test_ingest_then_query: "after an ingest the driver refuses other statements on the same statement",
    ingest.TestIngest.test_replace_catalog: "after an ingest the driver refuses other statements on the same statement",
}
for function, reason in FAILING.items():
    pytest.mark.xfail(reason=reason)(function)


def held(field):
    """Returns a column as a managed table holds it: its nearest type."""
    kind = field.type
    if pyarrow.types.is_time(kind):
        kind = pyarrow.time64("us")
    elif pyarrow.types.is_timestamp(kind) and kind.tz:
        kind = pyarrow.timestamp("us", "UTC")
    elif pyarrow.types.is_decimal(kind) and kind.scale < 0:
        kind = pyarrow.decimal128(kind.precision - kind.scale, 0)
    return field.with_type(kind)


def held_rows(rows):
    schema = pyarrow.schema([held(field) for field in rows.schema])
    return rows.cast(schema, safe=False)


class HeldIngest(model.IngestQuery):
    def expected_schema(self):
        return pyarrow.schema([held(field) for field in super().expected_schema()])

    def expected(self):
        return held_rows(model.try_txtcase(
            self.expected_path or self.input_path, model.query_table, ["expected", "input"], super().expected_schema()
        ))


class HeldSelect(model.SelectQuery):
    def expected_schema(self):
        return pyarrow.schema([held(field) for field in super().expected_schema()])

    def expected_result(self):
        return held_rows(model.try_txtcase(self.expected_path, model.query_table, ["expected"], super().expected_schema()))


def of_tables(case):
    """Returns a case of the suite with the types of managed tables; a literal is in no table."""
    if case.name.startswith("type/literal/"):
        return case
    kind = HeldIngest if isinstance(case.query, model.IngestQuery) else HeldSelect
    fields = {field.name: getattr(case.query, field.name) for field in dataclasses.fields(case.query)}
    return dataclasses.replace(case, query=kind(**fields))


class Querent(model.DriverQuirks):
    name = "querent"
    driver = "adbc_driver_flightsql"
    driver_name = "ADBC Flight SQL Driver - Go"
    vendor_name = "Querent"
    vendor_version = re.compile(r"\d+\.\d+\.\d+")
    short_version = "0"
    # Left out by features: constraints in GetObjects (the driver asks for no keys), statistics (it has none), another catalog
    # (there is one), and transactions (each statement commits by itself).
    features = model.DriverFeatures(
        connection_get_table_schema=True,
        connection_set_current_schema=True,
        get_objects=True,
        statement_bind=True,
        statement_bulk_ingest=True,
        statement_bulk_ingest_catalog=True,
        statement_bulk_ingest_schema=True,
        statement_bulk_ingest_temporary=True,
        statement_execute_schema=True,
        statement_get_parameter_schema=True,
        statement_prepare=True,
        statement_rows_affected=True,
        statement_rows_affected_ddl=True,
        current_catalog="querent",
        current_schema="default",
        secondary_schema="second",
        secondary_catalog="querent",
        secondary_catalog_schema="second",
        quirk_foundry=False,
    )
    setup = model.DriverSetup(database={"uri": URL})
    queries_paths = ()

    @property
    def query_set(self):
        cases = model.base_query_set().queries
        return model.QuerySet({name: of_tables(case) for name, case in cases.items() if name not in LEFT_OUT})

    def split_statement(self, statement):
        # A comment behind a statement's end keeps it on one line with the next.
        return quirks.split_statement(re.sub(r";[ ]*--.*", ";", statement))

    def is_table_not_found(self, table_name, error):
        return "unknown table" in str(error)

    def drop_table(self, *, temporary=False, **names):
        return super().drop_table(**names)

    def qualify_temp_table(self, cursor, name):
        return self.quote_one_identifier(name)


QUERENT = Querent()


class PreparesFirst:
    """A statement that is prepared before values are bound to it, without which this driver binds none."""

    def __init__(self, statement):
        self.statement = statement
        self.is_to_prepare = False

    def __getattr__(self, name):
        return getattr(self.statement, name)

    def set_sql_query(self, text):
        self.is_to_prepare = True
        self.statement.set_sql_query(text)

    def prepare(self):
        # A second time, it would forget the values.
        if self.is_to_prepare:
            self.statement.prepare()
        self.is_to_prepare = False

    def bind(self, *values):
        self.prepare()
        self.statement.bind(*values)


@pytest.fixture(scope="session")
def driver():
    return QUERENT


@pytest.fixture(scope="session")
def driver_path():
    with adbc_driver_flightsql.dbapi.connect(URL, autocommit=True) as own, own.cursor() as cursor:
        cursor.execute("create database if not exists second")
    return adbc_driver_flightsql._driver_path()


@pytest.fixture(scope="session")
def conn_factory(conn_factory):
    def connect():
        conn = conn_factory()
        make_cursor = conn.cursor

        def cursor(*arguments, **options):
            made = make_cursor(*arguments, **options)
            made._stmt = PreparesFirst(made._stmt)
            return made

        conn.cursor = cursor
        return conn

    return connect


SUITES = {
    connection.TestConnection: connection,
    ingest.TestIngest: ingest,
    query.TestQuery: query,
    statement.TestStatement: statement,
}
TestConnection, TestIngest, TestQuery, TestStatement = SUITES


def pytest_generate_tests(metafunc):
    SUITES[metafunc.cls].generate_tests([QUERENT], metafunc)
