"""Anthropic's library for Python against a running server: usage: anthropic_client.py URL TOKEN."""

import sys

import anthropic

url, token = sys.argv[1:3]
client = anthropic.Anthropic(base_url=url, api_key=token, max_retries=0)


def ask(text, **options):
    return client.messages.create(
        model="querent", max_tokens=500, messages=[{"role": "user", "content": text}], **options
    )


whole = ask("how many?")
assert whole.type == "message" and whole.role == "assistant" and whole.model == "querent", whole
assert whole.stop_reason == "end_turn" and "It is 42." in "".join(block.text for block in whole.content), whole
assert whole.usage.output_tokens == 15, whole.usage

with client.messages.stream(
    model="querent", max_tokens=500, messages=[{"role": "user", "content": "how many?"}]
) as stream:
    text = "".join(stream.text_stream)
    final = stream.get_final_message()
assert "It is 42." in text and final.stop_reason == "end_turn", (text, final)

thought = ask("how many?", thinking={"type": "enabled", "budget_tokens": 1024})
assert thought.content[0].type == "thinking" and thought.content[0].thinking == "count", thought

weather = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
called = ask("weather?", tools=[weather])
assert called.stop_reason == "tool_use", called
call = called.content[-1]
assert (call.type, call.name, call.input) == ("tool_use", "get_weather", {"city": "Paris"}), call
answered = client.messages.create(
    model="querent",
    max_tokens=500,
    tools=[weather],
    messages=[
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": [block.model_dump() for block in called.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]},
    ],
)
assert "sunny" in answered.content[-1].text, answered
with client.messages.stream(
    model="querent", max_tokens=500, tools=[weather], messages=[{"role": "user", "content": "weather?"}]
) as stream:
    final = stream.get_final_message()
assert final.content[-1].input == {"city": "Paris"}, final

counted = client.messages.count_tokens(model="querent", messages=[{"role": "user", "content": "how many flights?"}])
assert 3 <= counted.input_tokens < 20, counted

for kind, bad in [
    (anthropic.BadRequestError, lambda: ask("hello", extra_body={"temperature": 7})),
    (anthropic.BadRequestError, lambda: ask("hello", tools=[{"type": "bash_20250124", "name": "bash"}])),
    (anthropic.BadRequestError, lambda: ask("hello", extra_body={"top_k": 3})),
    (anthropic.BadRequestError, lambda: ask("hello", tool_choice={"type": "tool", "name": "nothing"})),
    (anthropic.InternalServerError, lambda: ask("fail")),
    (anthropic.AuthenticationError, lambda: anthropic.Anthropic(base_url=url, api_key="no", max_retries=0).models.list()),
]:
    try:
        bad()
        raise AssertionError(f"not refused with {kind}")
    except kind as error:
        assert isinstance(error, anthropic.APIStatusError), error

try:
    with client.messages.stream(
        model="querent", max_tokens=500, messages=[{"role": "user", "content": "fail"}]
    ) as stream:
        stream.until_done()
    raise AssertionError("a failing stream is an error")
except anthropic.APIError:
    pass
print("ok")
