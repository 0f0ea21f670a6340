"""A condition in SQL on the columns of videos, as `camera = 'front' AND day >= '2026-03-01'`: checked, and compiled.

Lance runs what this writes, as one expression of DataFusion's SQL; but it takes a filter for the end of a statement,
where all may follow (`; DROP`, `LIMIT 1`), does not compare times with plain texts, and reads words in double quotes as
texts. Here every word is a column, a function or a word of an expression, columns may have any name, and a text beside
a column of times is a time: in UTC, unless it names another zone.

Whoever may ask a server may write one. So functions are those of a list, none of which makes much of little
(`repeat('x', 900000000)`), and lengths are bounded: DataFusion works by recursion, and a long sum ends the process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from unicodedata import combining, normalize

import pyarrow as pa

from kinodex.index.errors import QueryError
from kinodex.index.text import composed
from kinodex.index.utf8 import checked_text

TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*') | (?P<name>"(?:[^"]|"")+" | `[^`]+`) | (?P<other>--|/\*|;|['"`])
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?) | (?P<word>[^\W\d]\w*) | (?P<space>\s+)
    | (?P<sign><=|>=|<>|!=|\|\||::|.)""",
    re.VERBOSE | re.DOTALL,
)
WORDS = frozenset(
    ["and", "or", "not", "in", "is", "null", "like", "ilike", "escape", "between", "true", "false", "as", "cast"]
)
"""Words of an expression: a column of such a name has to stand in double quotes."""
TIMES = ("timestamp", "date")
FUNCTIONS = frozenset(
    [
        *("lower", "upper", "btrim", "ltrim", "rtrim", "length", "char_length", "character_length"),
        *("left", "right", "split_part", "strpos", "starts_with", "ends_with", "contains", "concat"),
        *("regexp_like", "regexp_match", "coalesce", "nullif", "abs", "round", "trunc"),
        *("date_part", "date_trunc", "to_timestamp", "now", "current_date", "today"),
        *("make_array", "array_has", "array_has_all", "array_has_any", "array_contains", "array_length", "cardinality"),
    ]
)
TYPES = frozenset(["boolean", "int", "bigint", "smallint", "float", "double", "decimal", "string", "date", "timestamp"])
"""What a value may be cast to."""
LONGEST, MOST_DEPTH, MOST_STEPS = 10_000, 20, 100
"""Letters of a condition, brackets within each other, and signs of arithmetic and joining: far fewer than end a
process."""
STEPS = ("+", "-", "*", "/", "%", "||", "::", "[", "&", "|", "^", "~")
OPENING, CLOSING = ("(", "["), (")", "]")
COMPARISONS = ("=", "<", ">", "<=", ">=", "<>", "!=")
SHOWN_LETTERS = 500
SHOWN = 20
"""Columns that an error lists."""
LEAST_LIKENESS = 0.7
"""Of a name that an error offers for an unknown one: "camra" and "recorded" find theirs; "name" is not "frames"."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    @property
    def plain(self) -> str:
        return self.text.lower()


def compiled(condition: str, columns: Mapping[str, pa.DataType]) -> str:
    """Return the condition as Lance reads it; raises QueryError for what is no lone expression over these columns."""
    if len(condition) > LONGEST:
        raise QueryError(f"got a condition of {len(condition):,} letters; give one of {LONGEST:,} at most")
    found = [_Token(str(m.lastgroup), m[0]) for m in TOKEN.finditer(checked_text(condition))]
    tokens = [token for token in found if token.kind != "space"]
    if not tokens:
        raise QueryError("got an empty condition; write one such as camera = 'front', or leave it out")
    _check_lone(condition, tokens, columns)
    names = [_column(condition, tokens, at, columns) for at in range(len(tokens))]
    parts = []
    for at, token in enumerate(tokens):
        name = names[at]
        if name is not None:
            parts.append(f"`{name}`")
        elif token.kind == "text":
            parts.append(_literal(tokens, names, at, columns))
        else:
            parts.append("" if _begins_time(tokens, at) else token.text)
    return " ".join(filter(None, parts))


def quoted(name: str) -> str:
    """Return the name of a column as a condition has it: in double quotes where it would else be another word."""
    is_plain = re.fullmatch(r"[^\W\d]\w*", name) and name not in (*WORDS, *TIMES)
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def query_error(
    condition: str, columns: Mapping[str, pa.DataType], reason: str, unknown: str | None = None
) -> QueryError:
    """Return the error of a condition that cannot be run, in one line.

    It names the column nearest to an `unknown` one.
    """
    alike = {_folded(name): name for name in columns}
    near = [alike[each] for each in get_close_matches(_folded(unknown or ""), alike, n=1, cutoff=LEAST_LIKENESS)]
    shown = ", ".join(map(quoted, list(columns)[:SHOWN])) + (", ..." if len(columns) > SHOWN else "")
    did = f"; did you mean {quoted(near[0])}?" if near else ""
    return QueryError(f"got the condition {condition!r:.{SHOWN_LETTERS}}: {reason}{did}; the columns are {shown}")


def _folded(name: str) -> str:
    """Return a name without capitals and accents."""
    return "".join(each for each in normalize("NFKD", name.casefold()) if not combining(each))


def _check_lone(condition: str, tokens: Sequence[_Token], columns: Mapping[str, pa.DataType]) -> None:
    depth = 0
    if sum(token.kind == "sign" and token.text in STEPS for token in tokens) > MOST_STEPS:
        raise query_error(condition, columns, f"it has more than {MOST_STEPS} signs of arithmetic")
    for token in tokens:
        if token.kind == "other":
            open_end = f"a {token.text} that has no end" if token.text in "'\"`" else f"{token.text} in it"
            raise query_error(condition, columns, f"{open_end}; give one expression, texts in 'single quotes'")
        depth += (token.text in OPENING) - (token.text in CLOSING)
        if depth > MOST_DEPTH:
            raise query_error(condition, columns, f"more than {MOST_DEPTH} of its brackets are within each other")
        if depth < 0:
            break
    if depth:
        raise query_error(condition, columns, "its brackets do not match")


def _column(condition: str, tokens: Sequence[_Token], at: int, columns: Mapping[str, pa.DataType]) -> str | None:
    """Return the column that a token names, or None; raises QueryError for a name that no column has."""
    token, after = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else _Token("", "")
    before = tokens[at - 1].plain if at else ""
    is_word = token.kind == "word" and token.plain not in WORDS
    if is_word and before in ("as", "::"):
        _check_known(condition, columns, "type", token.text, TYPES)
    elif after.text == "(" and (is_word or token.kind == "name"):
        _check_known(condition, columns, "function", token.text, FUNCTIONS)
    if token.kind == "name":
        named = token.text[1:-1].replace('""', '"')
    elif (
        token.kind != "word"
        or token.plain in WORDS
        or before in ("as", "::")
        or after.text == "("
        or after.kind == "text"
    ):
        return None
    else:
        named = token.text
    found = named if named in columns else named.lower()
    if found in columns:
        return found
    reason = f"there is no column {named}"
    if token.kind == "name" and token.text[0] == '"':
        reason += ", which is what stands in double quotes (a text stands in 'single quotes')"
    raise query_error(condition, columns, reason, named)


def _check_known(
    condition: str, columns: Mapping[str, pa.DataType], what: str, name: str, known: frozenset[str]
) -> None:
    """Raise QueryError for a function or a type that a condition may not name."""
    if name.lower() not in known:
        raise query_error(
            condition, columns, f"{name} is no {what} of conditions, which are {', '.join(sorted(known))}"
        )


def _begins_time(tokens: Sequence[_Token], at: int) -> bool:
    """Return True for the word before a text in `timestamp '...'` or `date '...'`."""
    is_time = tokens[at].plain in TIMES and tokens[at].kind == "word"
    return is_time and at + 1 < len(tokens) and tokens[at + 1].kind == "text"


def _literal(tokens: Sequence[_Token], names: Sequence[str | None], at: int, columns: Mapping[str, pa.DataType]) -> str:
    """Return a text, or the time that it stands for after `timestamp` or beside a column of times."""
    text = composed(tokens[at].text)  # as the columns are
    is_named = at > 0 and _begins_time(tokens, at - 1)
    beside = next((name for name in reversed(names[:at]) if name), None)
    if tokens[at + 1 : at + 2] and tokens[at + 1].text in COMPARISONS:
        beside = next((name for name in names[at + 1 :] if name), beside)
    if not is_named and not (beside and pa.types.is_temporal(columns[beside])):
        return text
    try:
        moment = datetime.fromisoformat(text[1:-1].replace("''", "'").strip())
    except ValueError:
        return f"{tokens[at - 1].text} {text}" if is_named else text
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return f"timestamp '{moment.replace(tzinfo=None).isoformat()}Z'"
