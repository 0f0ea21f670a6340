"""Refusals in words: a model that will not look writes that it is sorry where a description was asked for.

Such a text fits the schema of a caption. Taken for one, it would be stored, searched and cited.
"""

from __future__ import annotations

import re

from kinodex.agent.errors import InvalidReply

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
