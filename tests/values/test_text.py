from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.testing.hostile import TEXTS
from holdfast.values.errors import InvalidInputError
from holdfast.values.text import (
    LANGUAGES,
    STOP_WORDS,
    check_language,
    name_key,
    names_in,
    tokenize,
)


@pytest.mark.parametrize(
    ("text", "lexemes"),
    [
        ("", []),
        ("The tides were rising", ["tide", "rise"]),
        ("RISING rises rise", ["rise", "rise", "rise"]),
        ("user_id=42", ["user", "id", "42"]),
        ("don't touch Caroline's dog", ["touch", "carolin", "dog"]),
        ("don\u2019t touch Caroline\u2019s dog", ["touch", "carolin", "dog"]),
        ("''quoted''words''", ["quot", "word"]),
        ("a\x00tide\x00b", ["tide", "b"]),
        ("Straße", ["strass"]),
        ("ﬁn", ["fin"]),
        ("cafe\u0301", ["café"]),
        ("z\u200bero", ["zero"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("party🎂time", ["parti", "🎂", "time"]),
        ("❤️", ["❤"]),
        ("👩‍👧", ["👩", "👧"]),
        ("猫", ["猫"]),
        ("黒猫", ["黒", "猫", "黒猫"]),
        ("my黒猫cat", ["黒", "猫", "黒猫", "cat"]),
        ("고양이", ["고", "양", "이", "고양", "양이"]),
        ("tide\ud800", ["tide"]),
    ],
)
def test_a_text_has_these_lexemes(text: str, lexemes: list[str]) -> None:
    assert tokenize(text) == lexemes


def test_stop_words_are_no_lexemes() -> None:
    assert tokenize(" ".join(sorted(STOP_WORDS["english"]))) == []


def test_a_word_of_one_ideograph_is_found_inside_a_run() -> None:
    assert set(tokenize("猫")) <= set(tokenize("黒猫が好き"))


def test_other_languages_stem_by_their_own_rules() -> None:
    assert tokenize("l'homme mangeait", language="french") == ["l", "homm", "mang"]
    assert tokenize("die Häuser", language="german") == ["die", "haus"]


def test_an_unknown_language_is_refused_with_the_list_of_known_ones() -> None:
    with pytest.raises(InvalidInputError) as refused:
        tokenize("tide", language="klingon")
    assert refused.value.field == "language"
    assert "english" in str(refused.value)
    assert "french" in str(refused.value)
    with pytest.raises(InvalidInputError):
        check_language("language", None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_takes_every_hostile_text(language: str) -> None:
    for hostile in TEXTS:
        if isinstance(hostile.value, str):
            lexemes = tokenize(hostile.value, language=language)
            assert all(lexemes), hostile.name


@given(st.text(st.characters(codec=None)))
def test_any_text_becomes_words_without_space_or_control_characters(text: str) -> None:
    for lexeme in tokenize(text):
        assert lexeme == lexeme.strip()
        assert lexeme
        assert "\x00" not in lexeme


@given(st.text(st.characters(codec="ascii")))
def test_ascii_text_reads_the_same_beside_other_letters(text: str) -> None:
    assert tokenize(f"{text} é") == [*tokenize(text), "é"]


@given(st.text("aehilmnorst", min_size=1), st.text("aehilmnorst", min_size=1))
def test_the_case_of_a_word_does_not_matter(left: str, right: str) -> None:
    assert tokenize(f"{left} {right}") == tokenize(f"{left.upper()} {right.title()}")


def test_threads_do_not_share_a_stemmer() -> None:
    words = [f"{stem}{end}" for stem in ("walk", "tide", "swim") for end in ("ing", "s", "ed")]
    expected = tokenize(" ".join(words))
    answers: list[list[str]] = []

    def work() -> None:
        answers.extend(tokenize(" ".join(words)) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 800
    assert all(answer == expected for answer in answers)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ravi", "what does RAVI do?"),
        ("Ravi", "Ravi's desk"),
        ("Project X", "is project-x late"),
        ("O'Brien", "call O\u2019Brien"),
        ("黒猫", "黒猫が好き"),
        ("Straße", "STRASSE"),
        ("one two three four five six", "zero one two three four five six seven"),
    ],
)
def test_a_name_is_found_in_a_text_that_holds_it(name: str, text: str) -> None:
    assert name_key(name) in names_in(text)


def test_a_name_is_not_found_in_a_part_of_a_word() -> None:
    assert name_key("Ann") not in names_in("the annual plan")
    assert name_key("Ann Lee") not in names_in("Ann met Lee")


@given(st.text(st.characters(codec=None)))
def test_any_text_has_a_name_key_that_folds_to_itself(text: str) -> None:
    key = name_key(text)
    assert name_key(key) == key
    assert "" not in names_in(text)
