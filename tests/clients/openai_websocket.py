"""OpenAI's library for Python and its agents over a WebSocket, and Azure's class of it.

usage: openai_websocket.py URL TOKEN

The server's model is scripted (tests/it/openai.rs); every check is an assertion here, and the last line
printed is `ok`.
"""

import asyncio
import json
import sys
import time

import openai
from agents import Agent, OpenAIProvider, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from openai.lib.responses_websocket import ResponsesWebSocketLimits, ResponsesWebSocketSession
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

url, token = sys.argv[1:3]
client = OpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0)
several = AsyncOpenAI(base_url=f"{url}/v1", api_key=token)
set_tracing_disabled(True)
ENDS = {"response.completed", "response.failed", "response.incomplete", "error", "response.steer.failed"}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def turn(connection):
    """Returns the events up to the end of a response."""
    events = []
    for event in connection:
        events.append(event)
        if event.type in ENDS:
            return events
    raise AssertionError(f"the connection ended: {events}")


def turns():
    with client.responses.connect() as connection:
        connection.response.create(model="querent", input="how many?")
        events = turn(connection)
        assert [event.sequence_number for event in events] == list(range(len(events))), events
        assert events[0].type == "response.created" and events[-1].type == "response.completed", events
        first = events[-1].response
        assert first.output[-1].content[0].text == "It is 42.", first
        # It is the response that is stored.
        assert client.responses.retrieve(first.id).output_text == "I will count. It is 42."
        connection.response.create(model="querent", input="thanks", previous_response_id=first.id)
        second = turn(connection)[-1].response
        assert second.previous_response_id == first.id, second
        assert second.output[0].content[0].text == "You are welcome.", second
        # A tool of the client's, whose output comes in the next request.
        connection.response.create(model="querent", input="weather?", tools=[WEATHER])
        called = turn(connection)[-1].response
        call = called.output[0]
        assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Paris"}, called
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        connection.response.create(input=[output], previous_response_id=called.id, tools=[WEATHER])
        assert turn(connection)[-1].response.output[0].content[0].text == "It is sunny."
        # Two requests at once are answered one after the other.
        for _ in range(2):
            connection.response.create(model="querent", input="thanks")
        kinds = [event.type for event in turn(connection)], [event.type for event in turn(connection)]
        assert kinds[0] == kinds[1] and kinds[0][0] == "response.created", kinds


def refusals():
    with client.responses.connect() as connection:
        for fields, status, param in [
            ({"input": "thanks", "temperature": 7}, 400, "temperature"),
            ({"input": []}, 400, "input"),
            ({"input": "thanks", "background": True}, 400, "background"),
            ({"input": "thanks", "generate": False}, 400, "generate"),
            ({"input": "thanks", "stream": False}, 400, "stream"),
            ({"input": "thanks", "zzz": 1}, 400, "zzz"),
            ({"input": "thanks", "previous_response_id": "resp_none"}, 400, "previous_response_id"),
        ]:
            connection.send_raw(json.dumps({"type": "response.create", **fields}))
            [event] = turn(connection)
            assert (event.type, event.status, event.error.param) == ("error", status, param), event
        assert event.error.code == "previous_response_not_found", event
        for raw in ["{", "[]", '{"type": "session.update"}', '{"type": "response.create", "input": "a", "input": "b"}']:
            connection.send_raw(raw)
            [event] = turn(connection)
            assert event.type == "error" and event.error.type == "invalid_request_error", event
        connection.response.steer(input="shorter", previous_response_id="resp_none")
        [event] = turn(connection)
        assert event.type == "response.steer.failed" and event.steer.input == "shorter", event
        # A run that fails ends as it does in a stream, and the connection goes on.
        connection.response.create(model="querent", input="fail")
        assert turn(connection)[-1].type == "response.failed"
        connection.response.create(model="querent", input="thanks")
        assert turn(connection)[-1].type == "response.completed"


def lanes():
    limits = ResponsesWebSocketLimits(
        max_lanes=8, max_events_per_lane=100, max_bytes_per_lane=1 << 20, max_events=1_000, max_bytes=1 << 24
    )
    with client.responses.connect() as connection, ResponsesWebSocketSession(connection, limits=limits) as session:
        slow, quick = session.lane("slow"), session.lane("quick")
        slow.send({"type": "response.create", "model": "querent", "input": "slow"})
        while slow.recv(timeout=30).type != "response.output_text.delta":
            pass
        # It goes on all the while.
        quick.send({"type": "response.create", "model": "querent", "input": "thanks"})
        answer = quick.get_final_response(timeout=30)
        assert answer.output[0].content[0].text == "You are welcome.", answer
        # What is refused is told to the lane that asked for it.
        refused = session.lane("refused")
        for fields in [{"temperature": 7}, {"background": True}]:
            refused.send({"type": "response.create", "model": "querent", "input": "thanks", **fields})
            event = refused.recv(timeout=30)
            assert (event.type, event.stream_id, event.status) == ("error", "refused", 400), event
        # The server's limit of a run's time ends it.
        assert slow.get_final_response(timeout=60).status == "failed"


def a_client_that_goes_away():
    with client.responses.connect() as connection:
        connection.response.create(model="querent", input="how many?")
        response_id = next(iter(connection)).response.id
    # What is stored goes on to its end.
    for _ in range(100):
        status = client.responses.retrieve(response_id).status
        if status != "in_progress":
            break
        time.sleep(0.1)
    assert status == "completed", status


async def several_at_once():
    async def one():
        async with several.responses.connect() as connection:
            await connection.response.create(model="querent", input="thanks")
            async for event in connection:
                if event.type in ENDS:
                    return event.response.output[0].content[0].text

    answers = await asyncio.gather(*[one() for _ in range(8)])
    assert answers == ["You are welcome."] * 8, answers


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    assert city == "Paris"
    return "sunny"


async def agents_of_openai():
    provider = OpenAIProvider(openai_client=several, use_responses_websocket=True)
    agent = Agent(name="Forecaster", model=provider.get_model("querent"), tools=[get_weather])
    result = await Runner.run(agent, "weather?")
    assert result.final_output == "It is sunny.", result
    again = Runner.run_streamed(agent, result.to_input_list() + [{"role": "user", "content": "thanks"}])
    kinds = [event.type async for event in again.stream_events()]
    assert again.final_output == "You are welcome." and "raw_response_event" in kinds, again
    await provider.aclose()


def strangers():
    nobody = OpenAI(base_url=f"{url}/v1", api_key="wrong")
    try:
        with nobody.responses.connect() as connection:
            connection.response.create(model="querent", input="thanks")
            turn(connection)
        raise AssertionError("a wrong token was taken")
    except (InvalidStatus, ConnectionClosed, openai.OpenAIError) as error:
        assert "401" in str(error), error


def pages():
    address, headers = f"ws{url.removeprefix('http')}/v1/responses", {"Authorization": f"Bearer {token}"}
    with connect(address, origin=url, additional_headers=headers, proxy=None) as own:
        own.send(json.dumps({"type": "response.create", "input": "thanks"}))
        assert json.loads(own.recv())["type"] == "response.created"
    try:
        with connect(address, origin="https://evil.example", additional_headers=headers, proxy=None):
            raise AssertionError("a page of another site was let in")
    except InvalidStatus as error:
        assert error.response.status_code == 403, error


def azure():
    version = "2024-10-21"
    by_model = AzureOpenAI(azure_endpoint=url, api_key=token, api_version=version, max_retries=0)
    question = [{"role": "user", "content": "thanks"}]
    completion = by_model.chat.completions.create(model="scripted", messages=question)
    assert completion.choices[0].message.content == "You are welcome." and completion.model == "scripted", completion
    deployed = AzureOpenAI(
        azure_endpoint=url, azure_deployment="scripted", api_key=token, api_version=version, max_retries=0
    )
    completion = deployed.chat.completions.create(model="any", messages=question)
    assert completion.model == "scripted", "the deployment is the model"
    chunks = list(deployed.chat.completions.create(model="any", messages=question, stream=True))
    assert chunks[-1].choices[0].finish_reason == "stop", chunks
    response = by_model.responses.create(model="querent", input="thanks")
    assert by_model.responses.retrieve(response.id).output_text == "You are welcome."
    assert [item.content[0].text for item in deployed.responses.input_items.list(response.id)] == ["thanks"]
    assert "scripted" in [model.id for model in by_model.models.list()]
    uploaded = by_model.files.create(file=("notes.csv", b"a,b\n1,2\n", "text/csv"), purpose="assistants")
    assert by_model.files.delete(uploaded.id).deleted
    with by_model.responses.connect() as connection:
        connection.response.create(model="querent", input="thanks")
        assert turn(connection)[-1].type == "response.completed"
    # The clients of Azure's version 1 are OpenAI's own.
    newer = OpenAI(base_url=f"{url}/openai/v1/", api_key=token, default_query={"api-version": "preview"})
    assert newer.responses.create(model="querent", input="thanks").output_text == "You are welcome."
    here = OpenAI(base_url=f"{url}/v1", api_key=token, default_query={"api-version": "preview"})
    assert here.responses.create(model="querent", input="thanks").output_text == "You are welcome."
    stranger = AzureOpenAI(azure_endpoint=url, api_key="wrong", api_version=version)
    for wrong, kind in [
        (lambda: stranger.models.list(), openai.AuthenticationError),
        (lambda: by_model.images.generate(model="scripted", prompt="x"), openai.NotFoundError),
        (lambda: by_model.models.list(extra_query={"zzz": 1}), openai.BadRequestError),
    ]:
        try:
            wrong()
            raise AssertionError(f"no {kind.__name__}")
        except kind:
            pass


for check in [turns, refusals, lanes, a_client_that_goes_away, strangers, pages, azure]:
    check()
    print(check.__name__, flush=True)


async def at_once():
    await several_at_once()
    await agents_of_openai()


asyncio.run(at_once())
print("ok")
