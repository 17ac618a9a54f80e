"""A client of Cube's chat API as people write it with requests."""

import json
import sys

import requests

url, key = sys.argv[1:]
response = requests.post(
    url,
    headers={"Content-Type": "application/json", "Authorization": f"Api-Key {key}"},
    json={
        "input": "plain, please",
        "sessionSettings": {"externalId": "user@example.com", "email": "user@example.com"},
    },
    stream=True,
)
assert response.status_code == 200, response.text
lines = [json.loads(line.decode("utf-8")) for line in response.iter_lines() if line]
chat_id = next(line for line in lines if line["id"] == "__cutoff__")["state"]["chatId"]
final = [line for line in lines if line["role"] == "assistant" and line.get("graphPath", [None])[0] == "final"]
print("content", final[-1]["content"])
assert final[-1]["content"] == "Hello there.", final
assert lines[-1]["id"] == "__state__", lines[-1]

aborted = requests.post(
    url.replace("/stream-chat-state", "/abort"),
    headers={"Authorization": f"Api-Key {key}"},
    json={"chatId": chat_id, "sessionSettings": {"externalId": "user@example.com"}},
)
assert aborted.status_code == 204, aborted.text
