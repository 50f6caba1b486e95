"""Announcements of a call are told apart from answers, in texts that shaped no word of the lists (CHK-15)."""

from dataclasses import replace

import pytest

from testkit.noncalls.texts import noncalls
from testkit.noncalls.tools import tool_set
from tests.unit.engine.test_refusal import HELD_OUT_OTHERS, HELD_OUT_REFUSALS, OTHERS, lines
from toolspeak.dialects import load
from toolspeak.engine.narration import LONGEST, announces_call, copied_call, written_call
from toolspeak.ir.tool import Tool

TOOLS = (
    Tool("get_weather", "Tell the weather of a city.", {"type": "object", "properties": {"city": {"type": "string"}}}),
    Tool("read_file", "Read a file of the project."),
    Tool("search_web", "Search the web for pages."),
)
WEATHER = (replace(TOOLS[0], parameters={**TOOLS[0].parameters, "required": ["city"]}),)
FENCED = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
ANNOUNCEMENTS = """
Let me check the weather for you.
I will now call get_weather
Sure! I'll look up the current weather in Oslo.
I'm going to read the file first.
Let me read the file notes.txt.
I will open the file src/main.py!
Okay, let me search the web for that. One moment, please.
Now I'll use the search_web tool.
**Let me fetch the weather in Bergen…**
Ich werde jetzt das Wetter in Oslo abrufen.
Lass mich kurz nachsehen.
Ich rufe jetzt get_weather auf.
Je vais vérifier la météo à Oslo.
Laissez-moi consulter le fichier.
Voy a consultar el tiempo en Oslo.
Déjame buscar esa información.
Vou verificar o tempo em Oslo.
Fammi controllare il meteo.
Ik ga het weer in Oslo opzoeken.
Zaraz sprawdzę pogodę w Oslo.
Сейчас я проверю погоду в Осло.
让我查一下奥斯陆的天气。
これから天気を調べます。
"""
HELD_OUT = """
I'm about to look at the weather data.
Let me pull up the weather for Paris.
I'll go ahead and search the web.
Checking the weather now…
Sure, reading the file now.
I'll run a quick search for that.
Let me take a look at that file.
Ich schaue kurz nach dem Wetter.
Einen Moment, ich prüfe das.
Ich werde die Datei jetzt lesen.
Je vais regarder la météo.
Je consulte la météo.
Un instant, je vérifie.
Voy a revisar el archivo ahora.
Permíteme comprobar el clima.
Lasciami controllare il meteo.
Vado a cercare le informazioni.
Deixe-me consultar a previsão.
Vou procurar isso para você.
Laat me even kijken.
Ik zal het weer voor je opzoeken.
Pozwól, że sprawdzę pogodę.
Sprawdzę to teraz.
Сейчас посмотрю погоду.
Позвольте мне проверить файл.
我来查询一下天气。
我将调用 get_weather 工具。
今から天気を確認します。
天気を調べてみます。
Hemen kontrol ediyorum.
Şimdi hava durumuna bakıyorum.
"""
"""Announcements that no word was chosen for. The detector is conservative: some of them pass as answers."""
ANSWERS = """
It is 3 °C in Oslo, with light snow.
I'll let you know if the weather changes.
Let me know if you need the weather of another city.
I will remember that you prefer metric units.
Let me explain how a forecast is made.
I will check the weather again if you tell me the date.
Let's talk about the weather in general: it is mostly chaos.
Should I check the weather for you?
Which city do you mean?
You can call get_weather with a city.
I checked the weather: it is cold.
The file is notes.txt.
I'll be happy to help with that.
I'll be happy to read the file to you.
Let me be clear: the file is empty.
Das Wetter in Oslo ist kalt, 3 Grad.
Ich werde nachsehen, wenn Sie mir die Stadt nennen.
Ich werde mir das merken.
Soll ich das Wetter abrufen?
Il fait froid à Oslo.
Je vais vous expliquer la différence.
Voy a explicarlo paso a paso.
Vou explicar a diferença entre os dois.
Ik zal het uitleggen.
Zaraz to wyjaśnię.
Сейчас в Осло три градуса.
Сейчас я объясню разницу.
我会记住的。
让我解释一下。
では、説明します。
Şimdi hava soğuk.
Ora a Oslo fa freddo.
"""


@pytest.mark.parametrize("text", lines(ANNOUNCEMENTS))
def test_an_announcement_is_recognised_chk15(text: str) -> None:
    assert announces_call(text, TOOLS)


@pytest.mark.parametrize("text", lines(ANSWERS))
def test_an_answer_is_no_announcement_chk15(text: str) -> None:
    assert not announces_call(text, TOOLS)


def test_a_tools_own_verb_announces_it_chk15() -> None:
    lamp = (Tool("turn_on_lamp", "Switch the lamp of a room."), Tool("add", "Add two numbers."))
    assert announces_call("Let me turn on the lamp in the kitchen.", lamp)
    assert not announces_call("Let me turn to the second question.", lamp[1:])
    assert not announces_call("I'll be glad to turn on the lamp if you want.", lamp)
    assert not announces_call("I have turned on the lamp.", lamp)


def test_most_announcements_that_shaped_no_word_are_recognised_chk15() -> None:
    found = sum(announces_call(text, TOOLS) for text in lines(HELD_OUT))
    print(f"{found} of {len(lines(HELD_OUT))}")
    assert found >= 0.7 * len(lines(HELD_OUT))


def test_answers_that_shaped_no_word_are_no_announcements_chk15() -> None:
    """Over 500 answers in ten languages, made for the detector of refusals, and texts that only look like calls.

    Three of the answers are announcements: "I will read your files now."
    """
    answers = [line for text in (*OTHERS.values(), HELD_OUT_OTHERS, HELD_OUT_REFUSALS) for line in lines(text)]
    wrong = [text for text in answers if announces_call(text, TOOLS)]
    looks = [text.text for text in noncalls(2_000) if announces_call(text.text, TOOLS)]
    print(f"{len(wrong)} of {len(answers)} answers, {len(looks)} of 2,000 texts")
    assert len(wrong) <= 0.01 * len(answers), wrong
    assert len(looks) <= 2, looks


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_long_answer_is_no_announcement_chk15_p7(more: int) -> None:
    text = "Let me check the weather".ljust(LONGEST + more, "x")
    assert announces_call(text, TOOLS) == (more <= 0)


def test_without_tools_or_for_other_tools_nothing_is_announced_chk15() -> None:
    assert not announces_call("Let me check the weather for you.", ())
    assert not announces_call("Let me check the weather for you.", (Tool("add", "Add two numbers."),))


@pytest.mark.parametrize(
    "text",
    [
        "<call:get_weather{city:Oslo}/>",
        "<|call|>get_weather<|args|>city=Oslo<|end|>",
        'To know it, I\'ll ask first.\n\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        f"I will use the `get_weather` function. The `city` will be `Oslo`.\n\n{FENCED}",
        f"I'll call get_weather. Its argument is the city.\n{FENCED}",
    ],
)
def test_markup_with_a_tool_and_its_required_keys_is_a_written_call_chk15(text: str) -> None:
    assert written_call(text, WEATHER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Call get_weather(city='Oslo').",
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        'This is the form:\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        f"Call get_weather. Its city is Oslo.\n{FENCED}",
        f"I will explain. The form is:\n{FENCED}",
        "I'll show both.\n```\nget_weather city: Oslo\n```\n```\nget_weather city: Oslo\n```",
        "<call:get_weather{city:Oslo}/> is the form.",
        "<call:get_weather{unit:celsius}/>",
        "<call:get_weather_of{city:Oslo}/>",
        '{"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}',
        "<log>" + "-" * 48 + "get_weather{city:Oslo}</log>",
        "<call:get_weather{city:" + "o" * 65536 + "}/>",
    ],
)
def test_other_text_is_no_written_call_chk15(text: str) -> None:
    assert not written_call(text, WEATHER)


def test_few_texts_that_only_look_like_calls_are_written_calls_chk15() -> None:
    tools = tool_set()
    texts = [load("any").read(text.text, tools).text for text in noncalls(3_000)]
    asked = [text for text in texts if written_call(text, map(tools.tool, tools.names))]
    print(f"{len(asked)} of {len(texts)}")
    assert len(asked) <= 0.01 * len(texts), asked


DEFINITION = '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}'
MISFIT = '{"name": "get_weather", "arguments": {"city": ["Oslo", "Bergen"]}}'


@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "<tools>\n{}\n</tools>", "  {},\n{}", "{}\n{}"])
@pytest.mark.parametrize("copied", [DEFINITION, MISFIT, MISFIT.replace("arguments", "parameters")])
def test_a_definition_or_a_misfit_in_place_of_a_call_names_its_tool_chk15(frame: str, copied: str) -> None:
    found = copied_call(frame.replace("{}", copied), WEATHER, "How is Oslo?")
    assert found is not None
    assert (found.text, found.tool) == (copied, "get_weather")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", "How is Oslo?"),
        ("{" * 100, "How is Oslo?"),
        ("[1, 2]", "How is Oslo?"),
        ('{"name": "get_weather"}', "How is Oslo?"),
        ('{"name": "get_weather", "arguments": {"city": "Oslo"}}', "How is Oslo?"),
        (DEFINITION.replace("get_weather", "get_tides"), "How is Oslo?"),
        (f"The tool is:\n{DEFINITION}", "How is Oslo?"),
        (DEFINITION[:-9], "How is Oslo?"),
        (DEFINITION, "Show me the JSON schema of get_weather."),
        (DEFINITION, "Was ist die Definition von get_weather?"),
        (DEFINITION, "Quelle est la définition ?"),
    ],
)
def test_other_json_means_no_call_chk15(text: str, asked: str) -> None:
    assert copied_call(text, WEATHER, asked) is None
