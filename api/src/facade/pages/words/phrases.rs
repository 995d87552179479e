//! The phrases of the checkout: a row for each phrase, a column for each language in the order of [`LANGUAGES`](super::LANGUAGES).

use super::Words;

/// Generates a method for each row. A row with missing columns does not compile; an unused row is dead code.
macro_rules! table {
    ($($name:ident [$($text:literal)+])+) => {
        impl Words {
            $(pub(crate) const fn $name(self) -> &'static str {
                const ROW: [&str; 7] = [$($text),+];
                ROW[self.0 as usize]
            })+
        }
        /// Every row, for the tests.
        #[cfg(test)]
        pub(super) const ROWS: &[(&str, [&str; 7])] = &[$((stringify!($name), [$($text),+])),+];
    };
}

table! {
    payment ["Payment" "Pago" "Zahlung" "Paiement" "Pagamento" "결제" "دفعة"]
    amount ["Amount" "Importe" "Betrag" "Montant" "Valor" "금액" "المبلغ"]
    about ["about" "aprox." "ca." "env." "aprox." "약" "حوالي"]
    rate_of ["rate of" "tipo de cambio del" "Kurs vom" "taux du" "cotação de" "환율 기준" "سعر الصرف في"]
    recipient ["Recipient" "Destinatario" "Empfänger" "Destinataire" "Destinatário" "받는 계정" "المستلم"]
    no_network_fee ["No network fee" "Sin comisión de red" "Keine Netzwerkgebühr" "Aucuns frais de réseau"
        "Sem taxa de rede" "네트워크 수수료 없음" "بدون رسوم للشبكة"]
    pay_before ["Pay before" "Pague antes de" "Zahlbar bis" "Payez avant le" "Pague antes de" "결제 기한" "ادفع قبل"]
    ways ["Choose how to pay" "Elija cómo pagar" "Wählen Sie, wie Sie zahlen" "Choisissez comment payer"
        "Escolha como pagar" "결제 방법 선택" "اختر طريقة الدفع"]

    keychain ["Pay with Hive Keychain" "Pagar con Hive Keychain" "Mit Hive Keychain zahlen"
        "Payer avec Hive Keychain" "Pagar com Hive Keychain" "Hive Keychain으로 결제" "ادفع عبر Hive Keychain"]
    keychain_missing ["Hive Keychain was not found in this browser."
        "No se encontró Hive Keychain en este navegador." "Hive Keychain wurde in diesem Browser nicht gefunden."
        "Hive Keychain est introuvable dans ce navigateur." "O Hive Keychain não foi encontrado neste navegador."
        "이 브라우저에서 Hive Keychain을 찾을 수 없습니다." "لم يتم العثور على Hive Keychain في هذا المتصفح."]
    keychain_install ["Install Hive Keychain" "Instalar Hive Keychain" "Hive Keychain installieren"
        "Installer Hive Keychain" "Instalar o Hive Keychain" "Hive Keychain 설치" "تثبيت Hive Keychain"]
    your_account ["Your Hive account" "Su cuenta de Hive" "Ihr Hive-Konto" "Votre compte Hive" "Sua conta Hive"
        "내 Hive 계정" "حسابك على Hive"]
    need_account ["Please enter your account first." "Primero escriba su cuenta."
        "Bitte geben Sie zuerst Ihr Konto ein." "Saisissez d’abord votre compte." "Digite primeiro a sua conta."
        "먼저 계정을 입력하세요." "أدخل حسابك أولاً."]
    confirm_there ["Please confirm in Keychain." "Confirme en Keychain." "Bitte bestätigen Sie in Keychain."
        "Confirmez dans Keychain." "Confirme no Keychain." "Keychain에서 확인해 주세요." "يرجى التأكيد في Keychain."]
    sent ["Sent. Waiting for the ledger. Please do not pay again." "Enviado. Esperando a la red. No pague otra vez."
        "Gesendet. Die Bestätigung des Netzwerks steht aus. Bitte nicht noch einmal zahlen."
        "Envoyé. En attente du réseau. Ne payez pas une seconde fois."
        "Enviado. Aguardando a rede. Não pague de novo." "보냈습니다. 네트워크의 확인을 기다리고 있습니다. 다시 결제하지 마세요."
        "تم الإرسال. في انتظار الشبكة. لا تدفع مرة أخرى."]
    more_signatures ["Keychain waits for more signatures." "Keychain espera más firmas."
        "Keychain wartet auf weitere Unterschriften." "Keychain attend d’autres signatures."
        "O Keychain aguarda mais assinaturas." "Keychain이 추가 서명을 기다리고 있습니다." "ينتظر Keychain توقيعات إضافية."]
    nothing_sent ["Nothing was sent. You can try again." "No se envió nada. Puede intentarlo de nuevo."
        "Es wurde nichts gesendet. Sie können es noch einmal versuchen."
        "Rien n’a été envoyé. Vous pouvez réessayer." "Nada foi enviado. Você pode tentar de novo."
        "아무것도 보내지 않았습니다. 다시 시도할 수 있습니다." "لم يتم إرسال أي شيء. يمكنك المحاولة مرة أخرى."]
    not_confirmed ["Keychain did not confirm the payment, but it may have been sent. We are checking the ledger. Please do not pay again."
        "Keychain no confirmó el pago, pero puede haberse enviado. Estamos consultando la red. No pague otra vez."
        "Keychain hat die Zahlung nicht bestätigt, sie kann aber gesendet worden sein. Wir prüfen das Netzwerk. Bitte nicht noch einmal zahlen."
        "Keychain n’a pas confirmé le paiement, mais il a peut-être été envoyé. Nous vérifions sur le réseau. Ne payez pas une seconde fois."
        "O Keychain não confirmou o pagamento, mas ele pode ter sido enviado. Estamos verificando a rede. Não pague de novo."
        "Keychain이 결제를 확인하지 못했지만 전송되었을 수 있습니다. 네트워크를 확인하고 있습니다. 다시 결제하지 마세요."
        "لم يؤكد Keychain الدفعة، لكن ربما تم إرسالها. نتحقق من الشبكة الآن. لا تدفع مرة أخرى."]
    refused ["Keychain reports: {why}" "Keychain indica: {why}" "Keychain meldet: {why}" "Keychain indique : {why}"
        "O Keychain informa: {why}" "Keychain 메시지: {why}" "رسالة Keychain: {why}"]
    scan ["Scan with a Hive wallet" "Escanee con una billetera Hive" "Mit einer Hive-Wallet scannen"
        "Scannez avec un portefeuille Hive" "Escaneie com uma carteira Hive" "Hive 지갑으로 스캔" "امسح الرمز بمحفظة Hive"]
    qr_label ["QR code of this payment" "Código QR de este pago" "QR-Code dieser Zahlung" "QR code de ce paiement"
        "Código QR deste pagamento" "이 결제의 QR 코드" "رمز QR لهذه الدفعة"]
    open_wallet ["Open wallet" "Abrir la billetera" "Wallet öffnen" "Ouvrir le portefeuille" "Abrir a carteira"
        "지갑 열기" "فتح المحفظة"]
    no_wallet ["No wallet opened. Scan the code with another device, or choose another way to pay."
        "No se abrió ninguna billetera. Escanee el código con otro dispositivo o elija otra forma de pago."
        "Es hat sich keine Wallet geöffnet. Scannen Sie den Code mit einem anderen Gerät oder wählen Sie einen anderen Zahlungsweg."
        "Aucun portefeuille ne s’est ouvert. Scannez le code avec un autre appareil ou choisissez un autre moyen de paiement."
        "Nenhuma carteira foi aberta. Escaneie o código com outro aparelho ou escolha outra forma de pagamento."
        "열린 지갑이 없습니다. 다른 기기로 코드를 스캔하거나 다른 결제 방법을 선택하세요."
        "لم تُفتح أي محفظة. امسح الرمز بجهاز آخر أو اختر طريقة دفع أخرى."]
    hivesigner ["Pay with HiveSigner" "Pagar con HiveSigner" "Mit HiveSigner zahlen" "Payer avec HiveSigner"
        "Pagar com HiveSigner" "HiveSigner로 결제" "ادفع عبر HiveSigner"]
    manual ["Pay manually" "Pagar manualmente" "Manuell bezahlen" "Payer manuellement" "Pagar manualmente" "직접 송금하기"
        "ادفع يدويًا"]
    account ["Account" "Cuenta" "Konto" "Compte" "Conta" "계정" "الحساب"]
    memo ["Memo" "Memo" "Memo" "Mémo" "Memo" "메모" "المذكرة"]
    warn_currency ["Send exactly this amount, and only {currency}."
        "Envíe exactamente este importe, y solo {currency}." "Senden Sie genau diesen Betrag, und nur {currency}."
        "Envoyez exactement ce montant, et seulement en {currency}."
        "Envie exatamente este valor, e somente {currency}." "정확히 이 금액을 {currency}로만 보내세요."
        "أرسل هذا المبلغ بالضبط، وبعملة {currency} فقط."]
    warn_memo ["Copy the memo exactly. Without it, your payment cannot be matched."
        "Copie el memo exactamente. Sin él no se puede asignar su pago."
        "Übernehmen Sie das Memo genau. Ohne Memo kann Ihre Zahlung nicht zugeordnet werden."
        "Recopiez le mémo exactement. Sans lui, votre paiement ne peut pas être identifié."
        "Copie o memo exatamente. Sem ele, seu pagamento não pode ser identificado."
        "메모를 정확히 복사하세요. 메모가 없으면 결제를 확인할 수 없습니다." "انسخ المذكرة كما هي. من دونها لا يمكن التعرف على دفعتك."]
    warn_plain ["Do not encrypt the memo: it must not begin with #." "No cifre el memo: no debe empezar por #."
        "Verschlüsseln Sie das Memo nicht: Es darf nicht mit # beginnen."
        "Ne chiffrez pas le mémo : il ne doit pas commencer par #."
        "Não criptografe o memo: ele não pode começar com #." "메모를 암호화하지 마세요. #으로 시작하면 안 됩니다."
        "لا تشفّر المذكرة: يجب ألا تبدأ بالعلامة #."]
    copy ["Copy" "Copiar" "Kopieren" "Copier" "Copiar" "복사" "نسخ"]
    copied ["Copied" "Copiado" "Kopiert" "Copié" "Copiado" "복사됨" "تم النسخ"]
    program ["For developers: pay with x402" "Para desarrolladores: pagar con x402"
        "Für Entwickler: mit x402 zahlen" "Pour les développeurs : payer avec x402"
        "Para desenvolvedores: pagar com x402" "개발자용: x402로 결제" "للمطورين: الدفع عبر x402"]
    program_how ["A program gets the requirements from this address and pays them with a signed transaction."
        "Un programa obtiene los requisitos en esta dirección y los paga con una transacción firmada."
        "Ein Programm erhält unter dieser Adresse die Bedingungen und zahlt mit einer signierten Transaktion."
        "Un programme obtient les exigences à cette adresse et paie avec une transaction signée."
        "Um programa obtém os requisitos neste endereço e paga com uma transação assinada."
        "프로그램은 이 주소에서 요구 사항을 받아 서명한 거래로 결제합니다." "يحصل البرنامج على الشروط من هذا العنوان ويدفع بمعاملة موقّعة."]
    left ["{time} left" "Quedan {time}" "Noch {time}" "Encore {time}" "Restam {time}" "{time} 남음"
        "الوقت المتبقي {time}"]
    too_late ["This payment has expired." "Este pago ha caducado." "Diese Zahlung ist abgelaufen."
        "Ce paiement a expiré." "Este pagamento expirou." "이 결제는 만료되었습니다." "انتهت صلاحية هذه الدفعة."]
    cancel ["Cancel this payment" "Cancelar este pago" "Diese Zahlung abbrechen" "Annuler ce paiement"
        "Cancelar este pagamento" "이 결제 취소" "إلغاء هذه الدفعة"]
    cancel_sure ["Cancel this payment? Do not cancel if you have already sent it."
        "¿Cancelar este pago? No lo cancele si ya lo ha enviado."
        "Diese Zahlung abbrechen? Brechen Sie nicht ab, wenn Sie sie schon gesendet haben."
        "Annuler ce paiement ? N’annulez pas si vous l’avez déjà envoyé."
        "Cancelar este pagamento? Não cancele se você já o enviou." "이 결제를 취소할까요? 이미 보냈다면 취소하지 마세요."
        "هل تريد إلغاء هذه الدفعة؟ لا تُلغها إذا كنت قد أرسلتها بالفعل."]
    cancel_yes ["Yes, cancel it" "Sí, cancelarlo" "Ja, abbrechen" "Oui, l’annuler" "Sim, cancelar" "네, 취소합니다"
        "نعم، إلغاء"]
    cannot_cancel ["This payment can no longer be cancelled." "Este pago ya no se puede cancelar."
        "Diese Zahlung kann nicht mehr abgebrochen werden." "Ce paiement ne peut plus être annulé."
        "Este pagamento não pode mais ser cancelado." "이 결제는 더 이상 취소할 수 없습니다." "لم يعد من الممكن إلغاء هذه الدفعة."]
    connection_lost ["Connection lost. Reconnecting…" "Se perdió la conexión. Reconectando…"
        "Verbindung unterbrochen. Wird wiederhergestellt…" "Connexion perdue. Reconnexion en cours…"
        "Conexão perdida. Reconectando…" "연결이 끊겼습니다. 다시 연결하는 중…" "انقطع الاتصال. جارٍ إعادة الاتصال…"]

    progress ["Progress" "Progreso" "Fortschritt" "Progression" "Progresso" "진행 상황" "التقدم"]
    step_waiting ["Waiting" "En espera" "Wartet" "En attente" "Aguardando" "대기" "في الانتظار"]
    step_confirming ["Confirming" "Confirmando" "Wird bestätigt" "Confirmation" "Confirmando" "확인 중" "جارٍ التأكيد"]
    step_paid ["Paid" "Pagado" "Bezahlt" "Payé" "Pago" "결제됨" "مدفوعة"]

    waiting ["Waiting for your payment" "Esperando su pago" "Wir warten auf Ihre Zahlung"
        "En attente de votre paiement" "Aguardando seu pagamento" "결제를 기다리고 있습니다" "في انتظار دفعتك"]
    waiting_more ["This page updates automatically when your transfer arrives."
        "Esta página se actualiza automáticamente cuando llega su transferencia."
        "Diese Seite wird automatisch aktualisiert, sobald Ihre Überweisung eingeht."
        "Cette page s’actualise automatiquement à l’arrivée de votre virement."
        "Esta página é atualizada automaticamente quando sua transferência chega." "송금이 도착하면 이 페이지가 자동으로 바뀝니다."
        "تُحدَّث هذه الصفحة تلقائيًا عند وصول تحويلك."]
    wrong ["Wrong currency" "Moneda equivocada" "Falsche Währung" "Mauvaise devise" "Moeda errada" "잘못된 통화"
        "عملة غير صحيحة"]
    wrong_more ["You sent another currency. This payment needs {amount}. Contact {shop} for a refund of the other transfer."
        "Llegó una transferencia en otra moneda. Este pago requiere {amount}. Solicite la devolución de la otra a {shop}."
        "Sie haben in einer anderen Währung gezahlt. Diese Zahlung erfordert {amount}. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "Vous avez payé dans une autre devise. Ce paiement demande {amount}. Contactez {shop} pour être remboursé."
        "Você enviou outra moeda. Este pagamento exige {amount}. Peça o reembolso a {shop}."
        "다른 통화로 송금하셨습니다. 이 결제에는 {amount}이(가) 필요합니다. 환불은 {shop}에 문의하세요."
        "لقد أرسلت عملة أخرى. تتطلب هذه الدفعة {amount}. تواصل مع {shop} لاسترداد التحويل الآخر."]
    part ["Part of the amount has arrived" "Llegó una parte del importe" "Ein Teil des Betrags ist eingegangen"
        "Une partie du montant est arrivée" "Parte do valor chegou" "금액의 일부가 도착했습니다" "وصل جزء من المبلغ"]
    part_more ["{paid} of {amount} received. Please send {rest} more."
        "Recibido {paid} de {amount}. Envíe {rest} más."
        "{paid} von {amount} erhalten. Bitte senden Sie noch {rest}."
        "{paid} sur {amount} reçus. Envoyez encore {rest}." "Recebidos {paid} de {amount}. Envie mais {rest}."
        "{amount} 중 {paid}을(를) 받았습니다. {rest}을(를) 더 보내 주세요." "تم استلام {paid} من {amount}. أرسل {rest} إضافية."]
    seen ["Payment received" "Pago recibido" "Zahlung eingegangen" "Paiement reçu" "Pagamento recebido" "결제를 받았습니다"
        "تم استلام الدفعة"]
    seen_more ["Confirming, usually under 10 seconds. Please do not pay again."
        "Confirmando, normalmente en menos de 10 segundos. No pague otra vez."
        "Wird bestätigt, meist in weniger als 10 Sekunden. Bitte nicht noch einmal zahlen."
        "Confirmation en cours, généralement en moins de 10 secondes. Ne payez pas une seconde fois."
        "Confirmando, normalmente em menos de 10 segundos. Não pague de novo."
        "확인 중이며 보통 10초 이내에 끝납니다. 다시 결제하지 마세요." "جارٍ التأكيد، وعادةً ما يستغرق أقل من 10 ثوانٍ. لا تدفع مرة أخرى."]
    checking ["Time is up" "Se acabó el tiempo" "Die Zeit ist abgelaufen" "Le temps est écoulé" "O tempo acabou"
        "시간이 지났습니다" "انتهى الوقت"]
    checking_more ["Checking for a transfer that arrived in time. Please do not pay now."
        "Comprobamos si llegó una transferencia a tiempo. No pague ahora."
        "Wir prüfen, ob eine Überweisung rechtzeitig eingegangen ist. Bitte zahlen Sie jetzt nicht."
        "Nous vérifions si un virement est arrivé à temps. Ne payez pas maintenant."
        "Verificamos se uma transferência chegou a tempo. Não pague agora."
        "제때 도착한 송금이 있는지 확인하고 있습니다. 지금은 결제하지 마세요." "نتحقق من وصول تحويل في الوقت المحدد. لا تدفع الآن."]
    processing ["Payment submitted" "Pago enviado" "Zahlung übermittelt" "Paiement transmis" "Pagamento enviado"
        "결제를 제출했습니다" "تم إرسال الدفعة"]
    processing_more ["Your signed payment was submitted and is being confirmed. Please do not pay again."
        "Su pago firmado se envió y se está confirmando. No pague otra vez."
        "Ihre signierte Zahlung wurde übermittelt und wird bestätigt. Bitte nicht noch einmal zahlen."
        "Votre paiement signé a été transmis et est en cours de confirmation. Ne payez pas une seconde fois."
        "Seu pagamento assinado foi enviado e está sendo confirmado. Não pague de novo."
        "서명된 결제가 제출되어 확인 중입니다. 다시 결제하지 마세요." "تم إرسال دفعتك الموقّعة وهي قيد التأكيد. لا تدفع مرة أخرى."]
    paid ["Paid" "Pagado" "Bezahlt" "Payé" "Pago" "결제 완료" "تم الدفع"]
    paid_more ["Thank you. Your payment is final." "Gracias. Su pago es definitivo."
        "Vielen Dank. Ihre Zahlung ist endgültig." "Merci. Votre paiement est définitif."
        "Obrigado. Seu pagamento é definitivo." "감사합니다. 결제가 확정되었습니다." "شكرًا لك. دفعتك نهائية."]
    overpaid_more ["Thank you. You sent {over} too much. Contact {shop} for a refund of that amount."
        "Gracias. Envió {over} de más. Solicite la devolución a {shop}."
        "Vielen Dank. Sie haben {over} zu viel gesendet. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "Merci. Vous avez envoyé {over} de trop. Contactez {shop} pour être remboursé."
        "Obrigado. Você enviou {over} a mais. Peça o reembolso a {shop}."
        "감사합니다. {over}을(를) 더 보내셨습니다. 환불은 {shop}에 문의하세요."
        "شكرًا لك. لقد أرسلت {over} أكثر من المطلوب. تواصل مع {shop} لاسترداد هذا المبلغ."]
    cancelling ["Cancelling…" "Cancelando…" "Wird abgebrochen…" "Annulation en cours…" "Cancelando o pagamento…"
        "취소하는 중입니다…" "جارٍ الإلغاء…"]
    cancelling_more ["We are checking that no payment is on its way. Please do not pay now."
        "Comprobamos que no haya ningún pago en camino. No pague ahora."
        "Wir prüfen, ob noch eine Zahlung unterwegs ist. Bitte zahlen Sie jetzt nicht."
        "Nous vérifions qu’aucun paiement n’est en route. Ne payez pas maintenant."
        "Estamos verificando se não há um pagamento a caminho. Não pague agora."
        "진행 중인 결제가 없는지 확인하고 있습니다. 지금은 결제하지 마세요." "نتحقق من عدم وجود دفعة في الطريق. لا تدفع الآن."]
    cancelled ["Cancelled" "Cancelado" "Abgebrochen" "Annulé" "Cancelado" "취소됨" "ملغاة"]
    cancelled_more ["This payment was cancelled. Please do not pay it." "Este pago se canceló. No lo pague."
        "Diese Zahlung wurde abgebrochen. Bitte zahlen Sie sie nicht." "Ce paiement a été annulé. Ne le payez pas."
        "Este pagamento foi cancelado. Não o pague." "이 결제는 취소되었습니다. 결제하지 마세요." "تم إلغاء هذه الدفعة. لا تدفعها."]
    shop_cancelled_more ["{shop} cancelled this payment. Please do not pay it."
        "{shop} canceló este pago. No lo pague." "{shop} hat diese Zahlung abgebrochen. Bitte zahlen Sie sie nicht."
        "{shop} a annulé ce paiement. Ne le payez pas." "{shop} cancelou este pagamento. Não o pague."
        "{shop}에서 이 결제를 취소했습니다. 결제하지 마세요." "ألغى {shop} هذه الدفعة. لا تدفعها."]
    expired ["Expired" "Caducado" "Abgelaufen" "Expiré" "Expirado" "만료됨" "منتهية الصلاحية"]
    expired_more ["This payment has expired. Please do not pay it. Contact {shop} for a new one."
        "Este pago ha caducado. No lo pague. Solicite uno nuevo a {shop}."
        "Diese Zahlung ist abgelaufen. Bitte zahlen Sie sie nicht. Wenden Sie sich für eine neue an {shop}."
        "Ce paiement a expiré. Ne le payez pas. Demandez-en un nouveau à {shop}."
        "Este pagamento expirou. Não o pague. Peça um novo a {shop}." "이 결제는 만료되었습니다. 결제하지 말고 {shop}에 새 결제를 요청하세요."
        "انتهت صلاحية هذه الدفعة. لا تدفعها. تواصل مع {shop} للحصول على دفعة جديدة."]
    expired_restart_more ["This payment has expired. Please do not pay it. You can start again with the same amount."
        "Este pago ha caducado. No lo pague. Puede empezar de nuevo con el mismo importe."
        "Diese Zahlung ist abgelaufen. Bitte zahlen Sie sie nicht. Sie können mit demselben Betrag neu beginnen."
        "Ce paiement a expiré. Ne le payez pas. Vous pouvez recommencer avec le même montant."
        "Este pagamento expirou. Não o pague. Você pode recomeçar com o mesmo valor."
        "이 결제는 만료되었습니다. 결제하지 마세요. 같은 금액으로 다시 시작할 수 있습니다."
        "انتهت صلاحية هذه الدفعة. لا تدفعها. يمكنك البدء من جديد بالمبلغ نفسه."]
    restart ["Start again" "Empezar de nuevo" "Neu beginnen" "Recommencer" "Recomeçar" "다시 시작" "البدء من جديد"]
    cannot_restart ["This payment cannot be started again." "Este pago no se puede empezar de nuevo."
        "Diese Zahlung kann nicht neu begonnen werden." "Ce paiement ne peut pas être recommencé."
        "Este pagamento não pode ser recomeçado." "이 결제는 다시 시작할 수 없습니다." "لا يمكن بدء هذه الدفعة من جديد."]
    expired_part_more ["This payment expired after {paid} of {amount} had arrived. Contact {shop} for a refund."
        "Este pago caducó cuando habían llegado {paid} de {amount}. Solicite la devolución a {shop}."
        "Bei Ablauf dieser Zahlung waren {paid} von {amount} eingegangen. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "Ce paiement a expiré alors que {paid} sur {amount} étaient arrivés. Contactez {shop} pour être remboursé."
        "Este pagamento expirou depois que {paid} de {amount} chegaram. Peça o reembolso a {shop}."
        "{amount} 중 {paid}만 도착한 상태에서 이 결제가 만료되었습니다. 환불은 {shop}에 문의하세요."
        "انتهت صلاحية هذه الدفعة بعد وصول {paid} من {amount}. تواصل مع {shop} لاسترداد المبلغ."]
    failed ["Payment failed" "El pago falló" "Zahlung fehlgeschlagen" "Le paiement a échoué" "O pagamento falhou"
        "결제 실패" "فشلت الدفعة"]
    failed_more ["The signed payment expired before the ledger included it. No money was moved."
        "El pago firmado caducó antes de que la red lo incluyera. No se movió dinero."
        "Die signierte Zahlung ist abgelaufen, bevor das Netzwerk sie aufgenommen hat. Es wurde kein Geld bewegt."
        "Le paiement signé a expiré avant d’être inclus par le réseau. Aucun argent n’a été déplacé."
        "O pagamento assinado expirou antes que a rede o incluísse. Nenhum dinheiro foi movimentado."
        "서명된 결제가 네트워크에 포함되기 전에 만료되었습니다. 돈은 이동하지 않았습니다."
        "انتهت صلاحية الدفعة الموقّعة قبل أن تُدرجها الشبكة. لم يتم نقل أي أموال."]
    late_more ["{late} arrived too late. Contact {shop} for a refund."
        "{late} llegó demasiado tarde. Solicite la devolución a {shop}."
        "{late} kam zu spät an. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "{late} est arrivé trop tard. Contactez {shop} pour être remboursé."
        "{late} chegou tarde demais. Peça o reembolso a {shop}." "{late}이(가) 너무 늦게 도착했습니다. 환불은 {shop}에 문의하세요."
        "وصل {late} متأخرًا جدًا. تواصل مع {shop} لاسترداد المبلغ."]

    receipt ["Receipt" "Recibo" "Beleg" "Reçu" "Recibo" "영수증" "إيصال"]
    shop ["Shop" "Tienda" "Shop" "Boutique" "Loja" "상점" "المتجر"]
    received ["Received" "Recibido" "Erhalten" "Reçu" "Recebido" "받은 금액" "المستلَم"]
    paid_by ["Paid by" "Pagado por" "Bezahlt von" "Payé par" "Pago por" "보낸 계정" "دفع بواسطة"]
    paid_at ["Paid at" "Pagado el" "Bezahlt am" "Payé le" "Pago em" "결제 시각" "وقت الدفع"]
    purpose ["For" "Concepto" "Verwendungszweck" "Objet" "Referente a" "내용" "مقابل"]
    transaction ["Transaction" "Transacción" "Transaktion" "Transaction" "Transação" "거래" "المعاملة"]
    payment_id ["Payment ID" "ID del pago" "Zahlungs-ID" "ID du paiement" "ID do pagamento" "결제 ID" "معرّف الدفعة"]
    look_up ["View transaction" "Ver la transacción" "Transaktion ansehen" "Voir la transaction" "Ver a transação"
        "거래 보기" "عرض المعاملة"]
    print ["Print receipt" "Imprimir recibo" "Beleg drucken" "Imprimer le reçu" "Imprimir recibo" "영수증 인쇄"
        "طباعة الإيصال"]
    return_to ["Return to {shop}" "Volver a {shop}" "Zurück zu {shop}" "Retourner chez {shop}" "Voltar para {shop}"
        "{shop}(으)로 돌아가기" "العودة إلى {shop}"]
    going ["You will be redirected to {host} in {seconds} seconds."
        "Será redirigido a {host} en {seconds} segundos."
        "Sie werden in {seconds} Sekunden zu {host} weitergeleitet."
        "Vous serez redirigé vers {host} dans {seconds} secondes."
        "Você será redirecionado para {host} em {seconds} segundos." "{seconds}초 후에 {host}(으)로 이동합니다."
        "ستتم إعادة توجيهك إلى {host} خلال {seconds} ثوانٍ."]
    stay ["Stay here" "Quedarse aquí" "Hier bleiben" "Rester ici" "Ficar aqui" "여기에 머물기" "البقاء هنا"]
    still ["Stop automatic updates of this page" "Detener la actualización automática de esta página"
        "Automatische Aktualisierung dieser Seite beenden" "Arrêter l’actualisation automatique de cette page"
        "Parar a atualização automática desta página" "이 페이지의 자동 업데이트 중지" "إيقاف التحديث التلقائي لهذه الصفحة"]
    look_again ["Check again" "Comprobar de nuevo" "Erneut prüfen" "Vérifier à nouveau" "Verificar de novo" "다시 확인"
        "تحقق مرة أخرى"]
    help ["Questions? Contact {shop}" "¿Preguntas? Contacte con {shop}" "Fragen? Kontakt zu {shop}"
        "Des questions ? Contactez {shop}" "Dúvidas? Fale com {shop}" "질문이 있으신가요? {shop}에 문의"
        "هل لديك أسئلة؟ تواصل مع {shop}"]
    test_mode ["Test mode: this is not the live Hive network. No real money moves."
        "Modo de prueba: esta no es la red real de Hive. No se mueve dinero real."
        "Testmodus: Dies ist nicht das echte Hive-Netz. Es fließt kein echtes Geld."
        "Mode test : ceci n’est pas le réseau Hive réel. Aucun argent réel ne circule."
        "Modo de teste: esta não é a rede Hive real. Nenhum dinheiro real é movimentado."
        "테스트 모드: 실제 Hive 네트워크가 아닙니다. 실제 돈은 이동하지 않습니다."
        "وضع الاختبار: هذه ليست شبكة Hive الحقيقية. لا تُنقل أموال حقيقية."]
    language ["Language" "Idioma" "Sprache" "Langue" "Idioma" "언어" "اللغة"]

    unknown ["Payment not found" "Pago no encontrado" "Zahlung nicht gefunden" "Paiement introuvable"
        "Pagamento não encontrado" "결제를 찾을 수 없습니다" "لم يتم العثور على الدفعة"]
    unknown_more ["Please check the link you followed, or ask the shop for a new one."
        "Revise el enlace o pida uno nuevo a la tienda."
        "Bitte prüfen Sie den Link oder bitten Sie den Shop um einen neuen."
        "Vérifiez le lien ou demandez-en un nouveau à la boutique." "Confira o link ou peça um novo à loja."
        "링크를 확인하거나 상점에 새 링크를 요청하세요." "تحقق من الرابط أو اطلب رابطًا جديدًا من المتجر."]
    down ["Not available right now" "No disponible en este momento" "Zurzeit nicht verfügbar"
        "Indisponible pour le moment" "Indisponível no momento" "지금은 이용할 수 없습니다" "غير متاح حاليًا"]
    down_more ["Please try again in a moment. If you have paid already, nothing is lost."
        "Inténtelo de nuevo en un momento. Si ya pagó, no se pierde nada."
        "Bitte versuchen Sie es gleich noch einmal. Wenn Sie schon gezahlt haben, geht nichts verloren."
        "Réessayez dans un instant. Si vous avez déjà payé, rien n’est perdu."
        "Tente de novo em um instante. Se você já pagou, nada se perde." "잠시 후 다시 시도하세요. 이미 결제했다면 아무것도 사라지지 않습니다."
        "حاول مرة أخرى بعد قليل. إذا كنت قد دفعت بالفعل، فلن تفقد شيئًا."]
    broken ["Something went wrong" "Se produjo un error" "Ein Fehler ist aufgetreten" "Une erreur s’est produite"
        "Ocorreu um erro" "문제가 발생했습니다" "حدث خطأ ما"]
    request ["Request" "Solicitud" "Anfrage" "Requête" "Solicitação" "요청" "الطلب"]
}
