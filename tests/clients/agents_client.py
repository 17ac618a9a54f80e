"""openai-agents against a running server: usage: agents_client.py URL TOKEN, with the scripted model of tests/it/openai.rs."""

import asyncio
import json
import sys
import warnings

from agents import (
    Agent,
    HostedMCPTool,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    RunState,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

# What is not of its declared type is taken, with a warning.
warnings.filterwarnings("error", message="(?s)Pydantic serializer warnings.*")
url, token = sys.argv[1:3]
client = AsyncOpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0)
set_tracing_disabled(True)
responses = OpenAIResponsesModel("querent", client)
models = [responses, OpenAIChatCompletionsModel("querent", client)]


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    assert city == "Paris"
    return "sunny"


class Count(BaseModel):
    name: str
    n: int


def server(**options):
    config = {"type": "mcp", "server_label": "tables", "server_url": url, "require_approval": "always"}
    return HostedMCPTool(tool_config=config, **options)


async def streamed(*arguments, **options):
    result = Runner.run_streamed(*arguments, **options)
    kinds = [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]
    return result, kinds


async def plain():
    for model in models:
        agent = Agent("analyst", model=model)
        whole = await Runner.run(agent, "how many?")
        assert whole.final_output.endswith("It is 42."), whole.final_output
        assert whole.context_wrapper.usage.total_tokens == 235
        pieces, _ = await streamed(agent, "how many?")
        assert pieces.final_output == whole.final_output


async def tools_of_the_server():
    agent = Agent("analyst", model=responses, tools=[server()])
    result, kinds = await streamed(agent, "both")
    assert kinds == ["tool_called", "tool_called", "message_output_created"], kinds
    calls = [item.raw_item for item in result.new_items[:2]]
    assert [(call.type, call.server_label, call.status) for call in calls] == [("mcp_call", "tables", "completed")] * 2
    failed = await Runner.run(agent, "unknown tool")
    call = failed.new_items[0].raw_item
    assert (call.status, call.error.type) == ("failed", "mcp_tool_execution_error"), call
    assert "drop_table" in call.error.content[0]["text"], call
    thanked = await Runner.run(agent, failed.to_input_list() + [{"role": "user", "content": "thanks"}])
    assert thanked.final_output == "You are welcome."
    again = result.to_input_list() + [{"role": "user", "content": "thanks"}]
    assert (await Runner.run(agent, again)).final_output == "You are welcome."


async def tools_of_the_client():
    for model in models:
        agent = Agent("analyst", model=model, tools=[get_weather])
        whole = await Runner.run(agent, "weather?")
        assert whole.final_output == "It is sunny.", whole.final_output
        pieces, kinds = await streamed(agent, "weather?")
        assert kinds == ["tool_called", "tool_output", "message_output_created"], kinds
        assert pieces.final_output == "It is sunny."
    agent = Agent("analyst", model=responses, tools=[get_weather])
    chained = await Runner.run(agent, "weather?", auto_previous_response_id=True)
    assert chained.final_output == "It is sunny."
    conversation = await client.conversations.create()
    assert (await Runner.run(agent, "weather?", conversation_id=conversation.id)).final_output == "It is sunny."


async def structured():
    for model in models:
        agent = Agent("analyst", model=model, output_type=Count)
        assert (await Runner.run(agent, "structured")).final_output == Count(name="UA", n=3)


async def approvals():
    asked = []

    def decide(request):
        asked.append((request.data.name, request.data.server_label))
        return {"approve": False, "reason": "not today"}

    deciding = Agent("writer", model=responses, tools=[server(on_approval_request=decide)])
    for options in [{}, {"auto_previous_response_id": True}]:
        assert (await Runner.run(deciding, "create a table", **options)).final_output == "It is made."
    assert asked == [("create_table_as", "tables")] * 2, asked
    # A call of the application's own in the same reply is answered beside the decision.
    both = Agent("writer", model=responses, tools=[get_weather, server(on_approval_request=decide)])
    for options in [{}, {"auto_previous_response_id": True}]:
        assert (await Runner.run(both, "a mixed reply", **options)).final_output == "It is sunny, and kept."

    # The run is put away and goes on later: nothing but its own history is sent.
    agent = Agent("writer", model=responses, tools=[server()])
    paused = await Runner.run(agent, "create a table")
    state = await RunState.from_json(agent, json.loads(json.dumps(paused.to_state().to_json())))
    [interruption] = state.get_interruptions()
    state.approve(interruption)
    done = await Runner.run(agent, state)
    assert done.final_output == "It is made."
    [call] = [item.raw_item for item in done.new_items if item.type == "tool_call_item"]
    assert (call.type, call.name, call.error) == ("mcp_call", "create_table_as", None), call


async def sessions():
    session = OpenAIConversationsSession(openai_client=client)
    agent = Agent("analyst", model=responses, tools=[get_weather])
    for question, answer in [("weather?", "It is sunny."), ("both", "1 and 2."), ("thanks", "You are welcome.")]:
        assert (await Runner.run(agent, question, session=session)).final_output == answer
    kinds = [item["type"] for item in await session.get_items()]
    called = ["message", "function_call", "function_call_output", "message"]
    assert kinds == [*called, "message", "mcp_call", "mcp_call", "message", "message", "message"], kinds
    assert (await session.pop_item())["role"] == "assistant"
    assert len(await session.get_items(limit=2)) == 2
    await session.clear_session()


async def main():
    for check in [plain, tools_of_the_server, tools_of_the_client, structured, approvals, sessions]:
        await check()
        print(check.__name__)


asyncio.run(main())
