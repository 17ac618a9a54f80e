"""The cases of the Open Responses compliance suite, against its published types: usage: openresponses_client.py URL TOKEN.

With the scripted model of tests/it/openai.rs. As the suite does, the stream is parsed anew with each piece that the
network delivers: a frame must not be cut.
"""

import json
import sys

import httpx
from openresponses_types import types

url, token = sys.argv[1:3]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}


def event_types():
    for name, model in vars(types).items():
        if name.endswith("StreamingEvent"):
            yield next(iter(model.model_fields["type"].annotation)).value, model


EVENTS = dict(event_types())


def said(role, content):
    return {"type": "message", "role": role, "content": content}


def pieces(response):
    for piece in response.iter_raw():
        *frames, rest = piece.decode().split("\n\n")
        assert rest == "", f"a frame was cut: {rest}"
        yield from (frame for frame in frames if not frame.startswith(":"))


def whole(client, body):
    response = client.post("/v1/responses", json=body)
    assert response.status_code == 200, response.text
    return response.json(), []


def streamed(client, body):
    kinds = []
    with client.stream("POST", "/v1/responses", json=body | {"stream": True}) as response:
        for frame in pieces(response):
            name, data = frame.split("\n")
            event = json.loads(data.removeprefix("data: "))
            assert name == f"event: {event['type']}"
            EVENTS[event["type"]].model_validate(event)
            kinds.append((event["type"], event.get("item", {}).get("type")))
            last = event
    return last["response"], kinds


CASES = [
    (whole, [said("user", "Say hello in exactly 3 words, thanks.")], {}),
    (streamed, [said("user", "Count from 1 to 5, thanks.")], {}),
    (whole, [said("system", "You are a pirate."), said("user", "Say hello, thanks.")], {}),
    (whole, [said("user", "What's the weather like?")], {"tools": [WEATHER]}),
    (streamed, [said("user", "What's the weather like?")], {"tools": [WEATHER]}),
    (
        whole,
        [
            said(
                "user",
                [
                    {"type": "input_text", "text": "What do you see? thanks"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ],
            )
        ],
        {},
    ),
    (
        whole,
        [said("user", "I am Alice."), said("assistant", "Hello Alice!"), said("user", "Who am I? thanks")],
        {},
    ),
    # Every option, each to be repeated in the response.
    (
        streamed,
        [said("user", "thanks")],
        {
            "instructions": "Be brief.",
            "metadata": {"a": "b"},
            "temperature": 0.5,
            "top_p": 0.5,
            "max_output_tokens": 100,
            "parallel_tool_calls": False,
            "truncation": "auto",
            "reasoning": {"effort": "low"},
            "text": {"verbosity": "low"},
            "tools": [WEATHER],
            "tool_choice": {"type": "function", "name": "get_weather"},
        },
    ),
]

with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
    for ask, messages, options in CASES:
        body = {"model": "querent", "input": messages} | options
        types.CreateResponseBody.model_validate(body)
        response, kinds = ask(client, body)
        parsed = types.ResponseResource.model_validate(response)
        needed = {name for name, field in types.ResponseResource.model_fields.items() if field.is_required()}
        assert parsed.status == "completed" and needed <= response.keys(), needed - response.keys()
        calls = [item["type"] for item in response["output"]] == ["function_call"]
        assert calls == ("weather" in str(messages)), response["output"]
        if calls and kinds:
            for kind in ["added", "done"]:
                assert (f"response.output_item.{kind}", "function_call") in kinds, kinds
            for kind in ["delta", "done"]:
                assert (f"response.function_call_arguments.{kind}", None) in kinds, kinds
print("ok")
