"""Guardrails in ten languages: they know the language, keep right calls, and act only where they can tell."""

from dataclasses import dataclass

import pytest

from tests.unit.engine.guardrails.talk import conversation
from tests.unit.engine.scene import system, user
from toolspeak.engine.guardrails.guardrail import DropCall, GuardedConversation
from toolspeak.engine.guardrails.language import ENGLISH, LONGEST, OTHER, foreign_languages, language_of
from toolspeak.engine.guardrails.missing_calls import fitting_calls, left_over, question
from toolspeak.engine.guardrails.tool_fit import says_no
from toolspeak.engine.guardrails.unrelated_calls import DROP_UNRELATED_CALLS
from toolspeak.engine.guardrails.values import has_made_up_arguments, is_made_up
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump


@dataclass(frozen=True)
class Case:
    """The sentences of one language."""

    weather: str
    """Asks for the weather in Vienna, Prague or Rome on two cities and for 3 days, in digits."""
    first: str
    second: str
    """The two cities, in the nominative."""
    described: str
    """A tool for the weather, in the language."""
    talk: str
    """Small talk that has nothing to do with it."""
    stranger: str
    """A value in the language that no sentence has."""
    words: str
    """Asks for the weather for some days, and says the number in words."""


CASES = {
    "de": Case(
        "Wie wird das Wetter in Wien und in Köln für die nächsten 3 Tage?", "Wien", "Köln",
        "Liefert die Wettervorhersage für eine Stadt.", "Was ist dein liebster Witz?", "Zürich",
        "Ich brauche das Wetter in Wien für die nächsten fünf Tage.",
    ),
    "fr": Case(
        "Quel temps fera-t-il à Vienne et à Orléans pendant les 3 prochains jours ?", "Vienne", "Orléans",
        "Donne le temps qu'il fera dans une ville.", "Raconte-moi quelque chose de drôle, je te prie.", "Besançon",
        "Je voudrais connaître le temps à Vienne pour les cinq prochains jours.",
    ),
    "es": Case(
        "¿Qué tiempo hará en Viena y en Córdoba los próximos 3 días?", "Viena", "Córdoba",
        "Da el tiempo que hará en una ciudad.", "Cuéntame algo de tu vida, por favor.", "Cádiz",
        "Quiero saber el tiempo de Viena para los próximos cinco días.",
    ),
    "pt": Case(
        "Como vai estar o tempo em Viena e em Brasília nos próximos 3 dias?", "Viena", "Brasília",
        "Dá o tempo que vai fazer em uma cidade.", "Você pode me contar uma história engraçada?", "Goiânia",
        "Quero saber o tempo em Viena para os próximos cinco dias.",
    ),
    "it": Case(
        "Che tempo farà a Vienna e a Forlì nei prossimi 3 giorni?", "Vienna", "Forlì",
        "Dice che tempo farà in una città.", "Mi racconti qualcosa di divertente, per favore?", "Cefalù",
        "Vorrei sapere che tempo farà a Vienna per i prossimi cinque giorni.",
    ),
    "ru": Case(
        "Какая погода будет в Вене и в Риме в следующие 3 дня?", "Вена", "Рим",
        "Показывает прогноз погоды для города.", "Расскажи мне что-нибудь смешное.", "Новосибирск",
        "Мне нужна погода в Вене на следующие пять дней.",
    ),
    "zh": Case(
        "未来3天维也纳和罗马的天气怎么样？", "维也纳", "罗马",
        "查询城市的天气。", "你最喜欢什么笑话？", "哈尔滨",
        "我想知道维也纳未来五天的天气。",
    ),
    "ja": Case(
        "これから3日間のウィーンとローマの天気はどうですか？", "ウィーン", "ローマ",
        "都市の天気を調べます。", "何か面白い話をしてください。", "札幌",
        "ウィーンの五日間の天気を知りたいです。",
    ),
    "ko": Case(
        "앞으로 3일 동안 빈과 로마의 날씨는 어떤가요?", "빈", "로마",
        "도시의 날씨를 알려 줍니다.", "재미있는 이야기 해 주세요.", "제주도",
        "빈의 다섯 날 동안 날씨를 알고 싶어요.",
    ),
    "ar": Case(
        "كيف سيكون الطقس في فيينا وروما خلال 3 أيام؟", "فيينا", "روما",
        "يعطي توقعات الطقس لمدينة.", "هل يمكنك أن تحكي لي نكتة؟", "طنجة",
        "أريد معرفة الطقس في فيينا لخمسة أيام.",
    ),
}  # fmt: skip
LANGUAGES = pytest.mark.parametrize("code", CASES)
ENGLISH_WORDS = "Look up the forecast for a town."


def tool(description: str = ENGLISH_WORDS) -> Tool:
    properties: JsonObject = {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "place": {"type": "string"},
        "unit": {"enum": ["metric", "imperial"]},
    }
    return Tool("get_forecast", description, {"type": "object", "properties": properties, "required": ["city"]})


def call(**arguments: Json) -> Call:
    return Call("c", "get_forecast", dump(arguments))


def talk(sentence: str, description: str = ENGLISH_WORDS) -> GuardedConversation:
    return conversation(user(sentence), tools=[tool(description)])


def judged(made: Call, said: GuardedConversation) -> object:
    return DROP_UNRELATED_CALLS.judge(made, said)


def made_up(said: GuardedConversation, **arguments: Json) -> list[str]:
    """Return the arguments whose values the conversation does not mention."""
    return [key for key, value in arguments.items() if is_made_up("get_forecast", key, value, said)]


# ---------------------------------------------------------------- which language


def test_ten_languages_are_read_besides_english() -> None:
    assert [language.code for language in foreign_languages() if language.is_read] == list(CASES)


@LANGUAGES
def test_a_language_is_told_by_any_of_its_sentences(code: str) -> None:
    case = CASES[code]
    for text in (case.weather, case.talk, case.words, case.described):
        assert language_of(text).code == code, text


@pytest.mark.parametrize(
    "text",
    [
        "What is the weather in Vienna and in Rome?",
        "Play 'La donna e mobile' by Giuseppe Verdi on the speaker",
        "Find a café near the Champs-Élysées in Paris",
        'Translate "Wie wird das Wetter in der Stadt" to English',
        "Write to max@über.example that the die is cast",
        "Translate 你好吗 to English",
    ],
)
def test_english_stays_english_whatever_it_names_or_quotes(text: str) -> None:
    assert language_of(text) is ENGLISH


@pytest.mark.parametrize(
    "text",
    [
        "Wat is het weer in Amsterdam en hoe is het in Utrecht?",
        "Hur är vädret i Stockholm och vad är det i Malmö?",
        "Jaka jest pogoda w Krakowie i co to jest?",
        "Bugün Ankara'da hava nasıl ve kaç derece?",
        "Яка погода у Києві і скільки зараз градусів?",
        "هوا در تهران چگونه است؟ می‌خواهم بدانم چند درجه است",
        "Τι καιρό κάνει στην Αθήνα;",
        "आज दिल्ली में मौसम कैसा है?",
        "Wetter Oslo",
        "12 + 5",
        "",
    ],
)
def test_a_text_in_another_language_or_in_none_is_not_read(text: str) -> None:
    assert language_of(text) is OTHER
    said = talk(text)
    assert not said.is_readable
    made = call(city="Nowhere", days=99, place="x")
    assert judged(made, said) is None
    assert not has_made_up_arguments(made, said)


@LANGUAGES
def test_the_user_s_words_decide_and_not_the_system_prompt(code: str) -> None:
    prompt = system("You are a helpful assistant. Answer the questions of the user with the tools that you have.")
    said = conversation(prompt, user(CASES[code].weather), tools=[tool()])
    assert said.language.code == code
    assert not said.is_comparable


def test_a_long_conversation_is_not_compared() -> None:
    assert not talk(CASES["de"].weather * (LONGEST // 50)).is_readable


# ---------------------------------------------------------------- right calls are kept


@LANGUAGES
@pytest.mark.parametrize("described", ["english", "own"])
def test_a_right_call_is_kept_chk10_chk14(code: str, described: str) -> None:
    """The city as in the request or as in English; the number as digits or in words; the unit from a list."""
    case = CASES[code]
    description = case.described if described == "own" else ENGLISH_WORDS
    for city in (case.first, "Vienna"):
        for sentence, days in ((case.weather, 3), (case.words, 5)):
            made, said = call(city=city, days=days, unit="metric"), talk(sentence, description)
            assert judged(made, said) is None
            assert made_up(said, city=city, days=days, unit="metric") == []
            assert not has_made_up_arguments(made, said)


@LANGUAGES
def test_a_translation_is_not_taken_for_made_up_chk14(code: str) -> None:
    assert made_up(talk(CASES[code].weather), city="Vienna", place="Austria") == []


@LANGUAGES
def test_a_call_is_kept_if_its_tool_is_described_in_another_language_chk10(code: str) -> None:
    made = call(city=CASES[code].stranger)
    assert judged(made, talk(CASES[code].talk)) is None


@LANGUAGES
def test_a_call_without_arguments_is_kept_chk10(code: str) -> None:
    made = call()
    assert judged(made, talk(CASES[code].talk, CASES[code].described)) is None


# ---------------------------------------------------------------- what can be told


@LANGUAGES
def test_a_number_that_the_user_did_not_say_is_made_up_chk14(code: str) -> None:
    assert made_up(talk(CASES[code].weather), city=CASES[code].first, days=14) == ["days"]


@LANGUAGES
def test_a_value_in_the_user_s_letters_that_has_no_trace_is_made_up_chk14(code: str) -> None:
    case = CASES[code]
    assert made_up(talk(case.weather), city=case.first, place=case.stranger) == ["place"]
    assert has_made_up_arguments(call(city=case.stranger), talk(case.weather))


@LANGUAGES
def test_a_call_on_small_talk_is_dropped_if_nothing_of_it_was_said_chk10(code: str) -> None:
    case = CASES[code]
    for city in (case.stranger, ""):
        assert isinstance(judged(call(city=city), talk(case.talk, case.described)), DropCall)


@pytest.mark.parametrize(
    ("sentence", "days"),
    [("كم درجة الحرارة في فيينا خلال ١٢ يومًا؟", 12), ("Wie wird das Wetter in 1.500 Metern Höhe?", 1500)],
)
def test_digits_of_other_scripts_and_separators_are_numbers_chk14(sentence: str, days: int) -> None:
    assert made_up(talk(sentence), days=days) == []


def test_arabic_says_two_by_the_end_of_a_word_chk14() -> None:
    assert made_up(talk("كيف سيكون الطقس في فيينا خلال يومين؟"), city="فيينا", days=2) == []


# ---------------------------------------------------------------- missing calls


@LANGUAGES
def test_the_second_city_is_asked_for_chk12(code: str) -> None:
    case = CASES[code]
    first = call(city=case.first, days=3)
    left = left_over(case.weather, [first], [tool()])
    assert len(left) == 1
    second, stranger = call(city=case.second, days=3), call(city=case.stranger)
    assert fitting_calls(case.weather, [first], [tool()], [stranger, second]) == [second]
    assert left_over(case.weather, [first, second], [tool()]) == ()
    assert left[0] in question(case.weather, left)


@LANGUAGES
def test_a_request_for_one_thing_is_not_asked_about_again_chk12(code: str) -> None:
    assert left_over(CASES[code].words, [call(city=CASES[code].first, days=5)], [tool()]) == ()


def test_german_nouns_are_not_names_chk12() -> None:
    sentence = "Stell den Wecker auf 7 Uhr und mach das Licht im Flur auf 40 Prozent."
    assert left_over(sentence, [call(time=7)], [tool()]) == ("40",)


def test_numbers_and_quotations_count_in_every_language_chk12() -> None:
    sentence = "Zet een wekker op 5 minuten; en noem het \u201cthee\u201d."
    assert left_over(sentence, [call(minutes=5)], [tool()]) == ("thee",)


def test_a_call_that_needs_a_result_is_not_missing_chk12() -> None:
    sentence = "Addiere 3 und 4 und multipliziere dann mit dem Ergebnis die 5."
    assert left_over(sentence, [call(a=3, b=4)], [tool()]) == ()


def test_in_a_request_in_steps_only_the_same_tool_counts_chk12() -> None:
    sentence = "Hol zuerst das Wetter in Wien und in Graz, dann sag mir mehr."
    first, same, other = call(city="Wien"), call(city="Graz"), Call("d", "book", '{"city": "Graz"}')
    tools = [tool(), Tool("book", "Book a room.", {"type": "object"})]
    assert fitting_calls(sentence, [first], tools, [other, same]) == [same]
    assert fitting_calls(sentence.replace("zuerst", "bitte"), [first], tools, [other, same]) == [other]


# ---------------------------------------------------------------- a clear no


@pytest.mark.parametrize("answer", ["Nein.", "non", "não", "нет", "不可以", "否", "いいえ", "아니요", "لا", "No"])
def test_a_no_is_understood_in_every_language_chk14(answer: str) -> None:
    assert says_no(answer)


@pytest.mark.parametrize("answer", ["ja", "oui", "sí", "sim", "да", "是", "はい", "네", "نعم", "nonetheless", "不错"])
def test_nothing_else_is_a_no_chk14(answer: str) -> None:
    assert not says_no(answer)
