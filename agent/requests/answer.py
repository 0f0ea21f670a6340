"""Requests for an answer, and how a reply is read: an option, its words, the evidence, or that there is none."""

from __future__ import annotations

import re as plain_re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, cast

import regex as re
from pydantic import Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol import (
    INSUFFICIENT,
    LATER,
    Declining,
    Note,
    Question,
    R,
    Reasoned,
    Reply,
    Request,
    ShownFrame,
    Video,
    allowed_actions,
    citation_numbers,
    read_as,
)
from kinodex.agent.replies import NULL, REASONING, Bounds, Numbers, exactly, is_blank, one_of, says_nothing
from kinodex.index.terms import query_terms

# The option that a text names: read where there is no doubt which one is meant, else none.

Options = frozenset[int]
"""Options that a mark stands for: one, or several of "A or B"."""
SHORTEST_WORDS = 3
"""Letters of an option that is looked for within a text: many texts contain "2" or "no" and do not mean them. A
character of Chinese or Japanese counts as two."""
_LETTERS, _WORDS, _GROUPS, _WORD_GROUPS, _HIDDEN = 0xE000, 0xE100, 0xE200, 0xE800, "\uf8ff"
"""First marks of letters, of options' words, of several options with letters, and of several in words alone; and the
mark of a letter within words that are no option."""
_MARK = r"[\ue000-\uf8fe]"
_LETTERED = r"[\ue000-\ue0ff\ue200-\ue7ff]"
_WORDED = r"[\ue100-\ue1ff\ue800-\uf8fe]"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_BEFORE, _AFTER = rf"(?<![^\W{_UNSPACED}]|['&-])", rf"(?![^\W{_UNSPACED}\p{{Hangul}}]|['-]\w)"
"""Ends of a Latin letter or word: what stands beside it may be of a script without spaces ("答案是B。")."""
_PARTICLES = "是为為选選はが的でだ了のを"
"""Characters beside which words of Chinese or Japanese stand alone: 红色 in 粉红色 is another colour."""
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_JOINS, _JOINS_UNSPACED = re.compile(r"\w"), re.compile(rf"[^\W{_PARTICLES}]")
"""Characters beside which words do not stand alone."""
_TAGGED = re.compile(r"<answer>(.*?)</answer>|\\boxed\{(?:\\text\{)?([^{}]*)\}", re.IGNORECASE | re.DOTALL)
_ALIKE = str.maketrans("“”„«»「」『』‘’", '"""""""""\'\'', "*`#\x00")
_OTHER_SCRIPT = re.compile(r"(?m)(?<!\p{L})[АΑ](?=\W*$|[).:])")
"""A Cyrillic or Greek letter that both looks like "A" and is the first; of others the look and the place differ."""
_NUMBERED = re.compile(  # a letter that names a frame or the like, and no option
    r"(?i)\b(?:frames?|scene|clip|shot|segment|picture|image|panel|camera|video|bild|szene|fotograma|escena|кадр\w*)"
    r"\s+\K[A-Z]\b"
)
_VERBS = (
    r"is|are|was|were|isn't|wasn't|can|cannot|can't|could|couldn't|does|doesn't|would|wouldn't|may|might|must|has|seems?"
    r"|looks?|fits?|matches|appears?|remains?|be|it|and|or|nor|over|but|because|since|as|not|rather|instead|according"
    r"|given|based|due|ist|sind|ist|scheidet|und|oder|noch|weil|wählen|es|no|y|o|ni|sino|porque|est|et|ou|mais|car|qui"
    r"|non|perché|и|или|не|неверен|потому|है|नहीं|गलत"
)
_LETTER = re.compile(
    rf"(?i:[(\[{{\"]([A-Z])[)\]}}\"])"
    rf"|{_BEFORE}([B-HJ-Z]){_AFTER}"
    rf"|{_BEFORE}([AI]){_AFTER}(?=\s+(?:{_VERBS})\b|[^\S\n]*(?:[^\w\s]|$|\n|[{_UNSPACED}\p{{Hangul}}]))"
    rf"|(?m:^[^\S\n]*([a-z])(?=[^\S\n]*[.):]?[^\S\n]*$))"
    rf"|(?i:\b(?:answer|option|choice)(?:\s+is|\s*:)?\s+)\K([a-h])(?=[^\w\s]*\s*$)",
    re.MULTILINE,
)
"""A letter that stands for an option: in brackets or quotes; large and no word of a sentence; small and alone."""
_AND = r"and|or|nor|und|oder|noch|y|o|e|ni|et|ou|и|или|ни"
_CHAIN = re.compile(
    rf"{_MARK}(?:\s*,\s*{_MARK})*(?:\s*,?\s*(?:(?:\b(?:{_AND})\b)|[/&和或と、か])\s*{_MARK})+"
    rf"|{_MARK}(?:\s*,\s*{_MARK})+(?=\s*(?:$|[.!?;\n)。]))",
    re.MULTILINE,
)
"""Several options in one breath: "A, B or C"."""
_LABELLED = re.compile(
    rf"(?m)(?:^\W*?[\ue000-\ue0ff][.)]+[^\S\n]*|[\ue000-\ue0ff][^\S\n]*(?:[:)-]|[–—])?[^\S\n]*){_WORDED}"
)
"""A letter with an option's words."""
_LEFT_OUT = (
    r"(?:any|every)thing but|nothing but|all but|none but|any but|except|apart from|instead of|rather than"
    r"|anstatt|statt|außer"
    r"|en lugar de|en vez de|excepto|salvo|plutôt que|au lieu de|sauf|invece di|tranne|em vez de|exceto|вместо|кроме"
)
_NO = re.compile(
    rf"(?i)\b(?:{_LEFT_OUT}|not|no|never|nor|neither|none|nothing|cannot|without|incorrect\w*|wrong\w*|false|unlikely"
    r"|improbable|implausible|impossible|eliminat\w*|reject\w*|rul(?:e|ed|es|ing)\s+(?:it\s+)?out|exclud\w*|discard\w*"
    r"|dismiss\w*|unsupported|contradict\w*|mistake\w*|distractor|trap|doubt\w*|insufficient|unclear|unknown|unsure"
    r"|uncertain|worst|unable|refuse\w*|lacks?|fails?|invalid|whether"
    r"|nicht|kein\w*|nie|niemals|weder|noch|falsch\w*|unmöglich|ausgeschlossen|ausschließen|scheide[tn]|unwahrscheinlich"
    r"|ni|nunca|tampoco|fals[oa]s?|equivocad\w*|descart\w*|imposible|ne|n'\w+|pas|jamais|faux|fausse\w*|exclu\w*"
    r"|élimin\w*|non|né|mai|sbagliat\w*|errat\w*|esclu\w*|não|nem|errad\w*|incorret\w*|niet|geen|nooit|onjuist|nie|değil"
    r"|yanlış|inte|ikke|не|нет|ни|неверн\w*|неверен|неправил\w+|исключ\w*|невозможн\w*|ложн\w*|ошибоч\w*"
    r"|नहीं|ग़?लत|ليس\w*|لا|غير|خطأ|خاطئ\w*)\b"
    rf"|n't\b|\bso (?:is|are|does|do)\s+{_MARK}|[不没沒非错錯误誤无無未違]"
    r"|排除|除了|ない|ません|なく|아니|아닙|아닌|않|없|못|틀|오답|제외"
)
"""Words that reject, in whatever way: a clause that has one states nothing."""
_SURELY = re.compile(r"(?i)\b(?:no|without(?:\s+any|\s+a)?)\s+doubt\b|\bzweifellos\b|\bohne Zweifel\b|\bnot only\b")
_MAYBE = re.compile(
    r"(?i)\b(?:might|could|maybe|perhaps|possibly|some\s+(?:would|might|may|people|viewers)|depend\w*|at first|thought"
    r"|initially|assum\w*|suppos\w*|either|vielleicht|könnte|quizás?|podría|peut-être|pourrait|forse|potrebbe|talvez"
    r"|poderia|возможно|может)\b|(?<!最)(?<!最有)可能|也许|かもしれ|아마"
)
_IF = re.compile(
    r"(?i)\b(?:if(?!\s+I\s+(?:had|have|were|must)\b)|wenn|falls|si|если)\b|^\W*(?:se|were|had|should)\b|如果|若|もし|만약"
)
_OTHERS = re.compile(
    r"(?i)\b(?:others?|rest|remaining|anderen?|otr[ao]s|autres|altre|outras|остальные|другие)\b|其他|其余|他の"
)
_REASON = re.compile(
    r"(?i)\W*(?:(?:because|since|as|given|due|weil|da|denn|porque|parce|car|perché|потому)\b|因为|なぜなら)"
)
_BUT = re.compile(r"(?i)\W*(?:(?:but|however|actually|aber|jedoch|pero|mais|però|mas|но|однако)\b|但|しかし|하지만)")
_SENTENCE = re.compile(r"(?:[^.!?。！？؟।\n;]|(?<=\d)\.(?=\d))+[.!?。！？؟।;]*\n*|\n+")
_CLAUSE = re.compile(
    r"[,،]|(?<![\ue000-\uf8fe)\]])\s[–—-]\s"
    rf"|(?=\b(?:{_LEFT_OUT}|and|but|because|since|although|though|while|whereas|so|hence|thus|therefore|however"
    r"|sondern|aber|weil|denn|daher|deshalb|sino|pero|porque|mais|parce|donc|bensì|quindi|perché|mas|portanto"
    r"|но|потому|поэтому|значит)\b)(?<!\b(?:any|every)thing )(?<!\b(?:nothing|all|none|any) )"
    rf"|(?<=\s)(?=а\s+{_MARK})|(?=\b(?:not|nicht|no|не)\s+{_MARK})|(?=所以|因此|因为|但是|而是|故)|(?<=ではなく|아니고|아니라)|(?<=ので|から|ため)",
    re.IGNORECASE,
)
_FILLING = (
    r"(?:\b(?:so|hence|thus|therefore|consequently|and|but|it|it's|is|that|that's|this|must|be|has|to|leaves|leaving"
    r"|left|with|only|just|remains|i|i'd|i'll|i'm|going|say|would|should|take|choose|pick|go|the|my|answer|option|choice"
    r"|letter|clearly|probably|likely|most|definitely|final|guess|think|believe|best|correct|right|question|yes"
    r"|also|daher|deshalb|somit|folglich|sondern|es|ist|lautet|bleibt|denke|dass|vermutlich|wahrscheinlich|ich|sage|nehme|wähle|die|das|der|antwort|option|lösung"
    r"|wäre|sería|serait|sarebbe|seria|diría|dirais|direi|diria|sino|la|el|a|o|il|lo|opción|letra|entonces|digo|creo|pienso|que|queda|probablemente|mais|donc|c'est|est|réponse|lettre|je|pense|dis|reste|probablement|ma|bensì|è|é|quindi|lettera"
    r"|risposta|resposta|alternativa|mas|portanto|но|а|это|значит|поэтому|я|вариант|буква|является|остаётся|думаю|что|هي|هو|الصحيحة|है)\b"
    r"|而是|所以|因此|故|选项|是|为|為|应该|应|我|选|選択肢|答え|は|です|だ|私|と思います|である|입니다|이다|은|는)"
)
_ANSWER = (
    r"(?:\b(?:answer|ans|conclusion|verdict|antwort|lösung|respuesta|réponse|resposta|risposta|ответ(?:ом)?|antwoord|odpowiedź|cevap|svar|الإجابة|الجواب"
    r"|उत्तर|जवाब)\b|答案|答え|正解|解答|정답|답)"
)
_RIGHT = (
    r"(?:\b(?:correct|right|best|most\s+likely|likely|true|richtige?|korrekte?|correct[oae]|corrett[oa]|corret[oa]|exacte?"
    r"|juste|bonne|верн\w+|правильн\w+|सही|صحيحة?)\b|正确|正確|对|正しい|正解|最(?:も)?(?:合适|佳|適切)な?的?|맞|정답)"
)
_CHOOSE = (
    r"(?:\b(?:choose|chose|pick|select|go(?:ing)?\s+with|opt\s+for|settle\s+on|supports?|points?\s+(?:to|at|towards)"
    r"|wähle|würde|entscheide\s+mich\s+für|me\s+quedo\s+con|fico\s+com|elijo|escojo|selecciono|choisis|escolho|scelgo|выбираю)\b|选择|選択|选|選)"
)
_OPTION = r"\b(?:option|choice|opción|opzione|opção|alternativa|вариант)\b"
_GAP = rf"(?:[^\w\ue000-\uf8ff]|\b(?:to|for)\s+(?:the|this)\s+question\b|{_FILLING}|{_RIGHT})*"
_CONCLUDED = re.compile(
    rf"(?i)(?:{_ANSWER}|{_CHOOSE}|{_RIGHT}\W+(?:{_OPTION}|one\b)|{_RIGHT}(?:选项|選項|選択肢)|{_OPTION}\s+{_RIGHT}|\bonly\s+{_OPTION}(?:\s+that\s+\w+|\s+left)?|^\W*{_RIGHT}\W){_GAP}({_MARK})"
    rf"|({_MARK})(?:[^\w\ue000-\uf8ff]|\b(?:is|seems|looks|appears|sounds|the|an?|ist|die|das|es|la|est|è|é|my)\b|选项|是|が|は|가|이)*(?:{_RIGHT}|\b(?:answer|choice)\b)"
    rf"|^\W*(?:choosing|picking|selecting|opting\s+for|settling\s+on){_GAP}({_MARK})(?=\W*$|\s+as\b)"
    rf"|({_MARK})[^\w\ue000-\uf8ff]*(?:を選|[를을]\s*선택)"
)
_ALONE = re.compile(rf"[^\w\ue000-\uf8ff]*({_LETTERED})[^\w\ue000-\uf8ff]*")
_ALMOST_ALONE = re.compile(rf"(?i)(?:{_FILLING}|[^\w\ue000-\uf8ff])*({_LETTERED})(?:{_FILLING}|[^\w\ue000-\uf8ff])*")
_AT_START = re.compile(
    rf"[^\w\ue000-\uf8ff]*({_MARK})[^\w\s\ue000-\uf8ff]*(?:[:)\]]|\s[–—-]\s)[^\S\n]*(?=\p{{Lu}}|\p{{Lo}}|(?<=[:–—-]\s*)\w)"
)
_LISTED = re.compile(rf"[(\[]({_MARK})[)\]]|({_MARK})[.):](?=\s)")
_GOES_ON = re.compile(rf"(?i){_WORDED}\s*,?\s*(?:and|then|und|dann|y|luego|et|puis|e|poi|и|потом)\b(?!\s+{_MARK})")
"""What an option says, and more: "he leaves the room and opens a window" may be another option in other words."""
_LIKENED = re.compile(
    rf"(?i)(?:\b(?:colou?r|shade|hue|tone)s?\s+of|(?<!\b(?:looks?|seems?|sounds?)\s)\b(?:like|unlike|resembl\w+|similar\s+to))"
    rf"\s+(?:(?:an?|the)\s+)?{_WORDED}\s+\w"
)
"""What an option says, of something that is only compared: "the colour of a blue sky"."""
_MENTIONED = re.compile(
    rf"(?i)(?:[(\[]({_MARK})[)\]]|(?:\b(?:option|choice|opción|opzione|opção|вариант)\s+|选项|選択肢)\W*({_MARK}))"
    rf"(?!\s*(?:is|was|seems?|looks?|sounds?|appears?|would|could|can|may|might|does|has|shows?|says|mentions)\b)"
)


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    sentence: int
    rejects: bool
    unsure: bool
    """True for a question and a supposition."""


def named_option(text: str, options: Sequence[str]) -> int | None:
    """Index of the option that `text` names; None if it names none, or may mean several."""
    if tagged := _TAGGED.findall(text):
        return named_option("".join(tagged[-1]), options)
    text, *options = map(_plain, (text, *options))
    folded = [_folded(option) for option in options]
    if _folded(text) in folded:
        return folded.index(_folded(text))
    marked, clauses, marks = _read(text, options)
    found = _named(marked, clauses, marks)
    index = min(found) if len(found) == 1 else -1
    return index if 0 <= index < len(options) else None


def lone_letter(text: str) -> int | None:
    """The place in the alphabet of a letter that is a whole text, in whatever brackets or quotes; else None."""
    letter = _plain(text).strip(" .:()[]{}\"'").upper()
    return string.ascii_uppercase.index(letter) if len(letter) == 1 and letter in string.ascii_uppercase else None


def rejected_options(text: str, options: Sequence[str]) -> Options:
    """The options that a text of one clause rejects ("not red"); none for a longer text, which may say more."""
    _, clauses, marks = _read(_plain(text), [_plain(option) for option in options])
    [first, *others] = clauses or [_Clause("", 0, rejects=False, unsure=False)]
    return marks.of(first.text) if first.rejects and not others else frozenset()


def _read(text: str, options: Sequence[str]) -> tuple[str, list[_Clause], _Marks]:
    folded = [_folded(option) for option in options]
    marked, groups = _joined(_with_marks(text, options), [folded.index(each) for each in folded])
    return marked, list(_clauses(marked)), _Marks(groups)


def _plain(text: str) -> str:
    """A text in one form: full-width letters and curly quotes as plain ones, without Markdown."""
    plain = unicodedata.normalize("NFKC", re.sub(r"[\ue000-\uf8ff]", "", text)).translate(_ALIKE)
    return _OTHER_SCRIPT.sub("A", plain).strip()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .。\"'")


def _with_marks(text: str, options: Sequence[str]) -> str:
    """The text with a mark for each letter that stands for an option, and for the words of each option.

    EgoSchema calls the camera's wearer "C": in "C is cooking" no letter stands, whatever follows.
    """
    order = sorted(range(len(options)), key=lambda at: -len(options[at]))
    by_words = all(map(_is_long, options))
    for at in order:
        words = options[at].strip(" .。\"'").split()
        if words and (len(words) > 1 or by_words):
            text = _replaced(text, words, chr(_WORDS + min(at, 0xFF)))
        elif words:
            short = rf"(?mi)(?<=(?<!\w)[A-Z]\W{{1,3}}|\banswer\s*(?::|is:?)\s*){_spaced(words)}(?=\W*$)"
            text = re.sub(short, chr(_WORDS + min(at, 0xFF)), text)
    for at in order:
        words = options[at].strip(" .。\"'").split()
        if len(words) > 1 and len(words[0]) == 1:
            text = _replaced(text, words[:2], _HIDDEN)
    return _LETTER.sub(_letter_mark, _NUMBERED.sub(_HIDDEN, text))


def _is_long(option: str) -> bool:
    letters = option.strip(" .。\"'")
    return len(letters) + len(_UNSPACED_LETTER.findall(letters)) >= SHORTEST_WORDS


def _replaced(text: str, words: Sequence[str], mark: str) -> str:
    joins = _JOINS_UNSPACED if _UNSPACED_LETTER.match(words[0]) else _JOINS

    def replaced(match: plain_re.Match[str]) -> str:
        around = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        return match[0] if any(joins.match(each) for each in around) else mark

    return plain_re.sub(_spaced(words), replaced, text, flags=plain_re.IGNORECASE)


def _spaced(words: Sequence[str]) -> str:
    return r"\s+".join(map(plain_re.escape, words))


def _letter_mark(match: re.Match[str]) -> str:
    letter = next(each for each in match.groups() if each)
    return match[0].replace(letter, chr(_LETTERS + string.ascii_uppercase.index(letter.upper())))


def _joined(text: str, first: Sequence[int]) -> tuple[str, dict[str, Options]]:
    """The text with one mark for a letter with its words ("B. dark blue") and for several options ("A or B").

    `first` holds for each option the first one of the same words.
    """
    groups: dict[str, Options] = {}
    marks = _Marks(groups)

    def join(match: re.Match[str]) -> str:
        mark = chr((_GROUPS if re.search(_LETTERED, match[0]) else _WORD_GROUPS) + len(groups))
        groups[mark] = marks.of(match[0])
        return mark

    def join_label(match: re.Match[str]) -> str:
        mark, words = re.findall(_MARK, match[0])
        own = min(marks[mark])
        return str(mark) if own < len(first) and first[own] == min(marks[words]) else join(match)

    return _CHAIN.sub(join, _LABELLED.sub(join_label, text)), groups


@dataclass(frozen=True, slots=True)
class _Marks:
    """The options of each mark."""

    groups: Mapping[str, Options]

    def __getitem__(self, mark: str) -> Options:
        return self.groups[mark] if mark in self.groups else frozenset({ord(mark) & 0xFF})

    def of(self, text: str) -> Options:
        return frozenset().union(*(self[mark] for mark in re.findall(_MARK, text)))


def _clauses(text: str) -> Iterator[_Clause]:
    text = _SURELY.sub("", re.sub(r":\s*\n\s*", ": ", text))
    for number, sentence in enumerate(_SENTENCE.findall(text)):
        asks = bool(re.search(r"[?？؟]\s*$", sentence))
        supposes = _IF.search(sentence)
        at = 0
        for clause in _CLAUSE.split(sentence):
            unsure = (
                asks or bool(_MAYBE.search(clause)) or (supposes is not None and supposes.start() <= at + len(clause))
            )
            if clause.strip():
                yield _Clause(clause, number, bool(_NO.search(clause)), unsure)
            at += len(clause)


def _named(text: str, clauses: Sequence[_Clause], marks: _Marks) -> Options:
    """The options that the surest sign names."""
    concluded = _concluded(clauses, marks)
    if concluded is not None:
        return concluded
    rejected = frozenset().union(*(marks.of(each.text) for each in clauses if each.rejects))
    found = _alone(clauses, marks) or _at_start(text, clauses, marks) or _mentioned(text, clauses, marks)
    return frozenset() if found & rejected else found


def _concluded(clauses: Sequence[_Clause], marks: _Marks) -> Options | None:
    """The options of the last conclusion, none if what follows takes it back; None without a conclusion."""
    last: Options | None = None
    for clause in clauses:
        named = marks.of(clause.text)
        if clause.rejects:
            last = frozenset() if last and last & named else last
        elif not clause.unsure and named:
            stated = _stated(clause.text, marks)
            alone = _ALONE.fullmatch(clause.text)
            if stated is not None and not alone:
                last = stated
            elif last and len(last) > 1 and alone:
                last = named if named < last else last
            elif last and (alone or _BUT.match(clause.text)) and not named <= last:
                last = frozenset()
    return last


def _stated(clause: str, marks: _Marks) -> Options | None:
    found = [next(each for each in match.groups() if each) for match in _CONCLUDED.finditer(clause)]
    if found:
        return marks[found[-1]]
    almost = _ALMOST_ALONE.fullmatch(clause)
    return marks[almost[1]] if almost else None


def _alone(clauses: Sequence[_Clause], marks: _Marks) -> Options:
    """The options of clauses that are a mark and nothing else; a sentence after it may reject it ("A. No.")."""
    found: Options = frozenset()
    for at, clause in enumerate(clauses):
        match = None if clause.unsure or clause.rejects else _ALONE.fullmatch(clause.text)
        if match:
            rest = [
                each for each in clauses[at + 1 :] if "\n" not in clause.text and each.sentence == clause.sentence + 1
            ]
            denied = (
                rest
                and not _REASON.match(rest[0].text)
                and any(each.rejects and not _OTHERS.search(each.text) and not marks.of(each.text) for each in rest)
            )
            found |= marks[match[1]] | (frozenset({-1}) if denied else frozenset())
    return found


def _at_start(text: str, clauses: Sequence[_Clause], marks: _Marks) -> Options:
    """The option of a letter that a text begins with, set off from what follows; and every other set off like it."""
    match = _AT_START.match(text)
    if not match or any(each.rejects or each.unsure for each in clauses if each.sentence == clauses[0].sentence):
        return frozenset()
    listed = _LISTED.findall(text[match.end() :])
    return marks[match[1]].union(*(marks[one or other] for one, other in listed))


def _mentioned(text: str, clauses: Sequence[_Clause], marks: _Marks) -> Options:
    """The options in brackets or after "option", and those whose words stand in the text.

    None where a clause denies, supposes or asks something else than an option.
    """
    doubtful = [each for each in clauses if each.rejects or each.unsure]
    if any(not marks.of(each.text) for each in doubtful):
        return frozenset()
    plain = " , ".join(each.text for each in clauses if each not in doubtful)
    if _GOES_ON.search(plain) or _LIKENED.search(plain):
        return frozenset()
    words = re.findall(_WORDED, plain)
    letters = [] if doubtful else [one or other for one, other in _MENTIONED.findall(text)]
    return frozenset().union(*(marks[each] for each in [*words, *letters]))


@dataclass(frozen=True, kw_only=True)
class OfRun(Request[R]):
    """A request about a question and its videos; it lists scenes or chapters, if a run reads them (`agent.tree`)."""

    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    chapters: tuple[Note, ...] = field(default=(), metadata=LATER)


# Requests for the answer, with which every agent ends, and their replies.
#
# A bare text ("B") is accepted as a reply too (`named_option`).


class Answered(Reply):
    """An answer: the option's letter if there are options, else a text; and the frames it rests on."""

    option: str | None = Field(description="letter of the chosen option, else null")
    answer: str | None = Field(description="the answer in words, else null")
    evidence: Numbers = Field(description="numbers of the frames or notes that show the answer")
    """Numbers of the shown frames (1 is the first) that the answer rests on."""


class _Verdict(Reasoned):
    action: Literal["answer", "insufficient_evidence"] = Field(description="answer, or say that it cannot be seen")


def read_decision(value: object) -> object:
    """Complete a decision in any accepted shape: a text is an answer, missing keys are empty, "none" is no segment.

    One with a segment and an answer, but no action, may be either: its action stays missing.
    """
    if isinstance(value, str) and value.strip():
        value = {"answer": value.strip(), "option": value.strip()}
    if not isinstance(value, Mapping):
        return value
    found = {str(key).casefold(): each for key, each in value.items()}
    if says_nothing(found.get("segment")):
        found.pop("segment", None)
    if "action" not in found and not ("segment" in found and says_answer(found)):
        found["action"] = "explore" if "segment" in found else "answer"
    if isinstance(found.get("action"), str):
        found["action"] = found["action"].strip().casefold()
    blank: dict[str, object] = {"segment": None, "option": None, "answer": None, "evidence": []}
    return blank | {key: each for key, each in found.items() if each is not None}


def says_answer(found: Mapping[str, object]) -> bool:
    return not (says_nothing(found.get("option")) and says_nothing(found.get("answer")))


class Conclusion(Answered, _Verdict):
    """An answer from the frames at hand, or that they do not show enough."""

    _accept = read_as(read_decision)


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(Request[Conclusion]):
    """A request for an answer, or for the verdict that the evidence is insufficient."""

    Reply = Conclusion
    question: Question
    videos: tuple[Video, ...]
    declining: Declining = field(default="allowed", metadata=LATER)

    @property
    def actions(self) -> tuple[str, ...]:
        return allowed_actions(("answer", "insufficient_evidence"), self.declining)

    def bounds(self) -> Bounds:
        return {"action": one_of(self.actions), **letters(self.question, or_null=len(self.actions) > 1)}

    def check(self, reply: Conclusion) -> None:
        if reply.action == "answer":
            check_answer(self.question, reply)

    def in_words(self, text: str) -> Conclusion | None:
        decision = answer_in_words(self.question, text)
        return None if decision is None else self.Reply.model_validate(decision)


@dataclass(frozen=True, kw_only=True)
class AnswerFrames(AnswerRequest):
    """Answer from `frames`, and `notes` of the words spoken then, in one call.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "answer_frames"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...] = field(default=(), metadata=LATER)

    def bounds(self) -> Bounds:
        return {**super().bounds(), **weighed(self.question)}


@dataclass(frozen=True, kw_only=True)
class AnswerNotes(AnswerRequest):
    """Answer from `notes`, the findings so far in words; `evidence` of the reply counts notes, from 1."""

    template: ClassVar[str] = "answer_notes"
    role: ClassVar[str] = "policy"
    notes: tuple[Note, ...]
    chapters: tuple[Note, ...] = field(default=(), metadata=LATER)

    def bounds(self) -> Bounds:
        return {**super().bounds(), **weighed(self.question)}


@dataclass(frozen=True, kw_only=True)
class Recall(AnswerRequest):
    """Answer a follow-up question from the evidence of earlier questions, if that shows the answer clearly.

    `evidence` of the reply counts frames from 1, then notes.
    """

    template: ClassVar[str] = "recall"
    role: ClassVar[str] = "vision"
    frames: tuple[ShownFrame, ...]
    notes: tuple[Note, ...]

    def example(self) -> Mapping[str, Any]:
        """A dry run assumes that the earlier evidence tells nothing, where a reply may say so."""
        if self.declining != "allowed":
            return super().example()
        return {"reasoning": "", "action": INSUFFICIENT, "option": None, "answer": None, "evidence": []}


@dataclass(frozen=True, kw_only=True)
class Guess(AnswerRequest):
    """Answer from the question alone: the control that shows which questions need no video."""

    template: ClassVar[str] = "guess"
    role: ClassVar[str] = "policy"


def letters(question: Question, *, or_null: bool = True) -> Bounds:
    """Bind `option` to the letters of a question, which are the same for most questions of a benchmark."""
    if not question.options:
        return {"option": NULL}
    return {"option": one_of([letter for letter, _ in question.lettered], or_null=or_null)}


def weighed(question: Question) -> Bounds:
    """Give the last reply of a run room for what speaks for and against each option."""
    about = "for each option in a few words what speaks for it and what against it; then which one is left"
    return {"reasoning": {"description": about}} if question.options else {}


def cited_frames() -> Mapping[str, object]:
    return {"description": "numbers of the frames that show the answer"}


def check_answer(question: Question, reply: Answered) -> None:
    """Raise `InvalidReply` unless the reply names one of the options, or says something if there are none.

    Models that are held to a schema write "null" or "N/A" where they have no answer but have to give a text.
    """
    if question.options and chosen_option(question, reply) is None:
        letters = [letter for letter, _ in question.lettered]
        raise InvalidReply(f"{_said(question, reply)}; give a letter from {letters[0]} to {letters[-1]}")
    if not question.options and is_blank(reply.answer):
        said = f"{reply.answer!r} is no answer" if (reply.answer or "").strip() else "the answer is empty"
        raise InvalidReply(f"{said}; say it in a few words")


def _said(question: Question, reply: Answered) -> str:
    alone = reply.model_copy(update={"answer": None})
    if chosen_option(question, alone) is not None:
        return f"option {reply.option!r} and answer {reply.answer!r} do not say the same"
    return f"{(reply.option or reply.answer)!r} names no option"


def answer_in_words(question: Question, text: str) -> dict[str, object] | None:
    """Decide to answer with the option that a text names, as JSON values; None if it names none for certain."""
    option = named_option(text, question.options)
    return None if option is None else {"action": "answer", "option": question.lettered[option][0], "answer": text}


def chosen_option(question: Question, reply: Answered) -> int | None:
    """Find the index of the option that a reply names, by its letter or its words; None if its parts disagree.

    A letter alone in `option` is one, even if an option's own words are a letter.
    """
    options = question.options
    answer = None if is_blank(reply.answer) else reply.answer
    in_words = None if answer is None else named_option(answer, options)
    if says_nothing(reply.option) and (reply.option is None or named_option(reply.option, options) is None):
        return in_words
    option = reply.option or ""
    letter = lone_letter(option)
    index = letter if letter is not None and letter < len(options) else named_option(option, options)
    if index is None or answer is None or index in (in_words, lone_letter(answer)):
        return index
    return index if in_words is None and index not in rejected_options(answer, options) else None


# Replies in parts, one for each segment, frame or note: those left out are asked for alone, and two replies are one.


class InParts(Request[R]):
    """A request whose reply has a part for each of some things, by its number; those left out are asked for alone."""

    parts: ClassVar[tuple[str, str, str]]
    """The request's field of the things, the reply's of its parts, and a part's of the number."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the things: of frames those they are shown with, of segments their own, else their places."""
        if self.parts[0] == "frames":
            return citation_numbers(self.frames)[0]
        return [getattr(each, "number", at) for at, each in enumerate(getattr(self, self.parts[0]), start=1)]

    def told(self, reply: R) -> dict[int, list[Any]]:
        """The parts of a reply by their number; those that say the same of one, whatever their reasons, are one."""
        said: dict[int, list[Any]] = {}
        for part in getattr(reply, self.parts[1]):
            same = said.setdefault(getattr(part, self.parts[2]), [])
            if all(part.model_dump(exclude={REASONING}) != each.model_dump(exclude={REASONING}) for each in same):
                same.append(part)
        return said

    def bounds(self) -> Bounds:
        return {self.parts[1]: exactly(len(self.numbers))}

    def interpret(self, reply: R) -> R:
        """Keep one part for each known number, none of which several differ; all if none is left: `check` says why."""
        known = self.numbers
        kept = [each[0] for number, each in self.told(reply).items() if number in known and len(each) == 1]
        return reply.model_copy(update={self.parts[1]: kept}) if kept else reply

    def check(self, reply: R) -> None:
        """A reply may leave things out, but not have parts of unknown ones, of one twice, or none at all."""
        numbers = [getattr(part, self.parts[2]) for part in getattr(reply, self.parts[1])]
        check_numbers(self.parts[2], numbers, self.numbers)

    def missing(self, reply: R) -> Self | None:
        there, things = self.told(reply), getattr(self, self.parts[0])
        rest = tuple(each for number, each in zip(self.numbers, things, strict=True) if number not in there)
        return cast(Self, replace(cast(Any, self), **{self.parts[0]: rest})) if rest else None

    def join(self, reply: R, rest: R) -> R:
        """The parts of two replies in the order of their numbers; the second request had numbers of its own."""
        _, listed, name = self.parts
        there, asked, order = self.told(reply), self.missing(reply), list(self.numbers)
        left = [number for number in order if number not in there]
        own = dict(zip(asked.numbers if asked else (), left, strict=True))
        more = [part.model_copy(update={name: own[getattr(part, name)]}) for part in getattr(rest, listed)]
        parts = sorted([*getattr(reply, listed), *more], key=lambda part: order.index(getattr(part, name)))
        return reply.model_copy(update={listed: parts})


def check_numbers(thing: str, numbers: Sequence[int], known: Sequence[int]) -> None:
    """Raise `InvalidReply` for parts of a reply that are of no known number, of one twice, or for none at all."""
    unknown = [number for number in numbers if number not in known]
    if unknown:
        raise InvalidReply(f"there is no {thing} {unknown[0]}; the numbers are {_listed(known)}")
    if len(set(numbers)) < len(numbers):
        raise InvalidReply(f"a {thing} is there twice; give each once")
    if not numbers and known:
        raise InvalidReply(f"no {thing} is there; give one for each of {_listed(known)}")


def _listed(known: Sequence[int]) -> str:
    if len(known) > 2 and list(known) == list(range(known[0], known[0] + len(known))):
        return f"{known[0]} to {known[-1]}"
    return ", ".join(map(str, known))


# Refusals in words: a model that will not look writes that it is sorry where a description was asked for.
#
# Such a text fits the schema of a caption. Taken for one, it would be stored, searched and cited.

_REFUSALS = r"""
(?:so+ )?sorry\b|apolog|unfortunately\b|regrettably\b|unable to\b|as an? (?:ai|artificial|(?:large )?language model)\b
(?:i|we)(?:['’]?(?:m|re)|\sam|\sare)\s+(?:(?:very|so|truly)\s+)?(?:sorry|afraid|unable|not (?:able|allowed|comf))
(?:i|we)\s+(?:can['’]?t|cannot|can not|won['’]?t|will not|(?:must |have to |\w+fully )*(?:decline|refuse)|regret)\b
(?:i|we)\s+(?:don['’]?t|do not)\s+(?:feel|see any (?:image|picture|frame)|have (?:access|the ability))
(?:there (?:is|are) )?no (?:image|picture|frame)s? (?:(?:was|were|is|are) )?(?:provided|attached|given|to (?:see|desc))
(?:this|the|your|that) (?:request|content|image|picture|frame)s? (?:\w+ ){0,3}?(?:violat|cannot be (?:desc|proc))
(?:es )?tut mir\b.{0,8}leid|leider\b|entschuldig|ich (?:kann|darf|bin nicht)\b|als (?:ki|sprachmodell)\b
(?:je suis )?désolée?\b|je (?:ne (?:peux|suis pas)|regrette|m['’]excuse)|malheureusement\b|en tant qu\W?(?:ia|e mod)
lo (?:siento|lamento)|lamento\b|lamentablemente\b|no (?:puedo|me es posible|es posible)\b|disculp
desculp|sinto muito|não (?:posso|consigo)\b|infelizmente\b
mi dispiace|spiacente|non (?:posso|sono in grado)\b|purtroppo\b
het spijt|helaas\b|ik kan\b|przepraszam|niestety\b|nie mogę|üzgünüm|maalesef|jag kan inte|tyvärr
извин|простите\b|к сожалению|я не (?:могу|вижу)\b|на жаль|عذر|آسف|أعتذر|لا (?:أستطيع|يمكنني)|माफ़|क्षमा करें|मुझे खेद
(?:很|非常)?(?:抱歉|遗憾)|[对對]不起|我(?:无法|不能|無法)|作[为為]一?[个個]?(?:AI|人工|语言|大)|申し訳|すみません|ごめん|残念|죄송|미안
"""
_REFUSAL = re.compile(rf"\W*(?:(?:well|oh|hmm|but)\W+)?(?:{_REFUSALS.strip().replace(chr(10), '|')})", re.IGNORECASE)


def check_not_refused(text: str) -> None:
    """Raise `InvalidReply` for a description that begins as refusals do in some languages; nothing seen is told so."""
    if _REFUSAL.match(text):
        raise InvalidReply("that is a refusal, not a description; say what is seen, and leave out what you may not say")


# Replies without content: the same words over and over, or the words of the request. Small models write both.
#
# Such a text fits the schema of a description. Taken for one, it would be stored, searched and cited.

LEAST_WORDS = 16
"""A shorter text is not looked at for loops: a song may well say "row, row, row your boat"."""
LEAST_NEW = 0.5
"""Share of runs of `LOOPED` words that are new in a text that says something; in loops of small models it is 0.03 to
0.3 (SmolLM2-135M), in sentences above 0.65."""
LOOPED = 4
ECHOED = 5
"""Words in a row that a description and its instructions do not share by chance."""


def check_not_looping(text: str) -> None:
    """Raise `InvalidReply` for a text that repeats itself more than it says anything."""
    words = _words(text)
    runs = _runs(words, LOOPED)
    if len(words) >= LEAST_WORDS and len(set(runs)) < LEAST_NEW * len(runs):
        raise InvalidReply("it says the same words over and over; say each thing once")


def check_not_echoed(text: str, instructions: str, words: int = ECHOED) -> None:
    """Raise `InvalidReply` for a text that has so many words in a row from the instructions for it."""
    if not set(_runs(_words(text), words)).isdisjoint(_runs(_words(instructions), words)):
        raise InvalidReply("it repeats the instructions; say what is known of the part instead")


def _words(text: str) -> list[str]:
    return query_terms(text)


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
