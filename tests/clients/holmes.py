"""Drives a server with httpx-sse, unchanged, as a client of HolmesGPT's API. Every check must hold.

usage: python holmes.py URL KEY
"""

import json
import sys

import httpx
from httpx_sse import connect_sse

URL, KEY = sys.argv[1:]
CLIENT = httpx.Client(base_url=URL, headers={"X-API-Key": KEY}, timeout=60)


def stream(**body):
    with connect_sse(CLIENT, "POST", "/api/chat", json={"stream": True, **body}) as source:
        return [(event.event, json.loads(event.data), event.id) for event in source.iter_sse()]


def a_question_and_its_conversation():
    events = stream(ask="tools")
    assert events[-1][0] == "ai_answer_end", events
    history = events[-1][1]["conversation_history"]
    assert [message["role"] for message in history] == ["system", "user", "assistant", "tool", "assistant"]
    assert len({event_id for _, _, event_id in events}) == len(events)
    assert stream(ask="plain", conversation_history=history)[-1][1]["analysis"] == "Hello there."


def a_person_denies():
    paused = stream(ask="keep", enable_tool_approval=True)[-1][1]
    assert paused["requires_approval"] and paused["pending_frontend_tool_calls"] == []
    decisions = [{"tool_call_id": call["tool_call_id"], "approved": False} for call in paused["pending_approvals"]]
    events = stream(conversation_history=paused["conversation_history"], tool_decisions=decisions)
    assert events[0][0] == "tool_calling_result" and events[0][1]["result"]["status"] == "error", events
    assert events[-1][1]["analysis"] == "It is done with."


def one_answer_as_a_whole():
    answer = CLIENT.post("/api/chat", json={"ask": "tools"}).json()
    assert answer["analysis"] == "It is 1." and answer["pending_approvals"] is None, answer
    assert answer["tool_calls"][0]["result"]["status"] == "success", answer
    models = CLIENT.get("/api/model").json()["model_name"]
    assert (json.loads(models) if isinstance(models, str) else models) == ["scripted"]


def a_wrong_key():
    refused = httpx.post(f"{URL}/api/chat", json={"ask": "plain"}, headers={"X-API-Key": "wrong"})
    assert refused.status_code == 401 and refused.json() == {"detail": "Invalid or missing API key"}, refused.text


for check in [a_question_and_its_conversation, a_person_denies, one_answer_as_a_whole, a_wrong_key]:
    check()
