"""LlamaIndex's OpenAI models over Chat Completions and Responses: run by pytest, with the server's address in QUERENT_URL."""

import os

import pytest
from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

URL = os.environ["QUERENT_URL"]
REACH = {"api_base": f"{URL}/v1", "api_key": "none"}
# The classes for OpenAI itself look a model's context up by its name.
MODELS = {
    "chat": lambda: OpenAI(model="gpt-4o", **REACH),
    "responses": lambda: OpenAIResponses(model="gpt-4o", **REACH),
    "like": lambda: OpenAILike(model="querent", is_chat_model=True, is_function_calling_model=True, **REACH),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


class City(BaseModel):
    """What is known of a city."""

    name: str
    population: int


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


TOOL = FunctionTool.from_defaults(get_weather)
HELLO = [ChatMessage(role="system", content="Be kind."), ChatMessage(role="user", content="hello there")]


def test_chat(model):
    assert "hello there" in model.chat(HELLO).message.content


def test_chat_while_it_streams(model):
    pieces = list(model.stream_chat(HELLO))
    assert len(pieces) > 1 and "hello there" in "".join(piece.delta or "" for piece in pieces)


def test_complete(model):
    assert "hello there" in model.complete("hello there").text
    assert "hello there" in "".join(piece.delta or "" for piece in model.stream_complete("hello there"))


async def test_without_waiting(model):
    assert "hello there" in (await model.achat(HELLO)).message.content
    pieces = [piece async for piece in await model.astream_chat(HELLO)]
    assert "hello there" in "".join(piece.delta or "" for piece in pieces)


def test_a_tool(model):
    reply = model.chat_with_tools([TOOL], "What is the weather in Paris?")
    [call] = model.get_tool_calls_from_response(reply)
    assert (call.tool_name, call.tool_kwargs) == ("get_weather", {"city": "Paris"})


def test_a_tool_that_must_be_called(model):
    reply = model.chat_with_tools([TOOL], "hello", tool_required=True)
    assert model.get_tool_calls_from_response(reply)


def test_a_call_and_its_result(model):
    reply = model.predict_and_call([TOOL], "What is the weather in Paris?")
    assert "sunny in Paris" in str(reply)


def test_an_output_of_a_type(model):
    city = model.structured_predict(City, PromptTemplate("What is known of {place}, 7 people?"), place="Paris")
    assert city.population == 7


def test_an_output_of_a_type_by_a_chat(model):
    reply = model.as_structured_llm(City).chat([ChatMessage(role="user", content="What is known of Paris, 7 people?")])
    assert reply.raw.population == 7


async def test_an_agent(model):
    agent = FunctionAgent(tools=[get_weather], llm=model, system_prompt="Be kind.")
    handler = agent.run("What is the weather in Paris?")
    pieces = [event.delta async for event in handler.stream_events() if isinstance(event, AgentStream)]
    assert "sunny in Paris" in str(await handler) and pieces
