"""The pages about JavaScript and about apps: `just clients` and `just clients-all` execute what they say."""

import json
import re

from tests.clients import apps
from tests.clients.install import ROOT
from tests.clients.pages import APPS, JAVASCRIPT, MODEL, URL, programs, sections
from tests.clients.rows import PROGRAMS, rows
from tests.docs.test_snippets import blocks

SHARED = "tool.mjs"
"""The file that every program of the page imports."""


def test_every_program_of_the_page_about_javascript_is_run() -> None:
    written = programs()
    assert set(written) == {SHARED, *PROGRAMS}
    assert list(written.values()) == blocks(JAVASCRIPT, "js")
    assert {client for client, _, _ in PROGRAMS.values()} <= {row.client for row in rows() if row.fast}
    for name in PROGRAMS:
        assert f"'./{SHARED}'" in written[name]
        assert f"'{URL}" in written[name]
        assert f"'{MODEL}'" in written[name]


def test_the_packages_that_the_page_installs_are_those_that_its_programs_import_and_that_are_tested() -> None:
    commands = [command for each in sections(JAVASCRIPT) for command in each.commands]
    installed = {name for command in commands if command[:2] == ["npm", "install"] for name in command[2:]}
    imported = set(re.findall(r"from '([^'.][^']*)'", "".join(programs().values())))
    pinned = json.loads((ROOT / "tests" / "judges" / "js" / "package.json").read_text(encoding="utf-8"))
    assert installed == {name for name in imported if not name.startswith("node:")}
    assert installed <= set(pinned["dependencies"])


def test_every_app_of_the_page_is_run_or_said_not_to_be() -> None:
    titles = {each.title for each in sections(APPS)} - {"What was tested"}
    assert titles == {*apps.CLIENTS, *apps.UNTRIED}
    assert set(apps.CLIENTS.values()) <= {row.client for row in rows()}
    text = APPS.read_text(encoding="utf-8")
    assert [app for app in apps.UNTRIED if f"{app} was not run" not in text] == []


def test_every_file_of_the_page_about_apps_has_the_address_and_the_model() -> None:
    found = [text for each in sections(APPS) for text in each.files.values()]
    assert sorted(found) == sorted([*blocks(APPS, "json"), *blocks(APPS, "yaml")])
    assert len(found) == 4
    for text in found:
        assert URL in text
        assert MODEL in text
