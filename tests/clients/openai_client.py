"""OpenAI's own Python library against a running server: usage: openai_client.py BASE_URL TOKEN OTHER_TOKEN.

The server's model is scripted (tests/it/openai.rs); every check is an assertion here, and the last line printed is `ok`.
"""

import json
import sys

import openai
from openai import OpenAI
from pydantic import BaseModel

base, token, other = sys.argv[1:4]
client = OpenAI(base_url=f"{base}/v1", api_key=token)
stranger = OpenAI(base_url=f"{base}/v1", api_key=other)


class Count(BaseModel):
    name: str
    n: int


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def plain():
    response = client.responses.create(model="querent", input="how many?")
    assert response.status == "completed" and response.id.startswith("resp_"), response
    assert [item.type for item in response.output] == ["message", "mcp_call", "message"], response.output
    assert response.output[2].content[0].text == "It is 42."
    assert json.loads(response.output[1].output)["rows"] == [{"n": 42}]
    assert response.usage.total_tokens == 235 and response.usage.input_tokens_details.cached_tokens == 40
    assert response.model == "querent"
    assert client.responses.retrieve(response.id) == response
    items = client.responses.input_items.list(response.id)
    assert [item.content[0].text for item in items.data] == ["how many?"]
    raises(openai.NotFoundError, lambda: stranger.responses.retrieve(response.id))
    client.responses.delete(response.id)
    raises(openai.NotFoundError, lambda: client.responses.retrieve(response.id))


def streamed():
    with client.responses.stream(model="querent", input="how many?", reasoning={"summary": "auto"}) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert "response.reasoning_summary_text.delta" in kinds and "response.mcp_call.completed" in kinds
    assert final.output_text == "I will count. It is 42.", final.output_text
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert deltas == ["I will count. ", "It is ", "42."], deltas
    with client.responses.stream(response_id=final.id, starting_after=5) as again:
        later = list(again)
    assert later and all(event.sequence_number > 5 for event in later)
    assert again.get_final_response().output_text == final.output_text


def continued():
    first = client.responses.create(model="querent", input="how many?")
    second = client.responses.create(model="querent", input="thanks", previous_response_id=first.id)
    assert second.output_text == "You are welcome." and second.previous_response_id == first.id
    by_reference = client.responses.create(
        model="querent",
        input=[{"type": "item_reference", "id": item.id} for item in first.output] + [{"role": "user", "content": "thanks"}],
    )
    assert by_reference.output_text == "You are welcome."
    error = raises(
        openai.BadRequestError,
        lambda: client.responses.create(model="querent", input="thanks", previous_response_id="resp_none"),
    )
    assert error.code == "previous_response_not_found" and error.param == "previous_response_id", error
    raises(
        openai.BadRequestError,
        lambda: stranger.responses.create(model="querent", input="thanks", previous_response_id=first.id),
    )


def conversations():
    conversation = client.conversations.create(metadata={"topic": "counts"})
    assert conversation.metadata == {"topic": "counts"}
    client.conversations.items.create(conversation.id, items=[{"role": "user", "content": "my name is Ann"}])
    response = client.responses.create(model="querent", input="how many?", conversation=conversation.id)
    assert response.conversation.id == conversation.id
    items = client.conversations.items.list(conversation.id, order="asc").data
    assert [item.type for item in items] == ["message", "message", "message", "mcp_call", "message"], items
    added = items[0]
    assert client.conversations.items.retrieve(added.id, conversation_id=conversation.id) == added
    assert [item.id for item in client.conversations.items.list(conversation.id, limit=2)] == [
        item.id for item in reversed(items)
    ], "the library asks for page after page"
    raises(
        openai.NotFoundError,
        lambda: stranger.conversations.items.retrieve(added.id, conversation_id=conversation.id),
    )
    client.conversations.items.delete(added.id, conversation_id=conversation.id)
    left = client.conversations.items.list(conversation.id, order="asc").data
    assert [item.id for item in left] == [item.id for item in items[1:]], left
    changed = client.conversations.update(conversation.id, metadata={"topic": "sums"})
    assert changed.metadata == {"topic": "sums"}
    raises(openai.NotFoundError, lambda: stranger.conversations.retrieve(conversation.id))
    raises(
        openai.NotFoundError,
        lambda: stranger.responses.create(model="querent", input="thanks", conversation=conversation.id),
    )
    assert client.conversations.delete(conversation.id).deleted
    raises(openai.NotFoundError, lambda: client.conversations.retrieve(conversation.id))


def client_tools():
    tool = {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    with client.responses.stream(model="querent", input="weather?", tools=[tool]) as stream:
        call = stream.get_final_response().output[0]
    assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Paris"}
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    answer = client.responses.create(model="querent", input=[output], tools=[tool])
    assert answer.output_text == "It is sunny."
    # With the whole history and nothing stored.
    stateless = client.responses.create(
        model="querent",
        store=False,
        tools=[tool],
        input=[{"role": "user", "content": "weather?"}, call.model_dump(exclude_none=True), output],
    )
    assert stateless.output_text == "It is sunny."
    unknown = [{"type": "function_call_output", "call_id": "call_none", "output": "x"}]
    raises(openai.BadRequestError, lambda: client.responses.create(model="querent", input=unknown))


def approvals():
    paused = client.responses.create(model="querent", input="create a table")
    request = paused.output[-1]
    assert paused.status == "completed" and request.type == "mcp_approval_request", paused
    decision = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    raises(openai.BadRequestError, lambda: stranger.responses.create(model="querent", input=[decision]))
    done = client.responses.create(model="querent", input=[decision])
    assert done.output[0].type == "mcp_call" and done.output[0].error is None, done
    assert done.output_text == "It is made."
    assert client.responses.create(model="querent", input=[decision]).id == done.id
    # A tool that writes cannot ask in Chat Completions: it is refused, and the run goes on.
    question = [{"role": "user", "content": "create a table"}]
    refused = client.chat.completions.create(model="querent", messages=question).choices[0]
    assert refused.finish_reason == "stop" and refused.message.tool_calls is None, refused
    talk = client.conversations.create()
    paused = client.responses.create(model="querent", input="create a table", conversation=talk.id)
    decision = {"type": "mcp_approval_response", "approval_request_id": paused.output[-1].id, "approve": True}
    done = client.responses.create(model="querent", input=[decision], conversation=talk.id)
    assert done.output_text == "It is made." and done.conversation.id == talk.id, done
    denied = client.responses.create(model="querent", input="create a table")
    decision = {"type": "mcp_approval_response", "approval_request_id": denied.output[-1].id, "approve": False}
    answer = client.responses.create(model="querent", input=[decision], previous_response_id=denied.id)
    assert [item.type for item in answer.output] == ["message"], answer


def structured():
    parsed = client.responses.parse(model="querent", input="structured", text_format=Count)
    assert parsed.output_parsed == Count(name="UA", n=3)
    repaired = client.responses.parse(model="querent", input="repair", text_format=Count)
    assert repaired.output_parsed == Count(name="UA", n=3)
    completion = client.chat.completions.parse(
        model="querent", messages=[{"role": "user", "content": "structured"}], response_format=Count
    )
    assert completion.choices[0].message.parsed == Count(name="UA", n=3)


def failures():
    once = client.with_options(max_retries=2)
    error = raises(openai.InternalServerError, lambda: once.responses.create(model="querent", input="fail"))
    assert error.response.headers["x-should-retry"] == "false" and "out of memory" in error.message, error
    with client.responses.stream(model="querent", input="fail") as stream:
        kinds = [event.type for event in stream]
    assert kinds[-1] == "response.failed", kinds
    raises(
        openai.APIError,
        lambda: list(
            client.chat.completions.create(model="querent", messages=[{"role": "user", "content": "fail"}], stream=True)
        ),
    )
    bad = [
        {"input": 7},
        {"input": []},
        {"input": [{"role": "nobody", "content": "x"}]},
        {"input": "x", "conversation": 7},
        {"input": "x", "tools": [{"type": "function"}]},
        {"input": "x", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": 7}}}},
    ]
    for body in bad:
        error = raises(openai.BadRequestError, lambda: client.responses.create(model="querent", extra_body=body, input="x"))
        assert error.code and error.body["type"] == "invalid_request_error", (body, error)
    metadata = {f"k{number}": "v" for number in range(17)}
    raises(openai.BadRequestError, lambda: client.responses.create(model="m", input="x", metadata=metadata))
    nobody = OpenAI(base_url=f"{base}/v1", api_key="wrong")
    error = raises(openai.AuthenticationError, lambda: nobody.models.list())
    assert error.type == "authentication_error" and error.code, error.body
    raises(openai.NotFoundError, lambda: client.models.retrieve("none"))


def cancelled():
    started = client.responses.create(model="querent", input="slow", background=True)
    assert started.status == "in_progress"
    assert client.responses.cancel(started.id).status == "cancelled"
    assert client.responses.retrieve(started.id).status == "cancelled"


def chat():
    question = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "how many?"}]
    completion = client.chat.completions.create(model="any-name", messages=question)
    assert completion.choices[0].message.content == "I will count. \n\nIt is 42.", completion
    assert completion.choices[0].finish_reason == "stop" and completion.usage.total_tokens == 235
    assert completion.choices[0].message.tool_calls is None and completion.model == "any-name"
    with client.chat.completions.stream(
        model="querent", messages=question, stream_options={"include_usage": True}
    ) as stream:
        list(stream)
        final = stream.get_final_completion()
    assert final.choices[0].message.content == completion.choices[0].message.content
    assert final.usage.total_tokens == 235
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    asked = [{"role": "user", "content": "weather?"}]
    with client.chat.completions.stream(model="querent", messages=asked, tools=[tool]) as stream:
        list(stream)
        choice = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls"
    call = choice.message.tool_calls[0]
    assert len(call.id) <= 40, call.id  # the most that OpenAI takes, where a client may send the conversation on
    asked += [choice.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    answer = client.chat.completions.create(model="querent", messages=asked, tools=[tool])
    assert answer.choices[0].message.content == "It is sunny."
    raises(openai.BadRequestError, lambda: client.chat.completions.create(model="querent", messages=[]))


def prompts():
    completion = client.completions.create(model="any-name", prompt="thanks")
    assert completion.choices[0].text == "You are welcome." and completion.choices[0].finish_reason == "stop", completion
    chunks = client.completions.create(model="any-name", prompt=["thanks"], stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == "You are welcome."
    raises(openai.BadRequestError, lambda: client.completions.create(model="any-name", prompt="thanks", echo=True))


def files():
    uploaded = client.files.create(file=("notes.csv", b"a,b\n1,2\n", "text/csv"), purpose="user_data")
    assert uploaded.bytes == 8 and client.files.retrieve(uploaded.id).filename == "notes.csv"
    content = [{"type": "input_text", "text": "thanks"}, {"type": "input_file", "file_id": uploaded.id}]
    message = [{"role": "user", "content": content}]
    assert client.responses.create(model="querent", input=message).output_text == "You are welcome."
    raises(openai.NotFoundError, lambda: stranger.responses.create(model="querent", input=message))
    raises(openai.NotFoundError, lambda: stranger.files.retrieve(uploaded.id))
    assert client.files.content(uploaded.id).read() == b"a,b\n1,2\n"
    assert [file.id for file in client.files.list()] == [uploaded.id]
    assert client.files.delete(uploaded.id).deleted
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    message = [{"role": "user", "content": [{"type": "input_text", "text": "thanks"}, image]}]
    assert client.responses.create(model="querent", input=message).output_text == "You are welcome."
    unreadable = {"type": "input_file", "filename": "a.bin", "file_data": "data:application/x;base64,AP8="}
    message = [{"role": "user", "content": [unreadable]}]
    raises(openai.BadRequestError, lambda: client.responses.create(model="querent", input=message))


def models():
    assert [model.id for model in client.models.list()] == ["querent", "scripted"]
    assert client.models.retrieve("scripted").object == "model"


for check in [
    plain,
    streamed,
    continued,
    conversations,
    client_tools,
    approvals,
    structured,
    failures,
    cancelled,
    chat,
    prompts,
    files,
    models,
]:
    check()
    print(check.__name__, flush=True)
print("ok")
