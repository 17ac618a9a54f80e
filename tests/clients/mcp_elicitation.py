"""The official MCP client asks its user which reading of a question is meant. Every check must hold.

usage: mcp_elicitation.py URL      with `concerts.singer` (2 rows) and `opera.singer` (3 rows)
"""

import sys

import anyio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

asked = []


def answering(result):
    async def answer(context, params):
        asked.append(params)
        return result

    return answer


async def ask(elicitation):
    transport = streamable_http_client(f"{sys.argv[1]}/mcp")
    async with Client(transport, cache=None, elicitation_callback=elicitation) as client:
        result = await client.call_tool("ask", {"question": "How many singers are there?"})
        assert not result.is_error, result
        return result.structured_content


async def main():
    chosen = await ask(answering(ElicitResult(action="accept", content={"reading": "2"})))
    assert "3" in chosen["answer"] and "opera.singer" in chosen["sql"], chosen
    assert len(asked) == 1 and "Which one?" in asked[0].message, asked
    assert asked[0].requested_schema["properties"]["reading"]["enum"] == ["1", "2"], asked

    declined = await ask(answering(ElicitResult(action="decline")))
    assert declined["assessment"]["asks_back"] and len(declined["assessment"]["readings"]) == 2, declined
    assert len(asked) == 2, asked

    cannot = await ask(None)
    assert "Which one?" in cannot["answer"] and len(asked) == 2, cannot


anyio.run(main)
