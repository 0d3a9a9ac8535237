"""Reasons of this library why there is no answer, in each supported language; errors of programs stay as they are."""

from __future__ import annotations

import re

_PATTERNS = (
    re.compile(r"The program ran but printed nothing\."),
    re.compile(r"Timeout: The program did not end within ([\d.e+]+) seconds\."),
    re.compile(r"Refused: The reply held no \w+ program\.( It was: .*)?"),
)
"""The reasons in English, in the order of their translations."""
_QUOTE = " It was: "
"""What introduces a reply of the model, which is quoted as it is."""

REASONS: dict[str, tuple[str, str, str]] = {
    "ar": ("عمل البرنامج ولم يطبع شيئًا.", "لم ينتهِ البرنامج خلال {} ثانية.", "لم يتضمن رد النموذج برنامجًا."),
    "cs": (
        "Program proběhl, ale nic nevypsal.",
        "Program neskončil do {} sekund.",
        "Odpověď modelu neobsahovala žádný program.",
    ),
    "de": (
        "Das Programm lief, gab aber nichts aus.",
        "Das Programm endete nicht innerhalb von {} Sekunden.",
        "Die Antwort des Modells enthielt kein Programm.",
    ),
    "el": (
        "Το πρόγραμμα εκτελέστηκε αλλά δεν τύπωσε τίποτα.",
        "Το πρόγραμμα δεν τελείωσε μέσα σε {} δευτερόλεπτα.",
        "Η απάντηση του μοντέλου δεν περιείχε πρόγραμμα.",
    ),
    "es": (
        "El programa se ejecutó, pero no imprimió nada.",
        "El programa no terminó en {} segundos.",
        "La respuesta del modelo no contenía ningún programa.",
    ),
    "fa": (
        "برنامه اجرا شد ولی چیزی چاپ نکرد.",
        "برنامه در {} ثانیه به پایان نرسید.",
        "پاسخ مدل هیچ برنامه‌ای نداشت.",
    ),
    "fr": (
        "Le programme s'est exécuté mais n'a rien affiché.",
        "Le programme ne s'est pas terminé en {} secondes.",
        "La réponse du modèle ne contenait aucun programme.",
    ),
    "he": (
        "התוכנית רצה אך לא הדפיסה דבר.",
        "התוכנית לא הסתיימה בתוך {} שניות.",
        "תשובת המודל לא הכילה תוכנית.",
    ),
    "hi": (
        "प्रोग्राम चला, पर उसने कुछ नहीं छापा।",
        "प्रोग्राम {} सेकंड में समाप्त नहीं हुआ।",
        "मॉडल के उत्तर में कोई प्रोग्राम नहीं था।",
    ),
    "id": (
        "Program berjalan tetapi tidak mencetak apa pun.",
        "Program tidak selesai dalam {} detik.",
        "Jawaban model tidak berisi program.",
    ),
    "it": (
        "Il programma è stato eseguito ma non ha stampato nulla.",
        "Il programma non è terminato entro {} secondi.",
        "La risposta del modello non conteneva alcun programma.",
    ),
    "ja": (
        "プログラムは実行されましたが、何も出力しませんでした。",
        "プログラムは{}秒以内に終了しませんでした。",
        "モデルの回答にプログラムが含まれていませんでした。",
    ),
    "ko": (
        "프로그램이 실행되었지만 아무것도 출력하지 않았습니다.",
        "프로그램이 {}초 안에 끝나지 않았습니다.",
        "모델의 답변에 프로그램이 없었습니다.",
    ),
    "nl": (
        "Het programma werd uitgevoerd maar drukte niets af.",
        "Het programma eindigde niet binnen {} seconden.",
        "Het antwoord van het model bevatte geen programma.",
    ),
    "pl": (
        "Program zadziałał, ale nic nie wypisał.",
        "Program nie zakończył się w ciągu {} sekund.",
        "Odpowiedź modelu nie zawierała programu.",
    ),
    "pt": (
        "O programa foi executado, mas não imprimiu nada.",
        "O programa não terminou em {} segundos.",
        "A resposta do modelo não continha nenhum programa.",
    ),
    "ro": (
        "Programul a rulat, dar nu a afișat nimic.",
        "Programul nu s-a încheiat în {} secunde.",
        "Răspunsul modelului nu conținea niciun program.",
    ),
    "ru": (
        "Программа выполнилась, но ничего не вывела.",
        "Программа не завершилась за {} секунд.",
        "Ответ модели не содержал программы.",
    ),
    "sv": (
        "Programmet kördes men skrev inte ut något.",
        "Programmet avslutades inte inom {} sekunder.",
        "Modellens svar innehöll inget program.",
    ),
    "th": (
        "โปรแกรมทำงานแล้วแต่ไม่ได้พิมพ์อะไรออกมา",
        "โปรแกรมไม่สิ้นสุดภายใน {} วินาที",
        "คำตอบของโมเดลไม่มีโปรแกรม",
    ),
    "tr": (
        "Program çalıştı ama hiçbir şey yazdırmadı.",
        "Program {} saniye içinde bitmedi.",
        "Modelin yanıtında program yoktu.",
    ),
    "uk": (
        "Програма виконалася, але нічого не вивела.",
        "Програма не завершилася за {} секунд.",
        "Відповідь моделі не містила програми.",
    ),
    "vi": (
        "Chương trình đã chạy nhưng không in ra gì.",
        "Chương trình không kết thúc trong {} giây.",
        "Câu trả lời của mô hình không có chương trình nào.",
    ),
    "zh": ("程序运行了,但没有输出任何内容。", "程序没有在 {} 秒内结束。", "模型的回答中没有程序。"),
}
"""A program that printed nothing, one that took too long, and a reply without a program; by the codes of `LANGUAGES`."""


def translate_reason(reason: str, language: str | None) -> str:
    """Return a reason in a language, if it is one of this library's; messages of programs and tests stay as they are."""
    translations = REASONS.get(language or "en")
    if translations is None:
        return reason
    for pattern, translation in zip(_PATTERNS, translations, strict=True):
        if match := pattern.fullmatch(reason):
            values = [value or "" for value in match.groups()]
            quoted = "".join(value for value in values if value.startswith(_QUOTE)).removeprefix(_QUOTE)
            return f"{translation.format(*values)} {quoted}".rstrip()
    return reason
