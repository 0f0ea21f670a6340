"""Texts on which an exported text tower must agree with the original: many scripts, lengths, and what goes wrong."""

from __future__ import annotations

SENTENCES = (
    "a red boat on a calm lake", "two dogs run along the beach at sunset", "A Woman In A Yellow Raincoat", "snow",
    "an empty street at night, wet with rain", "the goalkeeper saves a penalty", "close-up of hands kneading dough",
    "Der schnelle braune Fuchs springt über den faulen Hund", "Straße, Fußgänger und Häuser im Schneegestöber",
    "un chien court après une balle dans l'herbe", "Où est passé l'été ? Là-bas, très loin", "œuf, cœur, Œdipe",
    "un niño juega al fútbol en la calle", "¿Dónde está el pingüino?", "uma mulher lê à sombra de uma árvore",
    "pies śpi na żółtej kanapie", "Příliš žluťoučký kůň úpěl ďábelské ódy", "Kış güneşi, İstanbul'da ılık bir öğle",
    "Mình thích ăn phở bò ở Hà Nội", "kaksi lasta leikkii lumessa", "två båtar på sjön", "þrjár kindur á túni",
    "μια κόκκινη βάρκα στη λίμνη", "Ο ΣΚΥΛΟΣ ΤΡΕΧΕΙ ΣΤΗΝ ΠΑΡΑΛΙΑ", "ἐν ἀρχῇ ἦν ὁ λόγος",
    "красная лодка на озере", "ДВЕ СОБАКИ БЕГУТ ПО ПЛЯЖУ", "съешь ещё этих мягких французских булок", "її їжак",
    "قارب أحمر على بحيرة هادئة", "كلبان يركضان على الشاطئ عند الغروب", "بِسْمِ ٱللَّٰهِ", "یک زن با چتر زرد",
    "סירה אדומה באגם שקט", "שני כלבים רצים על החוף", "שָׁלוֹם", "एक शांत झील पर लाल नाव", "दो कुत्ते समुद्र तट पर दौड़ते हैं",
    "একটি লাল নৌকা", "ஒரு சிவப்பு படகு", "ఒక ఎర్ర పడవ", "เรือสีแดงในทะเลสาบ", "สุนัขสองตัววิ่งบนชายหาด", "ເຮືອສີແດງ",
    "平静的湖面上有一艘红色的船", "两只狗在日落时沿着海滩奔跑", "雪", "平靜的湖面上有一艘紅色的船", "龘靐齉爩鱻麤龗",
    "静かな湖に浮かぶ赤いボート", "夕暮れの浜辺を走る二匹の犬", "カタカナとひらがなと漢字", "ﾊﾝｶｸ ｶﾀｶﾅ",
    "고요한 호수 위의 빨간 배", "해 질 녘 해변을 달리는 개 두 마리", "ㄱㄴㄷ ㅏㅑㅓ", "წითელი ნავი", "կարմիր նավակ", "ቀይ ጀልባ",
)  # fmt: skip
MARKS = (
    "🐶", "🚣‍♀️ a woman rowing 🌊🌊", "👨‍👩‍👧‍👦 family", "flag 🇨🇭🇯🇵", "thumbs 👍🏽👍🏿", "☕️ and ☕", "a 😀b😀c", "♥ ♠ ♦ ♣",
    "e\u0301te\u0301 and été", "n\u0303o", "Z̷̛̯a̴͝l̵͗g̶̈o̷͒", "\u1112\u1161\u11ab\u1100\u1173\u11af", "Å Å Å", "ﬁne ﬂour ﬀ",
    "ｆｕｌｌ ｗｉｄｔｈ １２３", "x² + y³ = z⁴", "½ cup, ¾ full", "№ 5 ™ © ®", "Ⅷ ⅷ ①②③", "αβγ ≤ ∞ ≠ ∑∫√", "→ ← ↑ ↓", "—–-‐‑",
)  # fmt: skip
HARD = (
    "", " ", "   \t \n  ", "\u3000\u00a0\u2003", ".", "...", "!?", "?!?!?!", "-", "_", "a_b__c", "'s", "it's we're I'll",
    "don't they'd've", "IT'S WE'RE", "“quoted” ‘text’", '"straight" \'quotes\'', "(a) [b] {c} <d>", "a/b\\c|d", "@#$%^&*",
    "0", "7 dogs", "1234567890", "3.14159", "1,000,000", "12:34:56", "2026-11-22", "50% off", "$9.99", "+41 44 123", "1st",
    "ALL UPPER CASE", "MiXeD cAsE", "camelCaseAndSnake_case", "https://example.org/a?b=c&d=e#f", "me@example.org",
    "fish &amp; chips", "&lt;b&gt;bold&lt;/b&gt;", "&amp;lt;twice&amp;gt;", "caf&eacute; &#233; &#x1F600;", "&nbsp;&nbsp;x",
    "&notanentity; & &;", "a\x00b", "bell\x07 and \x1b[31mred\x1b[0m", "tab\tnew\nline\r\nend", "soft\u00adhyphen",
    "zero\u200bwidth\u200djoin\ufeff", "\u202eright to left\u202c", "\ufffd replaced", "\ue000 private", "\U0010ffff last",
    "cafÃ©", "schÃ¶n", "â€œquotedâ€\x9d", "Ð¿ÑÐ¸Ð²ÐµÑ", "l’humanitÃ©", "ï»¿bom", "<start_of_text>", "<end_of_text>",
    "a dog <end_of_text> a cat", "a<end_of_text>b", "!<end_of_text>!", "<|endoftext|>", "</s>", "<s> a </s>", "[SEP] [CLS]",
    "<pad>", "<eos> <bos>", "<unk>", "[UNK] [MASK]", "<0x41>", "a dog</w> a cat", "##ing", "▁", "▁a▁dog▁", "Ġa Ġdog",
    "a  b   c", " leading and trailing ", "a\u2028b\u2029c", "x" * 40, "ab" * 60, "supercalifragilisticexpialidocious",
    "pneumonoultramicroscopicsilicovolcanoconiosis", "aaaaaaaaaaaaaaaa", "zzzz qqqq xxxx", "the", "a", "I", "é", "ß", "İ",
    "ﬃ", "hello\u0000", "\u0300", "\u0301\u0302",
)  # fmt: skip
OVER = (
    "dog " * 13, "dog " * 14, "dog " * 15, "dog " * 29, "dog " * 30, "dog " * 31, "dog " * 45, "dog " * 46, "dog " * 47,
    "dog " * 61, "dog " * 62, "dog " * 63, "dog " * 74, "dog " * 75, "dog " * 76, "dog " * 77, "dog " * 300,
    "犬" * 100, "собака " * 60, "🐶" * 90, "é" * 200, "!" * 400, "1 " * 100, " ".join(SENTENCES[:12]),
)  # fmt: skip
CHECK_TEXTS = (*SENTENCES, *MARKS, *HARD, *OVER)
