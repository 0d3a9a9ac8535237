"""Questions and answers in the user's language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from string import Formatter

import pytest
from langchain_core.messages import BaseMessage

from code_chains import Language, Repair, create_code_chain
from code_chains.chains import GenerateChain, InterpretChain, LanguageChain, TranslateChain
from code_chains.errors import ConfigurationError
from code_chains.executors import Limits
from code_chains.language import LANGUAGES, detect_language
from code_chains.language.messages import messages_in, texts
from code_chains.language.reasons import how_to_check, translate_reason, verdict_words
from code_chains.state import Execution, Verdict
from code_chains.testing import ScriptedModel, asks_for_code
from code_chains.verification.grounding import omits_result, unsupported_numbers
from code_chains.verification.numbers import ascii_digits
from code_chains.verification.sanity import sanity_verdict
from code_chains.verification.sanity.formats import broken_format

SUMS = {
    "ar": "ما هو مجموع الأعداد من 1 إلى 5؟",
    "de": "Was ist die Summe der Zahlen von 1 bis 5?",
    "es": "¿Cuál es la suma de los números del 1 al 5?",
    "fr": "Quelle est la somme des nombres de 1 à 5 ?",
    "he": "מה סכום המספרים מ-1 עד 5?",
    "hi": "1 से 5 तक की संख्याओं का योग क्या है?",
    "it": "Qual è la somma dei numeri da 1 a 5?",
    "ja": "1から5までの数の合計はいくつですか?",
    "ko": "1부터 5까지의 합은 얼마인가요?",
    "pt": "Qual é a soma dos números de 1 a 5?",
    "ru": "Какова сумма чисел от 1 до 5?",
    "tr": "1'den 5'e kadar olan sayıların toplamı nedir?",
    "zh": "1到5的数字之和是多少?",
}


def obeys(messages: list[BaseMessage]) -> str:
    """A model that answers in the language it is told to."""
    if asks_for_code(messages):
        return "print(sum(range(1, 6)))"
    told = str(messages[-1].text)
    language = next(code for code, name in LANGUAGES.items() if told.endswith(f"Answer in {name}."))
    said = messages_in(language)
    return f"{said.not_phrased} {said.program_output.format(output='15')}"


@pytest.mark.rows(3)
@pytest.mark.parametrize("language", SUMS)
def test_an_answer_comes_in_the_language_of_the_question(language: str) -> None:
    with create_code_chain(ScriptedModel(obeys), executor="none") as chain:
        result = chain.invoke({"query": SUMS[language]})
    assert (result["answer_language"], detect_language(result["answer"]), result["output"]) == (
        language,
        language,
        "15",
    )


@pytest.mark.rows(3)
@pytest.mark.parametrize("language", SUMS)
def test_a_failure_is_told_in_the_language_of_the_question(language: str) -> None:
    failing = ScriptedModel(lambda messages: "raise ValueError('x')")
    with create_code_chain(failing, executor="none", solve=Repair(1)) as chain:
        answer = chain.invoke({"query": SUMS[language]})["answer"]
    assert detect_language(answer.partition("ValueError")[0]) == language


@pytest.mark.soak
@pytest.mark.local_model
@pytest.mark.timeout(900)
def test_the_embedded_model_answers_in_many_languages() -> None:
    with create_code_chain("local") as chain:
        results = {language: chain.invoke({"query": query}) for language, query in SUMS.items()}
    answers = {one: ascii_digits(result["answer"]) for one, result in results.items()}
    wrong = {one: answer for one, answer in answers.items() if "15" not in answer}
    assert len(wrong) <= 1, wrong  # Small differences of floats decide between two programs in Hindi.
    told = [one for one, result in results.items() if detect_language(result["answer"]) == one]
    assert len(told) >= 10


def test_a_language_that_is_asked_for_is_used_whatever_the_question() -> None:
    with create_code_chain(ScriptedModel(obeys), executor="none", language="ja") as chain:
        assert detect_language(chain.invoke("What is the sum of 1 to 5?")["answer"]) == "ja"


def test_a_short_question_is_in_the_language_of_the_conversation() -> None:
    from langchain_core.messages import AIMessage, HumanMessage

    history = [HumanMessage("¿Cuál es la media de las ventas?"), AIMessage("Es 3.")]
    assert LanguageChain().invoke({"query": "plot?", "history": history})["language"] == "es"


def test_short_questions_in_a_row_stay_in_the_language_of_the_conversation() -> None:
    from langchain_core.messages import AIMessage, HumanMessage

    history = [
        HumanMessage("¿Cuál es la media?"),
        AIMessage("Es 3."),
        HumanMessage("plot?"),
        AIMessage("Ya."),
    ]
    assert LanguageChain().invoke({"query": "gcd 12 18", "history": history})["language"] == "es"


def test_an_unknown_language_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="language"):
        create_code_chain(ScriptedModel(obeys), language="Klingon")


def test_a_program_is_told_to_speak_the_language_but_english_goes_without_saying() -> None:
    generate = GenerateChain(model=ScriptedModel(obeys))
    french = generate.messages({"query": "?", "language": "fr"})[0].text
    assert "French" in french
    assert generate.messages({"query": "?", "language": "en"})[0].text == generate.prompt


def test_a_translation_stands_beside_the_question() -> None:
    seen = []

    def model(messages: list[BaseMessage]) -> str:
        seen.append(messages)
        return 'How many "años" are there?' if "translate" in str(messages[0].text) else "print(1)"

    with create_code_chain(
        ScriptedModel(model), executor="none", interpret=False, language=Language(translate=True)
    ) as chain:
        result = chain.invoke({"query": '¿Cuántos "años" hay en la tabla de personas?'})
    asked = str(seen[1][-1].text)
    assert result["query"] in asked
    assert result["translation"] in asked


def test_a_question_in_english_is_not_translated() -> None:
    never = ScriptedModel(lambda messages: pytest.fail("it was asked"))
    assert TranslateChain(model=never).invoke({"query": "What is it?", "language": "en"})["translation"] == ""


def fields_of(said: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Return what each text is filled in with."""
    fields = {key: [name for _, name, _, _ in Formatter().parse(text)] for key, text in said.items()}
    return {key: Counter(name for name in names if name is not None) for key, names in fields.items()}


def test_each_language_is_a_file_and_each_file_a_language() -> None:
    folder = files("code_chains.data").joinpath("languages")
    assert {file.name for file in folder.iterdir()} == {f"{language}.json" for language in LANGUAGES}


@pytest.mark.parametrize("section", ["messages", "reasons", "lessons"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_have_the_keys_of_english_and_ask_for_the_same(language: str, section: str) -> None:
    assert fields_of(texts(language, section)) == fields_of(texts("en", section))


@pytest.mark.parametrize("language", LANGUAGES)
def test_phrases_are_in_their_language(language: str) -> None:
    assert detect_language(" ".join(messages_in(language)), default="?") == language


def test_an_unknown_language_gets_english() -> None:
    assert messages_in("da") == messages_in("en") == messages_in(None)


@pytest.mark.parametrize(
    "answer", ["合計は15です。", "المجموع ١٥.", "योग १५ है।", "Es sind 15,0 Punkte.", "합은 15입니다."]
)
def test_numbers_are_read_in_each_script(answer: str) -> None:
    assert unsupported_numbers(answer, "15") == []
    assert not omits_result(answer, "15")


def test_a_wrong_number_is_seen_in_each_script() -> None:
    assert unsupported_numbers("合計は42です。", "15") == ["42"]


def test_an_answer_that_tells_nothing_of_the_output_gets_the_output_of_the_program() -> None:
    tell = InterpretChain(model=ScriptedModel(lambda messages: "योग क्या है?"))
    verdict = Verdict("unverified", "none", "It ran.")
    answer = tell.invoke({"query": "योग?", "output": "15", "verdict": verdict, "language": "hi"})["answer"]
    assert answer.endswith("(प्रोग्राम का आउटपुट: 15)")


VERDICTS = {
    "unchecked": (
        Verdict("unverified", "none", "The program ran; nothing checked its output."),
        ("Nicht geprüft", "Das Programm lief; nichts hat seine Ausgabe geprüft."),
    ),
    "one test": (
        Verdict("verified", "tests", "The program gives what the test expects."),
        ("Geprüft", "Das Ergebnis ist, was alle Tests erwarten (1)."),
    ),
    "with columns": (
        Verdict("unverified", "none", "The program ran; nothing checked its output. It read: `a`, `b`."),
        ("Nicht geprüft", "Das Programm lief; nichts hat seine Ausgabe geprüft. Gelesen wurde: `a`, `b`."),
    ),
    "an assumption": (
        Verdict("unverified", "provenance", "The program assumes 1.08 (line 1), which was not given."),
        ("Nicht geprüft", "Das Programm nimmt 1.08 (line 1) an, was nicht gegeben war."),
    ),
    "a failed test": (Verdict("failed", "tests", "f(2) gave 5."), ("Keine Antwort", "f(2) gave 5.")),
    "something is missing": (
        Verdict("failed", "output", "Not given: x", ("x",)),
        ("Rückfrage", "Not given: x"),
    ),
}


@pytest.mark.parametrize(("verdict", "words"), VERDICTS.values(), ids=VERDICTS)
def test_a_verdict_has_words_in_each_language(verdict: Verdict, words: tuple[str, str]) -> None:
    assert verdict_words(verdict, "de") == words
    assert verdict_words(verdict, "und") == verdict_words(verdict) == (verdict.status, verdict.reason)


def test_what_would_check_an_answer_is_said_where_nothing_did() -> None:
    unchecked = Verdict("unverified", "none", "The program ran; nothing checked its output.")
    assert how_to_check(unchecked, "--tests", "es") == "Ejemplos o pruebas lo comprobarían: --tests"
    assert how_to_check(Verdict("verified", "tests", ""), "--tests", "es") == ""


def test_reasons_with_values_keep_them() -> None:
    assert translate_reason("4 of 5 programs gave the same outcome.", "fr") == (
        "4 programmes sur 5 ont donné le même résultat."
    )


def doubt(query: str, code: str, output: str) -> str:
    values = {"query": query, "files": {"e.csv": b""}, "execution": Execution(status="ok", stdout=output)}
    verdict = sanity_verdict(values, code)
    return verdict.reason if verdict else ""


INPUTS = (
    "sales.csv was given but does not reach the output.",
    "sales.csv was given but does not reach the output; the program used 100 (line 1) of its own.",
    "The program selects `town` = `Essex`, which the question does not name.",
    "Programs have no network, except for addresses that the application allows.",
    "Nothing in the data is called humidity; the program used the column rain. There are: day, rain.",
    "The program takes a sum or mean of rain, which the question does not name. There are: `day`, rain.",
    "The program reads April, and the question asks for May.",
    "The program reads 2023, and the question asks for 2025.",
    "The program reads 2018 to 2022, and the question asks for 2023.",
    broken_format("Format: @mean[value]", "3"),
    doubt("What did I spend in month 4?", "print(d[d.month == 4].amount.sum())", "0.0"),
    doubt("Who is above the mean?", "print(names)", "[]"),
    doubt("What is 2 plus 2?", "print(e)", "Error: no number"),
    "Step 12 of 13: The program selects `town` = `Essex`, which the question does not name.",
    "The program ran; nothing checked its output. It read: `region`, `rain`.",
    "The program made up its data: 12.5 was not given. The program reads April, and the question asks for May.",
    "The program defines what was asked for; nothing checked it.",
    "12 of 13 programs gave zero, which is also what mistakes give.",
    "`2022` stands in no file. The output holds no value. If there is none, the program must say so in a sentence.",
    "`Essex` stands in no file; there is `Essex County`, `Sussex`.",
    "The judge said neither a clear yes nor a clear no.",
)


@pytest.mark.parametrize("reason", INPUTS)
def test_what_is_wrong_with_inputs_is_said_in_each_language(reason: str) -> None:
    values = re.findall(r"[\w.]+\.csv|\d[\d.]*\d|`[^`]+`|rain|humidity", reason)
    for language in LANGUAGES.keys() - {"en"}:
        said = translate_reason(reason, language)
        assert said != reason
        assert [value for value in values if value not in said] == []


def test_a_long_reason_that_is_none_of_the_library_is_left_as_it_is() -> None:
    reason = "ValueError: " + " ".join(f"Row {number} has no price." for number in range(500))
    assert translate_reason(reason, "de") == reason


WHY = {
    "nothing printed": ("pass", "El programa se ejecutó, pero no imprimió nada."),
    "too long": ("while True: pass", "El programa no terminó en 1.5 segundos."),
    "no program": ("", "La respuesta del modelo no contenía ningún programa."),
    "an error of the program": ("{}['a']", "KeyError: 'a'"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "reason"), WHY.values(), ids=WHY)
def test_the_reason_of_an_apology_is_in_its_language(code: str, reason: str) -> None:
    model = ScriptedModel(lambda messages: f"```python\n{code}\n```" if code else "I do not know.")
    with create_code_chain(model, limits=Limits(seconds=1.5), solve=Repair(1)) as chain:
        assert (
            chain.invoke("¿Cuál es la suma de los números del 1 al 5?")["answer"]
            .removesuffix(" 'I do not know.'")
            .endswith(reason)
        )
