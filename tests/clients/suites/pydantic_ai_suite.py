"""pydantic-ai's agents over Chat Completions, Responses and Messages: run by pytest, with the server's address in QUERENT_URL."""

import os

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

URL = os.environ["QUERENT_URL"]


def models():
    openai = OpenAIProvider(base_url=f"{URL}/v1", api_key="none")
    yield "chat", OpenAIChatModel("querent", provider=openai)
    yield "responses", OpenAIResponsesModel("querent", provider=openai)
    yield "messages", AnthropicModel("querent", provider=AnthropicProvider(base_url=URL, api_key="none"))


MODELS = dict(models())


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


class City(BaseModel):
    name: str
    population: int
    country: str | None


class Tree(BaseModel):
    name: str
    children: list["Tree"]


async def test_text(model):
    result = await Agent(model).run("hello there")
    assert "hello there" in result.output and result.usage().output_tokens > 0


async def test_instructions_and_history(model):
    agent = Agent(model, instructions="Be kind.")
    first = await agent.run("hello one")
    second = await agent.run("hello two", message_history=first.all_messages())
    assert "hello two" in second.output and len(second.all_messages()) > len(first.all_messages())


async def test_stream(model):
    async with Agent(model).run_stream("hello stream") as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    assert len(pieces) > 1 and "hello stream" in "".join(pieces)


async def test_a_tool(model):
    agent, asked = Agent(model), []

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"sunny in {city}"

    result = await agent.run("What is the weather in Paris?")
    assert asked == ["Paris"] and "sunny in Paris" in result.output


async def test_a_tool_while_it_streams(model):
    agent = Agent(model)

    @agent.tool_plain
    async def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    async with agent.run_stream("What is the weather in Paris?") as result:
        assert "sunny in Paris" in await result.get_output()


async def test_tools_in_parallel(model):
    agent, asked = Agent(model), set()

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.add("weather")
        return "sunny"

    @agent.tool_plain
    def get_time(city: str) -> str:
        """The time in a city."""
        asked.add("time")
        return "noon"

    await agent.run("Both weather and time of Paris, please")
    assert asked == {"weather", "time"}


async def test_a_tool_asks_for_another_try(model):
    agent, tries = Agent(model, retries=2), []

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        tries.append(city)
        if len(tries) == 1:
            raise ModelRetry("the weather service is slow; call again")
        return "sunny"

    # The model says what it was told, rather than to call again.
    result = await agent.run("What is the weather in Paris?")
    assert tries and result.output


def needs_native_output(model):
    if isinstance(model, AnthropicModel):
        pytest.skip("pydantic-ai offers it for models whose names it knows")


@pytest.mark.parametrize("form", [ToolOutput, NativeOutput])
async def test_an_output_of_a_type(model, form):
    if form is NativeOutput:
        needs_native_output(model)
    result = await Agent(model, output_type=form(City)).run("What is known of Paris, 7 people?")
    assert isinstance(result.output, City) and result.output.population == 7


async def test_an_output_that_names_itself(model):
    needs_native_output(model)
    result = await Agent(model, output_type=NativeOutput(Tree)).run("A tree named Oak")
    assert isinstance(result.output, Tree) and result.output.children


async def test_one_of_several_outputs(model):
    result = await Agent(model, output_type=[City, Tree]).run("What is known of Paris, 7 people?")
    assert isinstance(result.output, City | Tree)


async def test_an_output_while_it_streams(model):
    async with Agent(model, output_type=City).run_stream("What is known of Paris, 7 people?") as result:
        last = [one async for one in result.stream_output(debounce_by=None)][-1]
    assert last.population == 7


async def test_a_tool_and_an_output(model):
    agent = Agent(model, output_type=City)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return "sunny"

    result = await agent.run("What is known of Paris, 7 people?")
    assert isinstance(result.output, City)


async def test_settings(model):
    result = await Agent(model).run("hello", model_settings={"temperature": 0.2, "top_p": 0.9, "max_tokens": 100})
    assert result.output


async def test_every_event(model):
    async with Agent(model).iter("hello events") as run:
        nodes = [type(node).__name__ async for node in run]
    assert run.result.output and len(nodes) >= 3
