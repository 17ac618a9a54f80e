"""Drives a server with Microsoft's Kusto client for Python, unchanged. Every check must hold.

usage: kusto.py URL [TOKEN]      with the table `default.otel_logs`
"""

import datetime
import decimal
import json
import sys

from azure.kusto.data import ClientRequestProperties, KustoClient, KustoConnectionStringBuilder
from azure.kusto.data.exceptions import KustoApiError, KustoMultiApiError, KustoServiceError

URL = sys.argv[1]
TOKEN = sys.argv[2] if len(sys.argv) > 2 else None
CHECKS = []


def connected(token):
    if token is None:
        return KustoClient(KustoConnectionStringBuilder(URL))
    return KustoClient(KustoConnectionStringBuilder.with_aad_user_token_authentication(URL, token))


CLIENT = connected(TOKEN)


def check(function):
    CHECKS.append(function)
    return function


def rows(text, properties=None, database="default"):
    return [row.to_list() for row in CLIENT.execute(database, text, properties).primary_results[0]]


def refusal(text, error=KustoApiError, properties=None, database="default", client=CLIENT):
    try:
        client.execute(database, text, properties)
    except error as refused:
        return refused
    raise AssertionError(f"{text}: this must fail")


def options(**given):
    properties = ClientRequestProperties()
    for name, value in given.items():
        properties.set_option(name, value)
    return properties


@check
def every_type_arrives():
    query = """print b = true, i = int(7), l = 9007199254740993, r = 1.5, d = decimal(1.25), s = 'ä "x"',
        t = datetime(2024-02-29 12:00:00.1234567), span = time(-1.02:03:04.5), g = guid(74be27de-1e4e-49d9-b579-fe0b331d3642),
        j = dynamic({"a": [1, null, "x"]}), n = long(null), e = ''"""
    table = CLIENT.execute("default", query).primary_results[0]
    assert [column.column_type for column in table.columns] == [
        "bool", "int", "long", "real", "decimal", "string", "datetime", "timespan", "guid", "dynamic", "long", "string"
    ], table.columns
    # The client's types have microseconds; the tick is in the text.
    assert table.raw_rows[0][6] == "2024-02-29T12:00:00.1234567Z", table.raw_rows
    assert table.raw_rows[0][7] == "-1.02:03:04.5000000", table.raw_rows
    row = table[0].to_list()
    expected = [
        True, 7, 9007199254740993, 1.5, decimal.Decimal("1.25"), 'ä "x"',
        datetime.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=datetime.timezone.utc),
        -datetime.timedelta(days=1, hours=2, minutes=3, seconds=4.5),
        "74be27de-1e4e-49d9-b579-fe0b331d3642", {"a": [1, None, "x"]}, None, "",
    ]
    for got, want in zip(row, expected, strict=True):
        assert str(got) == str(want), (got, want)


@check
def tables_are_queried():
    query = "otel_logs | where severity_text == 'ERROR' | summarize n = count() by service_name | top 2 by n"
    assert rows(query) == [["payments", 12], ["web", 10]], rows(query)
    assert rows("otel_logs | where false") == []
    response = CLIENT.execute("default", "otel_logs | take 1 | render timechart with (title='T')")
    assert response.errors_count == 0 and response.get_exceptions() == []
    told = json.loads(response["@ExtendedProperties"][0]["Value"])
    assert (told["Visualization"], told["Title"], told["XColumn"]) == ("timechart", "T", None), told


@check
def parameters_are_values():
    properties = ClientRequestProperties()
    for name, value in {"s": "it's \"x\" | take 0", "n": "7", "t": "datetime(2024-01-02)", "d": "1d", "j": "[1]"}.items():
        properties.set_parameter(name, value)
    declared = "declare query_parameters(s:string, n:long, t:datetime, d:timespan, j:dynamic, k:int = 3);"
    query = f"{declared} print s, n + 1, t + d, array_length(j), k"
    got = rows(query, properties)[0]
    then = datetime.datetime(2024, 1, 3, tzinfo=datetime.timezone.utc)
    assert got == ['it\'s "x" | take 0', 8, then, 1, 3], got
    quoted = ClientRequestProperties()
    quoted.set_parameter("s", '"quoted"')
    assert rows("declare query_parameters(s:string); print s", quoted) == [["quoted"]]
    wrong = ClientRequestProperties()
    wrong.set_parameter("n", "seven")
    assert "`n` is a long" in str(refusal("declare query_parameters(n:long); print n", properties=wrong))
    assert "has no value" in str(refusal("declare query_parameters(n:long); print n"))


@check
def commands_show_the_catalog():
    databases = CLIENT.execute(None, ".show databases").primary_results[0]
    assert "default" in [row["DatabaseName"] for row in databases], databases
    tables = CLIENT.execute("default", ".show tables | where TableName == 'otel_logs' | project TableName, DatabaseName")
    assert [row.to_list() for row in tables.primary_results[0]] == [["otel_logs", "default"]]
    schema = CLIENT.execute("default", ".show table otel_logs schema as json").primary_results[0][0]["Schema"]
    columns = {column["Name"]: column["CslType"] for column in json.loads(schema)["OrderedColumns"]}
    assert columns["timestamp"] == "datetime" and columns["service_name"] == "string", columns
    database = CLIENT.execute("default", ".show database ['default'] schema as json").primary_results[0][0]
    assert "otel_logs" in json.loads(database["DatabaseSchema"])["Databases"]["default"]["Tables"]
    cluster = CLIENT.execute("default", ".show schema as json").primary_results[0][0]["ClusterSchema"]
    assert "default" in json.loads(cluster)["Databases"]
    assert CLIENT.execute("default", ".show version").primary_results[0][0]["ServiceType"] == "Engine"
    assert rows(".cancel query 'nobody;1' with (reason = 'none')") == [[False, "nobody;1", "none"]]
    assert "is not supported here" in str(refusal(".drop table otel_logs"))


@check
def errors_are_kustos():
    semantic = refusal("otel_logs | where nope == 1")
    assert semantic.is_semantic_error() and "unknown column `nope`" in str(semantic), semantic
    error = semantic.get_api_error()
    assert (error.code, error.permanent) == ("General_BadRequest", True), error
    assert error.context["querentCode"] == "kql_unknown_column", error
    assert "Syntax error: line 1, column 18" in str(refusal("otel_logs | where "))
    assert "nowhere" in str(refusal("print 1", database="nowhere"))
    slow = "range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | where a + b < 0 | count"
    late = refusal(slow, properties=options(servertimeout=datetime.timedelta(milliseconds=200)))
    assert late.http_response.status_code == 504 and not late.get_api_error().permanent, late


@check
def a_cut_result_says_so():
    cut = refusal("range x from 1 to 100 step 1", KustoMultiApiError, options(truncationmaxrecords=10))
    assert cut.get_api_errors()[0].code == "LimitsExceeded", cut
    deferred = options(truncationmaxrecords=10, deferpartialqueryfailures=True)
    response = CLIENT.execute("default", "range x from 1 to 100 step 1", deferred)
    assert len(response.primary_results[0]) == 10 and response.errors_count == 1, response.get_exceptions()
    assert len(rows("range x from 1 to 100 step 1", options(query_take_max_records=10))) == 10


@check
def progress_is_an_offer():
    asked = options(results_progressive_enabled=True)
    assert rows("range x from 1 to 3 step 1", asked) == [[1], [2], [3]]
    assert next(CLIENT.execute_streaming_query("default", "print 1", properties=asked).iter_primary_results()) is not None


@check
def rows_stream():
    response = CLIENT.execute_streaming_query("default", "range x from 1 to 200000 step 1 | extend s = strcat('row ', x)")
    for table in response.iter_primary_results():
        assert sum(row["x"] for row in table) == 200000 * 200001 // 2
    list(response)
    assert response.errors_count == 0


@check
def tokens_are_checked():
    if TOKEN is not None:
        assert "401" in str(refusal("print 1", KustoServiceError, client=connected("wrong")))
        nobody = KustoClient(KustoConnectionStringBuilder(URL))
        assert "401" in str(refusal("print 1", KustoServiceError, client=nobody))


for one in CHECKS:
    one()
    print("ok", one.__name__)
