"""A2A's library for Python against a running server: usage: a2a_client.py URL TOKEN."""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import UnsupportedOperationError

url, token = sys.argv[1:3]


def request(text, context=""):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], context_id=context)
    return SendMessageRequest(message=message)


def answer_of(task):
    [answer] = [artifact for artifact in task.artifacts if artifact.name == "answer"]
    return "".join(part.text for part in answer.parts)


async def talk(card, version, http):
    for interface in list(card.supported_interfaces):
        if interface.protocol_version != version:
            card.supported_interfaces.remove(interface)
    whole = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
    [event] = [event async for event in whole.send_message(request("how many?"))]
    task = event.task
    assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
    assert answer_of(task) == "It is 42.", task
    assert any(artifact.name == "run_sql" for artifact in task.artifacts), task
    assert task.history[0].parts[0].text == "how many?", task
    again = await whole.get_task(GetTaskRequest(id=task.id))
    assert answer_of(again) == "It is 42." and again.context_id == task.context_id, again

    # The context is a conversation.
    [event] = [event async for event in whole.send_message(request("thanks", task.context_id))]
    assert event.task.context_id == task.context_id and event.task.id != task.id, event
    assert answer_of(event.task) == "You are welcome.", event

    # The last one is told as it comes.
    streaming = ClientFactory(ClientConfig(httpx_client=http, streaming=True)).create(card)
    said, states, first = "", [], None
    async for event in streaming.send_message(request("how many?")):
        kind = event.WhichOneof("payload")
        first = first or kind
        if kind == "artifact_update" and event.artifact_update.artifact.name == "answer":
            text = "".join(part.text for part in event.artifact_update.artifact.parts)
            said = said + text if event.artifact_update.append else text
        if kind == "status_update":
            states.append(event.status_update.status.state)
    assert first == "task" and said == "It is 42.", (first, said)
    assert states[-1] == TaskState.TASK_STATE_COMPLETED, states

    # One that takes long is cancelled, and says so to whoever follows it.
    states, task_id = [], None
    async for event in streaming.send_message(request("slow")):
        if event.WhichOneof("payload") == "task":
            task_id = event.task.id
        elif event.WhichOneof("payload") == "artifact_update" and not event.artifact_update.last_chunk:
            cancelled = await streaming.cancel_task(CancelTaskRequest(id=task_id))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
        elif event.WhichOneof("payload") == "status_update":
            states.append(event.status_update.status.state)
    assert states[-1] == TaskState.TASK_STATE_CANCELED, states
    # In the newer version a task that is over is not followed; in the older one it is told again.
    try:
        followed = [event async for event in streaming.subscribe(SubscribeToTaskRequest(id=task_id))]
        assert version == "0.3" and followed[0].task.id == task_id, followed
    except UnsupportedOperationError:
        assert version == "1.0", version
    try:
        await streaming.get_task(GetTaskRequest(id=str(uuid.uuid4())))
        raise AssertionError("a task that is not there was found")
    except Exception as error:
        assert "task" in str(error).lower(), error


async def main():
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        for version in ["1.0", "0.3"]:
            card = await A2ACardResolver(http, url).get_agent_card()
            assert card.name == "Querent" and card.capabilities.streaming, card
            await talk(card, version, http)
    print("ok")


asyncio.run(main())
