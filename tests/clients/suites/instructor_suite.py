"""instructor over Chat Completions, Responses and Messages: run by pytest, with the server's address in QUERENT_URL."""

import os
from collections.abc import Iterable
from typing import Literal

import anthropic
import instructor
import openai
import pytest
from pydantic import BaseModel, field_validator

URL = os.environ["QUERENT_URL"]
ASKED = [{"role": "user", "content": "What is known of Paris, 7 people?"}]


class City(BaseModel):
    name: str
    population: int
    size: Literal["small", "large"]
    kind: Literal["city", "town"]
    country: str | None = None


def client_of(mode):
    mode = getattr(instructor.Mode, mode)
    if mode.name.startswith("ANTHROPIC"):
        return instructor.from_anthropic(anthropic.Anthropic(base_url=URL, api_key="none"), mode=mode), {"max_tokens": 500}
    return instructor.from_openai(openai.OpenAI(base_url=f"{URL}/v1", api_key="none"), mode=mode), {}


@pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS", "ANTHROPIC_TOOLS"])
def test_a_model(mode):
    client, options = client_of(mode)
    city = client.create(model="querent", response_model=City, messages=ASKED, **options)
    assert isinstance(city, City) and city.population == 7


@pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
def test_a_model_while_it_streams(mode):
    client, options = client_of(mode)
    parts = list(client.create_partial(model="querent", response_model=City, messages=ASKED, **options))
    assert parts[-1].population == 7


@pytest.mark.parametrize("mode", ["TOOLS", "ANTHROPIC_TOOLS"])
def test_a_list(mode):
    client, options = client_of(mode)
    cities = list(client.create_iterable(model="querent", response_model=City, messages=ASKED, **options))
    assert cities and all(isinstance(city, City) for city in cities)


def test_calls_in_parallel():
    client, options = client_of("PARALLEL_TOOLS")
    asked = [{"role": "user", "content": "Both: what is known of Paris, 7 people?"}]
    cities = list(client.create(model="querent", response_model=Iterable[City], messages=asked, **options))
    assert cities and all(isinstance(city, City) for city in cities)


@pytest.mark.parametrize("mode", ["TOOLS", "ANTHROPIC_TOOLS"])
def test_what_does_not_hold_is_asked_again(mode):
    class Never(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def never(cls, value):
            raise ValueError("no name is right")

    client, options = client_of(mode)
    with pytest.raises(Exception, match="no name is right"):
        client.create(model="querent", response_model=Never, messages=ASKED, max_retries=1, **options)


@pytest.mark.parametrize("mode", ["TOOLS", "ANTHROPIC_TOOLS"])
def test_text_beside_the_model(mode):
    client, options = client_of(mode)
    city, completion = client.create_with_completion(model="querent", response_model=City, messages=ASKED, **options)
    assert isinstance(city, City) and completion.usage


@pytest.mark.parametrize("kind", [int, Literal["a", "b"], list[str]])
def test_simple_types(kind):
    client, options = client_of("TOOLS")
    assert client.create(model="querent", response_model=kind, messages=ASKED, **options) is not None


async def test_without_waiting():
    client = instructor.from_openai(openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key="none"))
    city = await client.create(model="querent", response_model=City, messages=ASKED)
    assert city.population == 7
