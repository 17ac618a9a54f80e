"""Drives a server with the official MCP client, unchanged. Every check must hold.

usage: mcp_client.py http URL [TOKEN LIMITED_TOKEN]   with `default.otel_logs`, `sales.orders`, `sales.customers`
       mcp_client.py stdio COMMAND [ARGUMENT...]      LIMITED_TOKEN may see `sales` only
"""

import os
import sys
import time
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ResourceTemplateReference

KIND, ARGUMENTS = sys.argv[1], sys.argv[2:]
SLOW = "SELECT count(*) FROM generate_series(1, 1000000) AS a(x), generate_series(1, 1000000) AS b(y) WHERE (x * y) % 7 = 3"
TOOLS = {
    "run_sql",
    "run_kql",
    "describe_table",
    "sample_rows",
    "list_databases",
    "search_schema",
    "explore_schema",
    "find_references_to",
    "graph_traverse",
}


@asynccontextmanager
async def connected(mode, token=None):
    if KIND == "stdio":
        environment = {name: value for name, value in os.environ.items() if name.startswith("QUERENT_")}
        server = StdioServerParameters(command=ARGUMENTS[0], args=ARGUMENTS[1:], env=environment)
        async with Client(server, mode=mode, cache=None) as client:
            yield client
        return
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{ARGUMENTS[0]}/mcp", http_client=http)
        async with Client(transport, mode=mode, cache=None) as client:
            yield client


async def introduces_itself(client, mode):
    assert client.server_info.name == "querent", client.server_info
    assert client.server_info.version and "run_sql" in client.instructions
    modern = client.protocol_version >= "2026-07-28"
    assert modern == (mode == "auto"), (client.protocol_version, mode)
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} >= TOOLS, tools
    for tool in tools:
        assert tool.title and tool.description and tool.input_schema["type"] == "object", tool
        hints = tool.annotations
        assert hints.read_only_hint and hints.idempotent_hint and not hints.destructive_hint, tool


async def calls_every_tool(client):
    calls = {
        "run_sql": {"sql": "SELECT count(*) AS n FROM otel_logs"},
        "run_kql": {"kql": "otel_logs | count"},
        "describe_table": {"table": "sales.orders"},
        "sample_rows": {"table": "otel_logs", "n": 3},
        "list_databases": {},
        "search_schema": {"query": "orders"},
        "explore_schema": {"name": "sales"},
        "find_references_to": {"value": "customer_id"},
        "graph_traverse": {
            "edges_table": "sales.orders",
            "source": 1,
            "from_column": "order_id",
            "to_column": "customer_id",
        },
    }
    assert calls.keys() == TOOLS
    replies = {}
    for name, arguments in calls.items():
        reply = await client.call_tool(name, arguments)
        assert not reply.is_error, (name, reply)
        assert reply.content[0].type == "text" and reply.content[0].text, (name, reply)
        assert isinstance(reply.structured_content, dict), (name, reply)
        replies[name] = reply
    assert replies["run_sql"].structured_content["rows"] == [{"n": 50}]
    assert replies["run_sql"].content[0].text == "n\n50\n(1 row)"
    assert replies["sample_rows"].structured_content["row_count"] == 3
    assert "sales" in replies["list_databases"].structured_content["databases"]


async def failures_are_results(client):
    for tool, arguments, code in [
        ("run_sql", {"sql": "SELECT colour FROM otel_logs"}, "column_not_found"),
        ("run_sql", {"sql": "DROP TABLE otel_logs"}, "not_allowed"),
        ("run_sql", {}, "invalid_arguments"),
        ("run_sql", {"sql": 7}, "invalid_arguments"),
        ("describe_table", {"table": "nothing"}, "table_not_found"),
        ("run_sql", {"sql": "SELECT 1", "database": "nowhere"}, "database_not_found"),
    ]:
        reply = await client.call_tool(tool, arguments)
        assert reply.is_error, (tool, arguments, reply)
        assert reply.structured_content["error"]["code"] == code, reply
        assert f"{tool} failed" in reply.content[0].text, reply
    try:
        await client.call_tool("drop_everything", {})
    except MCPError as refused:
        assert refused.error.code == -32602 and "drop_everything" in refused.error.message, refused
        assert refused.error.data["code"] == "unknown_tool", refused
    else:
        raise AssertionError("an unknown tool was called")


async def listed(client):
    uris, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        uris += [str(resource.uri) for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            return uris


async def text_of(client, uri):
    contents = (await client.read_resource(uri)).contents
    assert len(contents) == 1 and contents[0].mime_type == "text/markdown", contents
    return contents[0].text


async def schemas_are_resources(client):
    uris = await listed(client)
    assert len(set(uris)) == len(uris), uris
    assert {"querent://schema/default", "querent://schema/sales", "querent://schema/sales/orders"} <= set(uris), uris
    database = await text_of(client, "querent://schema/sales")
    assert "| orders | table |" in database and "| customers | table |" in database, database
    table = await text_of(client, "querent://schema/sales/orders")
    assert "| order_id | Int64 |" in table and "orders.customer_id = customers.id" in table, table
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "querent://schema/{database}",
        "querent://schema/{database}/{table}",
    ]
    for uri in ["querent://schema/nowhere", "querent://schema/sales/nothing", "querent://x", "file:///etc/passwd"]:
        try:
            await client.read_resource(uri)
        except MCPError as refused:
            assert refused.error.code in (-32002, -32602), refused
        else:
            raise AssertionError(f"{uri} was read")
    try:
        await client.list_resources(cursor="nonsense")
    except MCPError as refused:
        assert refused.error.code == -32602, refused
    else:
        raise AssertionError("a made-up cursor was taken")


async def names_are_completed(client):
    of_table = ResourceTemplateReference(uri="querent://schema/{database}/{table}")
    found = await client.complete(of_table, {"name": "database", "value": "sa"})
    assert found.completion.values == ["sales"], found
    found = await client.complete(of_table, {"name": "table", "value": "or"}, {"database": "sales"})
    assert found.completion.values == ["orders"], found
    found = await client.complete(of_table, {"name": "table", "value": "%"}, {"database": "sales"})
    assert found.completion.values == [], found


async def a_cancelled_call_ends(client):
    """The server takes one query at a time: another one is let in once this one has ended, long before its limit."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "run_sql", {"sql": SLOW})
        # Until the call runs: the server answers nothing before its end.
        await anyio.sleep(0.7)
        group.cancel_scope.cancel()
    ends = time.monotonic() + 8
    while True:
        reply = await client.call_tool("run_sql", {"sql": "SELECT 1 AS a"})
        if not reply.is_error:
            return
        assert reply.structured_content["error"]["code"] == "too_many_requests", reply
        assert time.monotonic() < ends, "the cancelled query goes on"
        await anyio.sleep(0.1)


async def sees_its_own_only(client):
    reply = await client.call_tool("list_databases", {})
    assert reply.structured_content["databases"] == ["sales"], reply
    reply = await client.call_tool("run_sql", {"sql": "SELECT * FROM default.otel_logs"})
    assert reply.is_error and reply.structured_content["error"]["code"] == "database_not_found", reply
    reply = await client.call_tool("run_sql", {"sql": "SELECT count(*) AS n FROM sales.orders"})
    assert reply.structured_content["rows"] == [{"n": 3}], reply
    uris = await listed(client)
    assert uris and all(uri.startswith("querent://schema/sales") for uri in uris), uris
    try:
        await client.read_resource("querent://schema/default/otel_logs")
    except MCPError as refused:
        assert refused.error.data["code"] == "database_not_found", refused
    else:
        raise AssertionError("another's schema was read")


async def main():
    token, limited = (ARGUMENTS[1:] + [None, None])[:2] if KIND == "http" else (None, None)
    for mode in ["legacy", "auto"]:
        async with connected(mode, token) as client:
            await introduces_itself(client, mode)
            await calls_every_tool(client)
            await failures_are_results(client)
            await schemas_are_resources(client)
            await names_are_completed(client)
            await a_cancelled_call_ends(client)
        if limited:
            async with connected(mode, limited) as client:
                await sees_its_own_only(client)


anyio.run(main)
print("content")
