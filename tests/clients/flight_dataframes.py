"""Reads and writes tables as data engineers do: pandas, polars, DuckDB and SQLAlchemy over Flight SQL.

usage: flight_dataframes.py URI TOKEN
"""

import datetime
import sys
from urllib.parse import urlparse

import adbc_driver_flightsql.dbapi as adbc
import duckdb
import flightsql
import pandas
import polars
import sqlalchemy

URI, TOKEN = sys.argv[1:3]
CREDENTIALS = {"username": "anybody", "password": TOKEN}


def connect():
    return adbc.connect(URI, db_kwargs=CREDENTIALS, autocommit=True)


def pandas_writes_and_reads():
    frame = pandas.DataFrame(
        {"id": [1, 2, 3], "name": ["a", None, "é"], "day": pandas.to_datetime(["2024-01-01", "2024-02-29", None])}
    )
    with connect() as connection:
        assert frame.to_sql("of_pandas", connection, index=False) == 3
        assert frame.to_sql("of_pandas", connection, index=False, if_exists="append") == 3
        read = pandas.read_sql("select * from of_pandas where id > 1", connection)
        assert len(read) == 4 and read["id"].min() == 2, read
        frame.to_sql("of_pandas", connection, index=False, if_exists="replace")
        assert pandas.read_sql("select count(*) as n from of_pandas", connection)["n"][0] == 3
        try:
            frame.to_sql("of_pandas", connection, index=False, if_exists="fail")
        except ValueError as error:
            assert "already exists" in str(error), error
        else:
            raise AssertionError("the table was there")


def polars_writes_and_reads():
    frame = polars.DataFrame({"id": [1, 2, 3], "name": ["a", None, "é"], "day": [datetime.date(2024, 2, 29)] * 3})
    with connect() as connection:
        frame.write_database("of_polars", connection, engine="adbc")
        frame.write_database("of_polars", connection, engine="adbc", if_table_exists="append")
        read = polars.read_database("select * from of_polars order by id, name", connection)
        assert read.height == 6 and read["day"][0] == datetime.date(2024, 2, 29), read
        assert read.schema["name"] == polars.String, read.schema


def duckdb_reads_and_writes():
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("select id, name from of_polars")
        arriving = cursor.fetch_record_batch()
        assert duckdb.sql("select sum(id), count(name) from arriving").fetchall() == [(12, 4)]
        made = duckdb.sql("select range as i, 'row ' || range as s from range(10000)")
        assert cursor.adbc_ingest("of_duckdb", made.to_arrow_reader(1_000), mode="create") == 10_000
        cursor.execute("select sum(i), min(s) from of_duckdb")
        assert cursor.fetchall() == [(49_995_000, "row 0")]


def sqlalchemy_lists_and_selects():
    address = urlparse(URI)
    engine = sqlalchemy.create_engine(
        f"datafusion://{address.hostname}:{address.port}?insecure=True&token={TOKEN}"
    )
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("select 41 + 1 as answer")).fetchall() == [(42,)]
    found = sqlalchemy.inspect(engine)
    assert "default" in found.get_schema_names(), found.get_schema_names()
    assert {"of_pandas", "of_polars"} <= set(found.get_table_names("default")), found.get_table_names("default")
    columns = [column["name"] for column in found.get_columns("of_polars", "default")]
    assert columns == ["id", "name", "day"], columns


def flightsql_dbapi_binds_values():
    # Each value comes as a dense union of the types that the driver knows.
    address = urlparse(URI)
    client = flightsql.FlightSQLClient(host=address.hostname, port=address.port, insecure=True, token=TOKEN)
    with flightsql.connect(client) as connection:
        cursor = connection.cursor()
        for value in (7, 1.5, "é", b"\x00", True):
            cursor.execute("select ? as a", [value])
            assert cursor.fetchall() == [[value]], value
        cursor.execute("select id from of_polars where id = ? and name = ?", [3, "é"])
        assert [row[0] for row in cursor.fetchall()] == [3, 3]
        cursor.execute("create table of_dbapi (a int, b varchar)")
        cursor.executemany("insert into of_dbapi values (?, ?)", [(1, "x"), (2, "y")])
        cursor.execute("select count(*), sum(a) from of_dbapi")
        assert [list(row) for row in cursor.fetchall()] == [[2, 3]]


pandas_writes_and_reads()
polars_writes_and_reads()
duckdb_reads_and_writes()
sqlalchemy_lists_and_selects()
flightsql_dbapi_binds_values()
print("pandas, polars, DuckDB and SQLAlchemy are content")
