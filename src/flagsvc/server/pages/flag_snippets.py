"""How code asks for a flag, in the SDKs of the Unleash family: a row for each, for the page of a flag."""

from __future__ import annotations

from typing import Final, NamedTuple

from flagsvc.server.store.checks import Json


class Sdk(NamedTuple):
    """An SDK: where it runs, how it is installed, how it is set up, and how it asks for a flag and for a variant of it.

    The code waits until the SDK has flags, where the SDK can, so that the first question has the right answer.

    @SERVER@ stands for the address of the server, @FLAG@ for the name of the flag.
    """

    title: str
    install: str
    setup: str
    ask: str
    ask_variant: str


SDKS: Final = (
    Sdk(
        "JavaScript in a browser",
        "npm install unleash-proxy-client",
        """import { UnleashClient } from 'unleash-proxy-client';

const unleash = new UnleashClient({
  url: '@SERVER@/api/frontend', clientKey: 'FRONTEND-TOKEN', appName: 'my-app', context: { userId: '7' },
});
await unleash.start();""",
        "const isOn = unleash.isEnabled('@FLAG@');",
        "const variant = unleash.getVariant('@FLAG@').name;",
    ),
    Sdk(
        "React",
        "npm install @unleash/proxy-client-react",
        """import { FlagProvider, useFlag, useVariant } from '@unleash/proxy-client-react';

const config = { url: '@SERVER@/api/frontend', clientKey: 'FRONTEND-TOKEN', appName: 'my-app' };
// around the app: <FlagProvider config={config}>…</FlagProvider>""",
        "const isOn = useFlag('@FLAG@');",
        "const variant = useVariant('@FLAG@').name;",
    ),
    Sdk(
        "Node.js",
        "npm install unleash-client",
        """import { startUnleash } from 'unleash-client';

const unleash = await startUnleash({
  url: '@SERVER@/api/', appName: 'my-service', customHeaders: { Authorization: 'BACKEND-TOKEN' },
});""",
        "const isOn = unleash.isEnabled('@FLAG@', { userId: '7' });",
        "const variant = unleash.getVariant('@FLAG@', { userId: '7' }).name;",
    ),
    Sdk(
        "Python",
        "pip install UnleashClient",
        """from UnleashClient import UnleashClient

unleash = UnleashClient(
    url="@SERVER@/api", app_name="my-service", custom_headers={"Authorization": "BACKEND-TOKEN"}
)
unleash.initialize_client()""",
        'is_on = unleash.is_enabled("@FLAG@", {"userId": "7"})',
        'variant = unleash.get_variant("@FLAG@", {"userId": "7"})["name"]',
    ),
    Sdk(
        "Java",
        "io.getunleash:unleash-client-java",
        """import io.getunleash.*;
import io.getunleash.util.UnleashConfig;

Unleash unleash = new DefaultUnleash(UnleashConfig.builder()
    .unleashAPI("@SERVER@/api").apiKey("BACKEND-TOKEN").appName("my-service")
    .synchronousFetchOnInitialisation(true).build());
UnleashContext context = UnleashContext.builder().userId("7").build();""",
        'boolean isOn = unleash.isEnabled("@FLAG@", context);',
        'String variant = unleash.getVariant("@FLAG@", context).getName();',
    ),
    Sdk(
        "Go",
        "go get github.com/Unleash/unleash-go-sdk/v5",
        """import (
    "net/http"

    "github.com/Unleash/unleash-go-sdk/v5"
    "github.com/Unleash/unleash-go-sdk/v5/context"
)

err := unleash.Initialize(unleash.WithUrl("@SERVER@/api/"), unleash.WithAppName("my-service"),
    unleash.WithCustomHeaders(http.Header{"Authorization": {"BACKEND-TOKEN"}}))
unleash.WaitForReady()
user := context.Context{UserId: "7"}""",
        'isOn := unleash.IsEnabled("@FLAG@", unleash.WithContext(user))',
        'variant := unleash.GetVariant("@FLAG@", unleash.WithVariantContext(user)).Name',
    ),
    Sdk(
        ".NET",
        "dotnet add package Unleash.Client",
        """using Unleash;
using Unleash.ClientFactory;

var unleash = await new UnleashClientFactory().CreateClientAsync(new UnleashSettings {
    UnleashApi = new Uri("@SERVER@/api/"), AppName = "my-service",
    CustomHttpHeaders = new Dictionary<string, string> { { "Authorization", "BACKEND-TOKEN" } } },
    synchronousInitialization: true);
var user = new UnleashContext { UserId = "7" };""",
        'bool isOn = unleash.IsEnabled("@FLAG@", user);',
        'string variant = unleash.GetVariant("@FLAG@", user).Name;',
    ),
    Sdk(
        "Swift",
        "https://github.com/Unleash/unleash-proxy-client-swift",
        """import UnleashProxyClientSwift

let unleash = UnleashProxyClientSwift.UnleashClient(
    unleashUrl: "@SERVER@/api/frontend", clientKey: "FRONTEND-TOKEN", appName: "my-app", context: ["userId": "7"])
unleash.start()""",
        'let isOn = unleash.isEnabled(name: "@FLAG@")',
        'let variant = unleash.getVariant(name: "@FLAG@").name',
    ),
    Sdk(
        "Kotlin on Android",
        "io.getunleash:unleash-android",
        """import io.getunleash.android.DefaultUnleash
import io.getunleash.android.UnleashConfig

val unleash = DefaultUnleash(androidContext, UnleashConfig.newBuilder("my-app")
    .proxyUrl("@SERVER@/api/frontend").clientKey("FRONTEND-TOKEN").build())
unleash.start()""",
        'val isOn = unleash.isEnabled("@FLAG@")',
        'val variant = unleash.getVariant("@FLAG@").name',
    ),
)


def list_snippets(server: str, flag: str, *, has_variants: bool) -> list[Json]:
    """Return the code of each SDK for a flag at the address of a server."""
    return [
        {
            "title": each.title,
            "install": each.install,
            "code": "\n".join([each.setup, each.ask, *([each.ask_variant] if has_variants else [])])
            .replace("@SERVER@", server)
            .replace("@FLAG@", flag),
        }
        for each in SDKS
    ]
