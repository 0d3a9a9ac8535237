"""Messages of the library itself to users, in each supported language."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MESSAGES", "Messages", "messages_in"]


class Messages(NamedTuple):
    """The messages in one language. Names in braces are filled in.

    Attributes:
        unanswered: No program worked; `{attempts}` were made, the last one failed for `{reason}`, which is in
            English.
        program_output: The program's own `{output}`, as the answer may be unfaithful to it.
        truncated: The model's answer was cut off.
        not_phrased: The output is not phrased as an answer.
    """

    unanswered: str
    program_output: str
    truncated: str
    not_phrased: str


MESSAGES = {
    "ar": Messages(
        "لم أتمكن من الإجابة عن هذا. عدد المحاولات: {attempts}. لم يعمل أي برنامج: {reason}",
        "ما طبعه البرنامج نفسه: {output}",
        "انقطعت إجابة النموذج هنا",
        "لم يُصَغ الناتج بالكلمات.",
    ),
    "cs": Messages(
        "Na toto nedokážu odpovědět. Počet pokusů: {attempts}. Žádný program nefungoval: {reason}",
        "Slova samotného programu: {output}",
        "odpověď modelu zde byla přerušena",
        "Výstup není převyprávěn slovy.",
    ),
    "de": Messages(
        "Das konnte ich nicht beantworten. Versuche: {attempts}. Kein Programm hat funktioniert: {reason}",
        "Die Worte des Programms selbst: {output}",
        "die Antwort des Modells wurde hier abgeschnitten",
        "Die Ausgabe wird nicht in Worten erzählt.",
    ),
    "el": Messages(
        "Δεν μπόρεσα να απαντήσω. Προσπάθειες: {attempts}. Κανένα πρόγραμμα δεν λειτούργησε: {reason}",
        "Τα λόγια του ίδιου του προγράμματος: {output}",
        "η απάντηση του μοντέλου κόπηκε εδώ",
        "Η έξοδος δεν διατυπώνεται με λόγια.",
    ),
    "en": Messages(
        "I could not answer this. Attempts: {attempts}. There was no program that worked: {reason}",
        "The program's own words: {output}",
        "the model's answer was cut off here",
        "The output is not told in words.",
    ),
    "es": Messages(
        "No he podido responder a esto. Intentos: {attempts}. Ningún programa funcionó: {reason}",
        "Lo que imprimió el propio programa: {output}",
        "la respuesta del modelo se cortó aquí",
        "La salida no se cuenta con palabras.",
    ),
    "fa": Messages(
        "نتوانستم به این پاسخ دهم. تعداد تلاش‌ها: {attempts}. هیچ برنامه‌ای کار نکرد: {reason}",
        "آنچه خود برنامه چاپ کرد: {output}",
        "پاسخ مدل در اینجا قطع شد",
        "خروجی با کلمات بیان نشده است.",
    ),
    "fr": Messages(
        "Je n'ai pas pu répondre. Tentatives : {attempts}. Aucun programme n'a fonctionné : {reason}",
        "Ce que le programme a lui-même affiché : {output}",
        "la réponse du modèle a été coupée ici",
        "La sortie n'est pas racontée avec des mots.",
    ),
    "he": Messages(
        "לא הצלחתי לענות על זה. ניסיונות: {attempts}. אף תוכנית לא עבדה: {reason}",
        "מה שהתוכנית עצמה הדפיסה: {output}",
        "תשובת המודל נקטעה כאן",
        "הפלט אינו מסופר במילים.",
    ),
    "hi": Messages(
        "मैं इसका उत्तर नहीं दे सका। प्रयास: {attempts}। कोई प्रोग्राम काम नहीं कर पाया: {reason}",
        "प्रोग्राम ने स्वयं यह छापा: {output}",
        "मॉडल का उत्तर यहाँ कट गया",
        "आउटपुट शब्दों में नहीं बताया गया है।",
    ),
    "id": Messages(
        "Saya tidak dapat menjawab ini. Percobaan: {attempts}. Tidak ada program yang berhasil: {reason}",
        "Kata-kata program itu sendiri: {output}",
        "jawaban model terpotong di sini",
        "Keluaran tidak diceritakan dengan kata-kata.",
    ),
    "it": Messages(
        "Non sono riuscito a rispondere. Tentativi: {attempts}. Nessun programma ha funzionato: {reason}",
        "Le parole del programma stesso: {output}",
        "la risposta del modello si è interrotta qui",
        "L'output non è raccontato a parole.",
    ),
    "ja": Messages(
        "この質問には答えられませんでした。試行回数: {attempts}。動作するプログラムがありませんでした: {reason}",
        "プログラム自身の出力: {output}",
        "モデルの回答はここで途切れました",
        "出力は言葉では説明されていません。",
    ),
    "ko": Messages(
        "이 질문에 답하지 못했습니다. 시도 횟수: {attempts}. 작동한 프로그램이 없었습니다: {reason}",
        "프로그램이 직접 출력한 내용: {output}",
        "모델의 답변이 여기서 끊겼습니다",
        "출력은 말로 설명되지 않았습니다.",
    ),
    "nl": Messages(
        "Dit kon ik niet beantwoorden. Pogingen: {attempts}. Geen enkel programma werkte: {reason}",
        "De woorden van het programma zelf: {output}",
        "het antwoord van het model is hier afgebroken",
        "De uitvoer wordt niet in woorden verteld.",
    ),
    "pl": Messages(
        "Nie udało mi się na to odpowiedzieć. Liczba prób: {attempts}. Żaden program nie zadziałał: {reason}",
        "Słowa samego programu: {output}",
        "odpowiedź modelu została tu ucięta",
        "Wynik nie jest opowiedziany słowami.",
    ),
    "pt": Messages(
        "Não consegui responder a isto. Tentativas: {attempts}. Nenhum programa funcionou: {reason}",
        "O que o próprio programa imprimiu: {output}",
        "a resposta do modelo foi cortada aqui",
        "A saída não é contada por palavras.",
    ),
    "ro": Messages(
        "Nu am putut răspunde. Încercări: {attempts}. Niciun program nu a funcționat: {reason}",
        "Cuvintele programului însuși: {output}",
        "răspunsul modelului a fost întrerupt aici",
        "Rezultatul nu este povestit în cuvinte.",
    ),
    "ru": Messages(
        "Я не смог ответить на это. Попыток: {attempts}. Ни одна программа не сработала: {reason}",
        "Слова самой программы: {output}",
        "ответ модели здесь обрывается",
        "Вывод не пересказан словами.",
    ),
    "sv": Messages(
        "Jag kunde inte svara på detta. Försök: {attempts}. Inget program fungerade: {reason}",
        "Programmets egna ord: {output}",
        "modellens svar klipptes av här",
        "Utdata återges inte med ord.",
    ),
    "th": Messages(
        "ฉันตอบคำถามนี้ไม่ได้ จำนวนครั้งที่ลอง: {attempts} ไม่มีโปรแกรมใดทำงานได้: {reason}",
        "สิ่งที่โปรแกรมพิมพ์ออกมาเอง: {output}",
        "คำตอบของโมเดลถูกตัดตรงนี้",
        "ผลลัพธ์ไม่ได้ถูกเล่าเป็นคำพูด",
    ),
    "tr": Messages(
        "Bunu yanıtlayamadım. Deneme sayısı: {attempts}. Hiçbir program çalışmadı: {reason}",
        "Programın kendi sözleri: {output}",
        "modelin yanıtı burada kesildi",
        "Çıktı sözcüklerle anlatılmadı.",
    ),
    "uk": Messages(
        "Я не зміг відповісти на це. Спроб: {attempts}. Жодна програма не спрацювала: {reason}",
        "Слова самої програми: {output}",
        "відповідь моделі тут обривається",
        "Вивід не переказано словами.",
    ),
    "vi": Messages(
        "Tôi không thể trả lời câu này. Số lần thử: {attempts}. Không có chương trình nào chạy được: {reason}",
        "Lời của chính chương trình: {output}",
        "câu trả lời của mô hình bị cắt ở đây",
        "Kết quả không được kể bằng lời.",
    ),
    "zh": Messages(
        "我无法回答这个问题。尝试次数:{attempts}。没有可用的程序:{reason}",
        "程序自己的输出:{output}",
        "模型的回答在此被截断",
        "输出没有用文字叙述。",
    ),
}
"""By the codes of `LANGUAGES`."""


def messages_in(language: str | None) -> Messages:
    """Return the messages in a language, or in English if there are none."""
    return MESSAGES.get(language or "en", MESSAGES["en"])
