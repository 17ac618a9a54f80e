"""LangChain's standard suite of chat models, of its OpenAI models over both APIs and of its Anthropic model: run by pytest, with
the server's address in QUERENT_URL.
"""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

URL = os.environ["QUERENT_URL"]


class OpenAiSuite(ChatModelIntegrationTests):
    options = {}

    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return {"model": "querent", "base_url": f"{URL}/v1", "api_key": "none"} | self.options

    @property
    def supports_json_mode(self):
        return True


class TestChatCompletions(OpenAiSuite):
    options = {"stream_usage": True}


class TestResponses(OpenAiSuite):
    options = {"use_responses_api": True}


class TestMessages(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return ChatAnthropic

    @property
    def chat_model_params(self):
        return {"model": "querent", "base_url": URL, "api_key": "none", "max_tokens": 500}
