"""`toolspeak doctor`: a form that is better beyond chance is found, kept, and used; nothing else is (CAP-5, CAP-9)."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from testkit.scripted_model import Answer, Refuses, Scripted, called, text
from testkit.terminal import CTRL_C, terminal
from tests.unit.cli.test_serve import asked, served
from tests.unit.doctor.pupil import Pupil
from toolspeak import Client, Tool
from toolspeak.agent.sandbox.selection import SandboxSearch, SandboxTrial
from toolspeak.cli import main
from toolspeak.cli.doctor.diagnosis import table
from toolspeak.cli.terminal import Paint
from toolspeak.doctor.call_forms import FORMS, TODAY
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.suite import FERRIES, SUITE
from toolspeak.doctor.task import TaskResult
from toolspeak.doctor.tournament import Standing, Tally

NOBODY = "http://127.0.0.1:9/v1"
NOW = Tool("now", "The time.", {"type": "object", "properties": {}})


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(args)
    return ended.value.code


def teaches(monkeypatch: pytest.MonkeyPatch, upstream: Scripted, pupil: Pupil, *, refuses: bool = False) -> None:
    """Let a pupil answer in the place of the script."""

    def answer(body: dict[str, Any]) -> Answer:
        upstream.bodies.append(body)
        if refuses and body.get("tools"):
            return Refuses(400, "this model does not support tools")
        said = pupil.calls([message.get("content") or "" for message in body["messages"]], native="tools" in body)
        if isinstance(said, str):
            return text(said)
        if pupil.knows == "native":
            return called(*((name, json.dumps(arguments)) for name, arguments in said))
        return text(pupil.text(said))

    monkeypatch.setattr(upstream, "next", answer)


def profiles(tmp_path: Path) -> list[dict[str, Any]]:
    folder = tmp_path / "state" / "toolspeak" / "profiles"
    return [json.loads(file.read_text()) for file in folder.glob("*.json")] if folder.exists() else []


def unfinished(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state" / "toolspeak" / "doctor").glob("*.json"))


# ---------------------------------------------------------------- found, kept, used


def test_the_one_dialect_that_a_model_masters_is_found_and_kept_cap5(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"toolspeak now speaks hermes to it: (\d+) of \1 tasks right, with what you had \d of", shown)
    assert re.search(r"1\d came out right only with hermes and 0 only with what you had: by chance", shown)
    assert "serve, chat and Client use it from now on" in shown
    (kept,) = profiles(tmp_path)
    assert (kept["model"], kept["endpoint"], kept["form"]) == ("tiny", upstream.url, "hermes")
    assert kept["settings"]["dialect"] == "hermes"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["date"])
    assert unfinished(tmp_path) == [], "nothing is left to continue"


def test_the_profile_is_used_by_the_client_the_models_and_the_chat_cap5(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    with Client(upstream.url) as client:
        assert client.plan("Hi", [NOW]).line.startswith("native")
    assert status_of("doctor", "--upstream", upstream.url, "--quick") == 0
    with Client(upstream.url) as client:
        plan = client.plan("Hi", [NOW], mode="auto")
        assert (plan.way, plan.dialect) == ("force", "hermes")
        assert client.plan("Hi", [NOW], model="large").way == "native", "of another model nothing is known"
        assert client.plan("Hi", [NOW], mode="off").way == "off"
        client.override("tiny", "native")
        assert client.plan("Hi", [NOW]).why == "the upstream has tools"
    capsys.readouterr()
    assert status_of("models", "--upstream", upstream.url) == 0
    assert "* tiny unknown emulated (hermes), measured: hermes" in " ".join(capsys.readouterr().out.split())
    assert status_of("models", "--upstream", upstream.url, "--no-profiles") == 0
    assert "* tiny unknown native, else emulated (fenced) " in " ".join(capsys.readouterr().out.split())


def test_the_profile_is_used_by_the_gateway_cap5(upstream: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url, "--quick", "--forms", "native,hermes") == 0
    tool = {"type": "function", "function": {"name": FERRIES.name, "parameters": FERRIES.parameters}}
    question = {"role": "user", "content": "When do ferries leave from Moss?"}
    with served("--upstream", upstream.url, "--port", "0") as (_, url):
        answer = asked(f"{url}/v1/chat/completions", {"model": "tiny", "messages": [question], "tools": [tool]})
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("ferry_times", {"harbour": "Moss"})
    assert "tools" not in upstream.bodies[-1], "they were taught in the prompt"


def test_a_model_is_helped_whose_server_refuses_tools(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("fenced"), refuses=True)
    assert status_of("doctor", "tiny", "--upstream", upstream.url, "--quick") == 0
    assert "nothing was changed" in capsys.readouterr().out, "what it has today is emulated in that form already"
    teaches(monkeypatch, upstream, Pupil("hermes"), refuses=True)
    assert status_of("doctor", "tiny", "--upstream", upstream.url, "--quick") == 0
    assert "tiny: toolspeak now speaks hermes to it" in capsys.readouterr().out


@pytest.mark.parametrize("knows", ["native", "leaks"])
def test_my_calls_came_before_the_doctor_and_still_come_after_it_cap9(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], knows: str
) -> None:
    teaches(monkeypatch, upstream, Pupil(knows))
    with Client(upstream.url) as client:
        before = client.plan("Hi", [NOW])
    assert status_of("doctor", "--upstream", upstream.url) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "nothing better beyond chance was found; nothing was changed" in shown
    assert profiles(tmp_path) == []
    with Client(upstream.url) as client:
        assert client.plan("Hi", [NOW]) == before


def test_a_profile_that_does_harm_is_found_and_deleted_cap9(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url, "--quick", "--forms", "hermes") == 0
    teaches(monkeypatch, upstream, Pupil("native"))  # another model under the same name, without a fingerprint
    assert status_of("doctor", "--upstream", upstream.url, "--quick") == 0
    assert "it does better without its saved profile" in " ".join(capsys.readouterr().out.split())
    assert profiles(tmp_path) == []


# ---------------------------------------------------------------- interrupted, then resumed


def test_when_time_is_up_it_says_what_is_not_decided_and_goes_on_there_cap10(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url, "--forms", "hermes", "--minutes", "0.000001") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "tiny: not decided yet." in shown
    assert "run toolspeak doctor again to continue" in shown
    assert "Nothing was changed." in shown
    assert profiles(tmp_path) == []
    assert status_of("doctor", "--upstream", upstream.url, "--forms", "hermes") == 0
    assert len(profiles(tmp_path)) == 1


def test_ctrl_c_keeps_what_is_known_and_the_next_doctor_goes_on_there_cap10(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    script, asked = upstream.next, list[int]()

    def hangs(body: dict[str, Any]) -> Answer:
        asked.append(1)
        return text("I wait", hangs=True) if len(asked) == 10 else script(body)

    monkeypatch.setattr(upstream, "next", hangs)
    with terminal("doctor", "--upstream", upstream.url, "--forms", "hermes") as shown:
        upstream.wait_for(9)
        while len(asked) < 10:
            time.sleep(0.01)
        shown.press(CTRL_C)
        assert shown.status() == 130
    said = " ".join(shown.plain.split())
    assert "The best other form so far is hermes: 3 of 3 tasks right." in said
    assert "run toolspeak doctor again to continue" in said
    assert "Traceback" not in said
    assert profiles(tmp_path) == []
    assert len(unfinished(tmp_path)) == 1
    before = len(asked)
    with terminal("doctor", "--upstream", upstream.url, "--forms", "hermes") as shown:
        assert shown.status() == 0
    assert "6 answers of an unfinished trial (--fresh asks again)" in shown.plain
    assert len(asked) - before == 2 + 1 + 16, "two tokens, hello, and the tasks that were left until it was clear"
    assert len(profiles(tmp_path)) == 1


def test_fresh_forgets_what_is_known_cap10(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url, "--forms", "hermes", "--minutes", "0.0000001") == 1
    folder = tmp_path / "state" / "toolspeak" / "doctor"
    folder.mkdir(parents=True, exist_ok=True)
    assert status_of("doctor", "--upstream", upstream.url, "--forms", "hermes", "--fresh") == 0
    assert "unfinished trial" not in capsys.readouterr().err


# ---------------------------------------------------------------- not helped, not reached


def test_a_model_that_can_nothing_ends_with_status_1_cap5(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("nothing"))
    assert status_of("doctor", "--upstream", upstream.url, "--quick") == 1
    captured = capsys.readouterr()
    assert "it makes no right call in any form" in captured.out
    assert "Take a larger model" in captured.out
    assert profiles(tmp_path) == []


def test_who_does_not_answer_is_said_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("doctor", "--upstream", NOBODY) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "is the server running" in captured.err.splitlines()[-1]


def test_a_model_that_is_not_there_is_said_with_status_2(
    upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream.says(*[Refuses(404, "model 'none' not found")] * 4)
    assert status_of("doctor", "none", "--upstream", upstream.url) == 2
    assert "model 'none' not found" in capsys.readouterr().err


def test_a_form_that_nobody_knows_is_said_with_those_that_are_known(
    upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("doctor", "--upstream", upstream.url, "--forms", "native,hermse") == 2
    assert "--forms: 'hermse' is not one of native, native+rescue, hermes" in capsys.readouterr().err
    assert upstream.bodies == []


# ---------------------------------------------------------------- options


def test_json_is_all_that_is_on_standard_output_cap5(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url, "--json", "--quick", "--forms", "native,hermes") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err == ""
    assert (found["model"], found["winner"], found["helped"], found["endpoint"]) == (
        "tiny",
        "hermes",
        True,
        upstream.url,
    )
    assert found["settings"]["mode"] == "force"
    assert Path(found["saved"]).is_file()
    hermes, today, native = found["forms"]
    assert (hermes["name"], hermes["right"], today["name"], native["name"]) == (
        "hermes",
        hermes["asked"],
        "today",
        "native",
    )
    assert (found["decided"], found["worse"], found["chance"] <= 0.025) == (True, 0, True)
    assert native["tasks"][0] == {"name": "timer", "kind": "plain", "right": False, "problem": "calls nothing"}


def test_no_save_keeps_nothing(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    assert status_of("doctor", "--upstream", upstream.url, "--quick", "--no-save", "--forms", "hermes") == 0
    assert "Not saved: --no-save." in capsys.readouterr().out
    assert profiles(tmp_path) == []


def test_who_switches_profiles_off_is_told_that_none_is_kept(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    file = tmp_path / "t.toml"
    file.write_text(f'profiles = false\n[upstreams.box]\nurl = "{upstream.url}"\n')
    assert status_of("doctor", "--config", str(file), "--quick", "--forms", "hermes") == 0
    assert "Not saved: your configuration turns profiles off" in capsys.readouterr().out


def test_what_the_configuration_says_otherwise_is_told(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    file = tmp_path / "t.toml"
    file.write_text(f'[tools]\nmode = "auto"\ndialect = "react"\n[upstreams.box]\nurl = "{upstream.url}"\n')
    assert status_of("doctor", "--config", str(file), "--quick", "--forms", "hermes") == 0
    assert "Your configuration overrides it: dialect = react." in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_no_crash(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    (tmp_path / "state").write_text("a file where a folder should be")
    assert status_of("doctor", "--upstream", upstream.url, "--quick", "--forms", "hermes") == 0
    said = capsys.readouterr().out
    assert f"Not saved: cannot write {tmp_path / 'state'}" in said
    assert ": Not a directory." in said


def test_plain_lines_say_what_is_asked_and_what_came(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes", fails=frozenset(("euros",))))
    assert status_of("doctor", "--upstream", upstream.url, "--quick", "--forms", "hermes") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert lines[0].startswith("tiny on 127.0.0.1:")
    assert "tools nothing is known" in lines
    assert "asks 12 others to compare the best form with today's" in lines
    assert "today native checked: nothing is known: native first, emulated if that is refused" in lines
    assert "probe tools make the prompt 40 tokens longer: they reach the model (tokens)" in lines
    assert any(re.fullmatch(r"hermes lend \d+\.\d s right", line) for line in lines)
    assert any(re.fullmatch(r"hermes euros \d+\.\d s wrong: calls nothing", line) for line in lines)


def test_the_server_is_looked_at_and_tried_with_the_constraints_that_it_has_cap5(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    upstream.owner = "llamacpp"
    assert status_of("doctor", "--upstream", upstream.url, "--quick", "--forms", "hermes+grammar") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert {"server llamacpp", "form constraints as llamacpp"} < set(lines)
    asked = [body for body in upstream.bodies[3:] if "You judge" not in body["messages"][0]["content"]]
    assert sum("grammar" in body for body in asked) >= 7, "today is asked without"
    (kept,) = profiles(tmp_path)
    assert (kept["constraint"], len(kept["fingerprint"])) == ("llamacpp", 16)
    with Client(upstream.url) as client:
        plan = client.plan("Hi", [NOW])
    found = (plan.settings.constraint, plan.facts.quirks.constraint)
    assert found == ("text", "llamacpp"), "though this client has probed nothing"


# ---------------------------------------------------------------- how it looks


def test_in_a_terminal_one_line_is_rewritten_and_colours_show_the_winner(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    teaches(monkeypatch, upstream, Pupil("hermes"))
    with terminal("doctor", "--upstream", upstream.url, "--quick", "--forms", "native,hermes") as shown:
        assert shown.status() == 0
        lines = shown.plain.split("\n")
    assert re.search(r"\r  hermes +(\d+) of \1 · about \d+ s left · Lend the book Heidi", shown.plain)
    progress = [piece for line in lines for piece in line.split("\r") if piece.startswith("  ")]
    assert max(map(len, progress)) < 80
    assert "\x1b[32m\x1b[1mhermes" in shown.shown


def test_ctrl_c_before_the_first_answer_keeps_nothing(upstream: Scripted, tmp_path: Path) -> None:
    upstream.says(text("One"), text("token"), text("Hello!"), text("I wait", hangs=True))
    with terminal("doctor", "--upstream", upstream.url) as shown:
        upstream.wait_for(4)
        shown.press(CTRL_C)
        assert shown.status() == 130
    assert profiles(tmp_path) == []
    assert "Traceback" not in shown.plain


def test_the_whole_table_fits_in_80_columns() -> None:
    today, *tallies = (Tally(form) for form in (TODAY, *FORMS))
    for tally in (today, *tallies):
        for task in SUITE:
            tally.add(task, TaskResult(right=True, requests=2, tokens=1234))
    lines = [*table(DoctorReport("m", "", Standing(today, tuple(tallies))), Paint())]
    assert max(map(len, lines)) <= 80
    assert len(lines) == len(FORMS) + 2


# ---------------------------------------------------------------- the sandbox


def test_it_says_which_sandbox_works_and_asks_no_model_run5(
    upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("doctor", "--sandbox") == 0
    assert "bwrap     works; isolates the shell of runs\n" in capsys.readouterr().out
    assert status_of("doctor", "--sandbox", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sandbox"] == "bwrap"
    assert upstream.bodies == []


def test_where_no_sandbox_works_it_says_what_to_install_run5(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def none() -> SandboxSearch:
        return SandboxSearch(None, (SandboxTrial("bwrap", "it is not \x1b[2J installed"),))

    monkeypatch.setattr("toolspeak.agent.sandbox.selection.find_sandbox", none)
    assert status_of("doctor", "--sandbox") == 1
    said = capsys.readouterr().out
    assert said.startswith("bwrap     not available: it is not \\x1b[2J installed\n")
    assert "apt install bubblewrap" in said
