"""litellm with its providers for OpenAI's APIs and Anthropic's: run by pytest, with the server's address in QUERENT_URL."""

import json
import os

import litellm
import pytest
from pydantic import BaseModel

URL = os.environ["QUERENT_URL"]
OPENAI = {"model": "openai/querent", "api_base": f"{URL}/v1", "api_key": "none"}
ANTHROPIC = {"model": "anthropic/querent", "api_base": URL, "api_key": "none", "max_tokens": 500}
BOTH = pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": PARAMETERS}}


class City(BaseModel):
    name: str
    population: int


def asked(text):
    return [{"role": "user", "content": text}]


@BOTH
def test_text(provider):
    reply = litellm.completion(**provider, messages=asked("hello there"))
    assert "hello there" in reply.choices[0].message.content and reply.usage.total_tokens > 0


@BOTH
def test_stream(provider):
    pieces = list(litellm.completion(**provider, messages=asked("hello there"), stream=True, stream_options={"include_usage": True}))
    assert "hello there" in "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert any(getattr(piece, "usage", None) for piece in pieces)


@BOTH
async def test_without_waiting(provider):
    reply = await litellm.acompletion(**provider, messages=asked("hello there"))
    assert reply.choices[0].finish_reason == "stop"


@BOTH
def test_a_tool_and_its_result(provider):
    messages = asked("What is the weather in Paris?")
    reply = litellm.completion(**provider, messages=messages, tools=[TOOL]).choices[0].message
    [call] = reply.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    messages += [reply.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    assert "sunny" in litellm.completion(**provider, messages=messages, tools=[TOOL]).choices[0].message.content


@BOTH
def test_a_tool_while_it_streams(provider):
    pieces = list(litellm.completion(**provider, messages=asked("What is the weather in Paris?"), tools=[TOOL], stream=True))
    whole = litellm.stream_chunk_builder(pieces)
    assert json.loads(whole.choices[0].message.tool_calls[0].function.arguments) == {"city": "Paris"}


@BOTH
def test_a_forced_tool(provider):
    choice = {"type": "function", "function": {"name": "get_weather"}}
    reply = litellm.completion(**provider, messages=asked("hello"), tools=[TOOL], tool_choice=choice)
    assert reply.choices[0].message.tool_calls[0].function.name == "get_weather"


@BOTH
def test_a_schema(provider):
    reply = litellm.completion(**provider, messages=asked("What is known of Paris, 7 people?"), response_format=City)
    assert City.model_validate_json(reply.choices[0].message.content).population == 7


@BOTH
def test_settings(provider):
    reply = litellm.completion(**provider, messages=asked("hello"), temperature=0.2, top_p=0.9, stop=["zzz"])
    assert reply.choices[0].message.content


def test_responses():
    reply = litellm.responses(**OPENAI, input="hello there")
    assert "hello there" in reply.output[0].content[0].text
    events = list(litellm.responses(**OPENAI, input="hello there", stream=True))
    assert events[-1].type == "response.completed"


def test_a_responses_tool():
    tool = {"type": "function", "name": "get_weather", "parameters": PARAMETERS, "strict": False}
    reply = litellm.responses(**OPENAI, input="What is the weather in Paris?", tools=[tool])
    call = next(item for item in reply.output if item.type == "function_call")
    assert json.loads(call.arguments) == {"city": "Paris"}


async def test_messages():
    reply = await litellm.anthropic.messages.acreate(**ANTHROPIC, messages=asked("hello there"))
    assert "hello there" in reply["content"][0]["text"]


def test_text_completion():
    reply = litellm.text_completion(**OPENAI | {"model": "text-completion-openai/querent"}, prompt="hello there")
    assert "hello there" in reply.choices[0].text


@BOTH
def test_an_error(provider):
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**provider, messages=asked("hello"), temperature=9, num_retries=0)
