"""What site.yaml says of alerts: what is refused, and that nothing secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.operate.alerts.look import find_trouble
from release_pipeline.operate.alerts.settings import EmailSettings, WebhookSettings, read_alerts
from release_pipeline.store.site import Site

SECRET = "kanarie-4711"  # noqa: S105  in addresses and in the environment


def site_of(home: Path, text: str, **environment: str) -> Site:
    """A site that says this."""
    (home / "policies").mkdir()
    (home / "site.yaml").write_text(text)
    return Site(home, environment)


def test_rules_are_read(tmp_path: Path) -> None:
    """Both channels, and a share; the same channel has one name, whatever it is told."""
    site = site_of(
        tmp_path,
        "alerts:\n"
        "  - {on: [failed, cap], share: 80%, webhook: '${HOOK}'}\n"
        "  - {on: [late], webhook: '${HOOK}'}\n"
        "  - {on: [blocked], email: {to: [a@b.org], from: c@d.org, host: mail, port: 587, starttls: true, user: u, "
        "password: '${WORD}'}}\n",
    )
    first, second, third = read_alerts(site)
    assert (first.share, second.share, first.name == second.name, first.name == third.name) == (80, None, True, False)
    assert first.channel == WebhookSettings("${HOOK}")
    said = {"to": ["a@b.org"], "from": "c@d.org", "host": "mail", "port": 587, "starttls": True, "user": "u"}
    assert third.channel == EmailSettings.model_validate({**said, "password": "${WORD}"})
    assert [first.wants("cap", 80), first.wants("cap", None), first.wants("late", None), second.wants("late", None)] == [
        *(True, False, False, True)
    ]


@pytest.mark.parametrize(
    ("rule", "place", "words"),
    [
        ("{webhook: https://a.org}", "alerts.0", "'on' is missing. Of these: failed, blocked"),
        ("{on: [blokked], webhook: https://a.org}", "alerts.0.on", "on is a list"),
        ("{on: [], webhook: https://a.org}", "alerts.0.on", "on is a list"),
        ("{on: [late]}", "alerts.0", "either 'webhook' or 'email'"),
        ("{on: [late], webhook: https://a.org, email: {}}", "alerts.0", "either 'webhook' or 'email'"),
        (f"{{on: [late], webhook:https://a.org/{SECRET}}}", "alerts.0", "a space is missing behind 'webhook:'."),
        ("{on: [late], webhok: https://a.org}", "alerts.0.webhok", "'webhok' is not known here. Did you mean 'webhook'?"),
        (f"{{on: [late], webhook: 'ftp://{SECRET}.org'}}", "alerts.0.webhook", "this is no address"),
        (f"{{on: [late], webhook: 'https://a.org/ {SECRET}'}}", "alerts.0.webhook", "this is no address"),
        (f"{{on: [late], webhook: 'https://u:{SECRET}@a.org'}}", "alerts.0.webhook", "a name or password stands in the address"),
        ("{on: [late], share: 80%, webhook: https://a.org}", "alerts.0.share", "goes with 'cap'"),
        ("{on: [cap], share: 100%, webhook: https://a.org}", "alerts.0.share", "from 1% to 99%"),
        ("{on: [late], email: a@b.org}", "alerts.0.email", "this is no mapping"),
        ("{on: [late], email: {to: a@b.org, from: c@d.org, host: h}}", "alerts.0.email.to", "to is a list"),
        ("{on: [late], email: {to: [a@b.org], from: c@d.org}}", "alerts.0.email", "'host' is missing. As in {to:"),
        ("{on: [late], email: {to: [a@b.org], from: c@d.org, host: h, port: 0}}", "alerts.0.email.port", "from 1 to 65535"),
        ("{on: [late], email: {to: [a@b.org], from: c@d.org, host: h, starttls: 1}}", "alerts.0.email.starttls", "true or false"),
        ("{on: [late], email: {to: [a@b.org], from: c@d.org, host: h, user: u}}", "alerts.0.email", "go together"),
        (
            f"{{on: [late], email: {{to: [a@b.org], from: c@d.org, host: localhost, user: u, password: {SECRET}}}}}",
            "alerts.0.email.password",
            "a password stands here",
        ),
        (
            "{on: [late], email: {to: [a@b.org], from: c@d.org, host: h, user: u, password: '${P}'}}",
            "alerts.0.email.password",
            "Add starttls: true",
        ),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(tmp_path: Path, rule: str, place: str, words: str) -> None:
    """The file, the line and the key; nothing of an address. `status` tells the same, and goes on."""
    site = site_of(tmp_path, f"alerts:\n  - {rule}\n")
    with pytest.raises(PolicyInvalid) as refused:
        read_alerts(site)
    told = refused.value.in_full
    assert "site.yaml:2:" in told
    assert f"{place}: " in told
    assert words in told
    assert SECRET not in told
    assert [*find_trouble(site)] == [told]


def test_nothing_secret_is_shown(tmp_path: Path) -> None:
    """Of an address that stands in the file its host, of one from the environment its name."""
    site = site_of(
        tmp_path,
        f"alerts:\n  - {{on: [late], webhook: 'https://a.org/{SECRET}'}}\n  - {{on: [late], webhook: '${{HOOK}}/x'}}\n",
        HOOK=f"https://b.org/{SECRET}",
    )
    assert [rule.channel.title for rule in read_alerts(site)] == ["webhook https://a.org", "webhook ${HOOK}"]
    assert all(SECRET not in rule.name for rule in read_alerts(site))


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        *(("https://a.org/x", False), ("http://a.org/x", True), ("http://localhost:8080/x", False)),
        *(("http://127.0.0.1/x", False), ("${HOOK}", True)),
    ],
)
def test_what_travels_readable_is_warned_about(tmp_path: Path, address: str, warned: bool) -> None:
    """By http to another machine, also where the environment says so; the path is not shown."""
    site = site_of(tmp_path, f"alerts:\n  - {{on: [late], webhook: '{address}'}}\n", HOOK=f"http://b.org/{SECRET}")
    found = [*find_trouble(site)]
    assert bool(found) == warned
    assert SECRET not in "".join(found)
    assert all("Use https" in words for words in found)
