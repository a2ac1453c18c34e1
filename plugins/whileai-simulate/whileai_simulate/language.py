"""Is a text in the language that was asked for? By script, and by function words of a few languages.

A language that is not in the tables is not checked, and `known` says so. It does not name the language of a text.

Example:
    >>> language_problem("Bitte stornieren Sie meine Bestellung, ich brauche sie nicht mehr.", "English")
    'it is not in English'
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["known", "language_problem"]

_TEXTS: dict[str, str] = {
    "english": (
        "the a an i my me you your it is are was to of for and in on with please can could would need want "
        "have that this be do not what how when if any just about as at up from them there"
    ),
    "german": (
        "der die das ich mein meine meinen sie ist sind und zu für von mit bitte können kann nicht ein eine "
        "einen wie wann wenn es dass mir mich auf ihre haben wäre möchte noch auch den dem"
    ),
    "french": (
        "le la les je mon ma mes vous est et de du des pour avec pouvez pas un une que qui dans sur en ce il "
        "elle suis votre merci bonjour au aux plaît s'il j'ai"
    ),
    "spanish": (
        "el la los las yo mi mis usted es y de del para con por favor no un una que en puede quiero necesito "
        "lo se al está hola gracias su tengo"
    ),
    "italian": (
        "il lo la gli le io mio mia è e di del della per con favore non un una che in può vorrei al sono ho "
        "questo grazie ciao mi si"
    ),
    "portuguese": (
        "o a os as eu meu minha você é e de do da para com por favor não um uma que em pode quero preciso "
        "está obrigado olá no na"
    ),
    "dutch": (
        "de het een ik mijn u je is en van voor met kunt niet dat die op wil graag aan te zijn heb "
        "alstublieft naar hoe wat er nog"
    ),
}
_WORDS = {name: frozenset(text.split()) for name, text in _TEXTS.items()}
_SCRIPTS: dict[str, str] = {
    "russian": "CYRILLIC", "ukrainian": "CYRILLIC", "bulgarian": "CYRILLIC", "greek": "GREEK", "arabic": "ARABIC",
    "hebrew": "HEBREW", "hindi": "DEVANAGARI", "thai": "THAI", "korean": "HANGUL", "chinese": "CJK", "japanese": "CJK",
}  # fmt: skip
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def known(language: str) -> bool:
    """Whether texts can be checked for a language."""
    return language.casefold() in _WORDS or language.casefold() in _SCRIPTS


def language_problem(text: str, language: str) -> str | None:
    """Return what speaks against a text being in a language, or `None`.

    Args:
        text: The text. Ids and addresses in it do no harm.
        language: English name of the language; one that is not `known` is not checked.
    """
    wanted = language.casefold()
    letters = _LETTER.findall(text)
    script = _SCRIPTS.get(wanted)
    if script is not None:
        share = sum(_in_script(c, script) for c in letters) / max(1, len(letters))
        return None if share >= 0.3 else f"it is not in {language}"
    if wanted not in _WORDS or not letters:
        return None
    if sum("LATIN" in unicodedata.name(c, "") for c in letters) < len(letters) / 2:
        return f"it is not in {language}"
    words = [w.casefold() for w in _WORD.findall(text)]
    counts = {name: sum(w in table for w in words) for name, table in _WORDS.items()}
    best = max(counts.values())
    # A short text may have no function word at all; only another language's speaks against it.
    return None if counts[wanted] == best or best < 3 else f"it is not in {language}"


def _in_script(char: str, script: str) -> bool:
    name = unicodedata.name(char, "")
    if script == "CJK":
        return name.startswith(("CJK", "HIRAGANA", "KATAKANA"))
    return name.startswith(script)
