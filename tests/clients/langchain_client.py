"""LangChain's OpenAI models and plain httpx-sse against a running server: usage: langchain_client.py URL TOKEN."""

import json
import sys

import httpx
from httpx_sse import connect_sse
from langchain_openai import ChatOpenAI

url, token = sys.argv[1:3]


def chat(**options):
    return ChatOpenAI(model="querent", base_url=f"{url}/v1", api_key=token, **options)


def weather(city: str) -> str:
    """The weather of a city."""


weather.__name__ = "get_weather"
for model in [chat(), chat(use_responses_api=True)]:
    whole = model.invoke("how many?")
    assert "It is 42." in str(whole.text), whole
    assert whole.usage_metadata["total_tokens"] == 235, whole.usage_metadata
    assert whole.tool_calls == [], "a tool of the server is none of the client's"
    pieces = list(model.stream("how many?", stream_usage=True) if not model.use_responses_api else model.stream("how many?"))
    total = pieces[0]
    for piece in pieces[1:]:
        total += piece
    assert "It is 42." in str(total.text), total
    assert total.usage_metadata["total_tokens"] == 235, total.usage_metadata
    called = model.bind_tools([weather]).invoke("weather?")
    assert [(call["name"], call["args"]) for call in called.tool_calls] == [("get_weather", {"city": "Paris"})], called
    schema = {"title": "count", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    structured = model.with_structured_output(schema, method="json_schema").invoke("structured")
    assert structured["n"] == 3, structured

headers = {"Authorization": f"Bearer {token}"}
with httpx.Client(headers=headers, timeout=30) as client:
    body = {"input": "how many?", "stream": True}
    with connect_sse(client, "POST", f"{url}/v1/responses", json=body) as events:
        read = [(event.event, event.json()) for event in events.iter_sse()]
    assert all(name == data["type"] for name, data in read)
    assert [data["sequence_number"] for _, data in read] == list(range(len(read)))
    body = {"messages": [{"role": "user", "content": "how many?"}], "stream": True}
    with connect_sse(client, "POST", f"{url}/v1/chat/completions", json=body) as events:
        data = [event.data for event in events.iter_sse()]
    assert data[-1] == "[DONE]" and all(json.loads(line)["object"] == "chat.completion.chunk" for line in data[:-1])
    with connect_sse(client, "POST", f"{url}/v1/agent/ask", json={"question": "how many?"}) as events:
        names = [event.event for event in events.iter_sse()]
    assert names[0] == "run_started" and names[-1] == "run_finished", names
print("ok")
