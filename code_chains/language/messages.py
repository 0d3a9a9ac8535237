"""Messages of the library itself to users, in each supported language."""

from __future__ import annotations

from typing import NamedTuple


class Messages(NamedTuple):
    """The messages in one language. Names in braces are filled in.

    Attributes:
        unanswered: No program worked; `{attempts}` were made, the last one failed for `{reason}`, which is in
            English.
        program_output: The program's own `{output}`, as the answer may be unfaithful to it.
        truncated: The model's answer was cut off.
        not_phrased: The output is shown as it is, instead of an answer that a model phrased.
        needs: `{needs}` were not given, in the words of the program; the user may state them.
    """

    unanswered: str
    program_output: str
    truncated: str
    not_phrased: str
    needs: str


MESSAGES = {
    "ar": Messages(
        "لم أتمكن من الإجابة عن هذا. عدد المحاولات: {attempts}. لم يعمل أي برنامج: {reason}",
        "مخرجات البرنامج: {output}",
        "انقطعت إجابة النموذج هنا",
        "هذه هي المخرجات الأولية للبرنامج.",
        "للإجابة عن هذا أحتاج إلى: {needs}",
    ),
    "cs": Messages(
        "Na toto nedokážu odpovědět. Počet pokusů: {attempts}. Žádný program nefungoval: {reason}",
        "Výstup programu: {output}",
        "odpověď modelu zde byla přerušena",
        "Toto je nezpracovaný výstup programu.",
        "Abych na to mohl odpovědět, potřebuji: {needs}",
    ),
    "de": Messages(
        "Das konnte ich nicht beantworten. Versuche: {attempts}. Kein Programm hat funktioniert: {reason}",
        "Ausgabe des Programms: {output}",
        "die Antwort des Modells wurde hier abgeschnitten",
        "Dies ist die unbearbeitete Ausgabe des Programms.",
        "Um das zu beantworten, brauche ich noch: {needs}",
    ),
    "el": Messages(
        "Δεν μπόρεσα να απαντήσω. Προσπάθειες: {attempts}. Κανένα πρόγραμμα δεν λειτούργησε: {reason}",
        "Έξοδος του προγράμματος: {output}",
        "η απάντηση του μοντέλου κόπηκε εδώ",
        "Αυτή είναι η ακατέργαστη έξοδος του προγράμματος.",
        "Για να απαντήσω, χρειάζομαι: {needs}",
    ),
    "en": Messages(
        "I could not answer this. Attempts: {attempts}. No program worked: {reason}",
        "Program output: {output}",
        "the model's answer was cut off here",
        "This is the raw output of the program.",
        "To answer this I still need: {needs}",
    ),
    "es": Messages(
        "No he podido responder a esto. Intentos: {attempts}. Ningún programa funcionó: {reason}",
        "Salida del programa: {output}",
        "la respuesta del modelo se cortó aquí",
        "Esta es la salida del programa sin elaborar.",
        "Para responder a esto todavía necesito: {needs}",
    ),
    "fa": Messages(
        "نتوانستم به این پاسخ دهم. تعداد تلاش‌ها: {attempts}. هیچ برنامه‌ای کار نکرد: {reason}",
        "خروجی برنامه: {output}",
        "پاسخ مدل در اینجا قطع شد",
        "این خروجی خام برنامه است.",
        "برای پاسخ به این، به این نیاز دارم: {needs}",
    ),
    "fr": Messages(
        "Je n'ai pas pu répondre. Tentatives : {attempts}. Aucun programme n'a fonctionné : {reason}",
        "Sortie du programme : {output}",
        "la réponse du modèle a été coupée ici",
        "Ceci est la sortie brute du programme.",
        "Pour répondre, il me manque : {needs}",
    ),
    "he": Messages(
        "לא הצלחתי לענות על זה. ניסיונות: {attempts}. אף תוכנית לא עבדה: {reason}",
        "פלט התוכנית: {output}",
        "תשובת המודל נקטעה כאן",
        "זהו הפלט הגולמי של התוכנית.",
        "כדי לענות על כך אני צריך עוד: {needs}",
    ),
    "hi": Messages(
        "मैं इसका उत्तर नहीं दे सका। प्रयास: {attempts}। कोई प्रोग्राम काम नहीं कर पाया: {reason}",
        "प्रोग्राम का आउटपुट: {output}",
        "मॉडल का उत्तर यहाँ कट गया",
        "यह प्रोग्राम का मूल आउटपुट है।",
        "इसका उत्तर देने के लिए मुझे अभी चाहिए: {needs}",
    ),
    "id": Messages(
        "Saya tidak dapat menjawab ini. Percobaan: {attempts}. Tidak ada program yang berhasil: {reason}",
        "Keluaran program: {output}",
        "jawaban model terpotong di sini",
        "Ini adalah keluaran mentah program.",
        "Untuk menjawab ini saya masih perlu: {needs}",
    ),
    "it": Messages(
        "Non sono riuscito a rispondere. Tentativi: {attempts}. Nessun programma ha funzionato: {reason}",
        "Output del programma: {output}",
        "la risposta del modello si è interrotta qui",
        "Questo è l'output grezzo del programma.",
        "Per rispondere mi serve ancora: {needs}",
    ),
    "ja": Messages(
        "この質問には答えられませんでした。試行回数: {attempts}。動作するプログラムがありませんでした: {reason}",
        "プログラムの出力: {output}",
        "モデルの回答はここで途切れました",
        "これはプログラムの出力そのままです。",
        "これに答えるには、次の情報が必要です: {needs}",
    ),
    "ko": Messages(
        "이 질문에 답하지 못했습니다. 시도 횟수: {attempts}. 작동한 프로그램이 없었습니다: {reason}",
        "프로그램 출력: {output}",
        "모델의 답변이 여기서 끊겼습니다",
        "이것은 프로그램의 출력 그대로입니다.",
        "이에 답하려면 다음이 더 필요합니다: {needs}",
    ),
    "nl": Messages(
        "Dit kon ik niet beantwoorden. Pogingen: {attempts}. Geen enkel programma werkte: {reason}",
        "Uitvoer van het programma: {output}",
        "het antwoord van het model is hier afgebroken",
        "Dit is de ruwe uitvoer van het programma.",
        "Om dit te beantwoorden heb ik nog nodig: {needs}",
    ),
    "pl": Messages(
        "Nie udało mi się na to odpowiedzieć. Liczba prób: {attempts}. Żaden program nie zadziałał: {reason}",
        "Wynik programu: {output}",
        "odpowiedź modelu została tu ucięta",
        "To jest nieprzetworzony wynik programu.",
        "Aby na to odpowiedzieć, potrzebuję jeszcze: {needs}",
    ),
    "pt": Messages(
        "Não consegui responder a isto. Tentativas: {attempts}. Nenhum programa funcionou: {reason}",
        "Saída do programa: {output}",
        "a resposta do modelo foi cortada aqui",
        "Esta é a saída bruta do programa.",
        "Para responder a isto ainda preciso de: {needs}",
    ),
    "ro": Messages(
        "Nu am putut răspunde. Încercări: {attempts}. Niciun program nu a funcționat: {reason}",
        "Rezultatul programului: {output}",
        "răspunsul modelului a fost întrerupt aici",
        "Acesta este rezultatul brut al programului.",
        "Pentru a răspunde mai am nevoie de: {needs}",
    ),
    "ru": Messages(
        "Я не смог ответить на это. Попыток: {attempts}. Ни одна программа не сработала: {reason}",
        "Вывод программы: {output}",
        "ответ модели здесь обрывается",
        "Это необработанный вывод программы.",
        "Чтобы ответить на это, мне ещё нужно: {needs}",
    ),
    "sv": Messages(
        "Jag kunde inte svara på detta. Försök: {attempts}. Inget program fungerade: {reason}",
        "Programmets utdata: {output}",
        "modellens svar klipptes av här",
        "Detta är programmets råa utdata.",
        "För att svara på detta behöver jag också: {needs}",
    ),
    "th": Messages(
        "ฉันตอบคำถามนี้ไม่ได้ จำนวนครั้งที่ลอง: {attempts} ไม่มีโปรแกรมใดทำงานได้: {reason}",
        "ผลลัพธ์ของโปรแกรม: {output}",
        "คำตอบของโมเดลถูกตัดตรงนี้",
        "นี่คือผลลัพธ์ดิบของโปรแกรม",
        "เพื่อตอบคำถามนี้ ฉันยังต้องการ: {needs}",
    ),
    "tr": Messages(
        "Bunu yanıtlayamadım. Deneme sayısı: {attempts}. Hiçbir program çalışmadı: {reason}",
        "Programın çıktısı: {output}",
        "modelin yanıtı burada kesildi",
        "Bu, programın ham çıktısıdır.",
        "Bunu yanıtlamak için şunlara da ihtiyacım var: {needs}",
    ),
    "uk": Messages(
        "Я не зміг відповісти на це. Спроб: {attempts}. Жодна програма не спрацювала: {reason}",
        "Вивід програми: {output}",
        "відповідь моделі тут обривається",
        "Це необроблений вивід програми.",
        "Щоб відповісти на це, мені ще потрібно: {needs}",
    ),
    "vi": Messages(
        "Tôi không thể trả lời câu này. Số lần thử: {attempts}. Không có chương trình nào chạy được: {reason}",
        "Kết quả của chương trình: {output}",
        "câu trả lời của mô hình bị cắt ở đây",
        "Đây là kết quả thô của chương trình.",
        "Để trả lời câu này, tôi còn cần: {needs}",
    ),
    "zh": Messages(
        "我无法回答这个问题。尝试次数:{attempts}。没有可用的程序:{reason}",
        "程序的输出:{output}",
        "模型的回答在此被截断",
        "这是程序的原始输出。",
        "要回答这个问题，我还需要：{needs}",
    ),
}
"""By the codes of `LANGUAGES`."""


def messages_in(language: str | None) -> Messages:
    """Return the messages in a language, or in English if there are none."""
    return MESSAGES.get(language or "en", MESSAGES["en"])
