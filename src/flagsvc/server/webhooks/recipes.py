"""Recipes: how the form of a webhook begins for a chat (decision 0033). Pure."""

from __future__ import annotations

from typing import NamedTuple

from flagsvc.server.webhooks.provider import BODY, CONTENT_TYPE

SLACK_BODY = """{
  "text": "{{eventMarkdown}}",
  "blocks": [{"type": "markdown", "text": "{{eventMarkdown}}"}]
}"""
MATTERMOST_BODY = """{"text": "{{eventMarkdown}}"}"""
TEAMS_BODY = """{
  "type": "message",
  "attachments": [{
    "contentType": "application/vnd.microsoft.card.adaptive",
    "content": {
      "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
      "type": "AdaptiveCard",
      "version": "1.4",
      "body": [
        {"type": "TextBlock", "text": "{{event.label}}", "weight": "Bolder", "wrap": true},
        {"type": "TextBlock", "text": "{{eventMarkdown}}", "wrap": true},
        {"type": "FactSet", "facts": [
          {{#event.featureName}}{"title": "Flag", "value": "{{event.featureName}}"},{{/event.featureName}}
          {{#event.environment}}{"title": "Environment", "value": "{{event.environment}}"},{{/event.environment}}
          {"title": "By", "value": "{{event.createdBy}}"}
        ]}
      ]
    }
  }]
}"""


class Recipe(NamedTuple):
    """A recipe: `title` names the chat, `url` shows what its addresses look like, and `words` say where to get an address."""

    title: str
    url: str
    words: str
    body: str

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that the form begins with."""
        return {CONTENT_TYPE: "application/json", BODY: self.body}


RECIPES = {
    "slack": Recipe(
        "Slack",
        "https://hooks.slack.com/services/…",
        "In Slack, an app with incoming webhooks has an address for each channel.",
        SLACK_BODY,
    ),
    "teams": Recipe(
        "Microsoft Teams",
        "https://….logic.azure.com/workflows/…",
        "In Teams, the workflow “Post to a channel when a webhook request is received” has an address.",
        TEAMS_BODY,
    ),
    "mattermost": Recipe(
        "Mattermost",
        "https://chat.example/hooks/…",
        "In Mattermost, an incoming webhook below Integrations has an address.",
        MATTERMOST_BODY,
    ),
}
"""Name in an address → the recipe."""
