//! What the checkout says, in six languages: one table, a row a phrase, a column a language.

/// A language of the checkout. Its number is its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lang {
    English,
    Spanish,
    German,
    French,
    Portuguese,
    Korean,
}

/// Every language with its tag and its own name, in the order of the columns.
pub(crate) const LANGUAGES: [(Lang, &str, &str); 6] = [
    (Lang::English, "en", "English"),
    (Lang::Spanish, "es", "Español"),
    (Lang::German, "de", "Deutsch"),
    (Lang::French, "fr", "Français"),
    (Lang::Portuguese, "pt", "Português"),
    (Lang::Korean, "ko", "한국어"),
];

impl Lang {
    /// Finds the language of a tag such as `de` or `pt-BR`.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        LANGUAGES.iter().find(|(_, tag, _)| tag.eq_ignore_ascii_case(primary)).map(|(lang, ..)| *lang)
    }

    /// Picks the language an `Accept-Language` header likes best among ours.
    pub(crate) fn preferred(header: &str) -> Option<Self> {
        let mut best: Option<(u32, Self)> = None;
        for part in header.split(',').take(20) {
            let (tag, weight) = part.split_once(";q=").unwrap_or((part, "1"));
            let Some(lang) = Self::of_tag(tag.trim()) else { continue };
            let weight = thousandths(weight.trim());
            if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, lang));
            }
        }
        best.map(|(_, lang)| lang)
    }

    /// Returns the tag.
    pub(crate) const fn tag(self) -> &'static str {
        LANGUAGES[self as usize].1
    }
}

/// Reads a weight such as `0.8`; what is no weight counts as none.
fn thousandths(weight: &str) -> u32 {
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{whole}{:0<3.3}", part);
    digits.parse().map_or(0, |number: u32| number.min(1_000))
}

/// The phrases of one language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words(pub(crate) Lang);

impl Words {
    /// Returns the tag of the language.
    pub(crate) const fn tag(self) -> &'static str {
        self.0.tag()
    }
}

/// Puts values where a phrase has `{name}`.
pub(crate) fn fill(phrase: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(phrase.len() + 32);
    let mut rest = phrase;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(values.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value));
        rest = after;
    }
    text + rest
}

/// Makes a method of every row. A row without all six columns does not compile; a row nobody uses is unused code.
macro_rules! table {
    ($($name:ident [$($text:literal)+])+) => {
        impl Words {
            $(pub(crate) const fn $name(self) -> &'static str {
                const ROW: [&str; 6] = [$($text),+];
                ROW[self.0 as usize]
            })+
        }
        /// The whole table, for the tests.
        #[cfg(test)]
        const ROWS: &[(&str, [&str; 6])] = &[$((stringify!($name), [$($text),+])),+];
    };
}

table! {
    payment ["Payment" "Pago" "Zahlung" "Paiement" "Pagamento" "결제"]
    amount ["Amount" "Importe" "Betrag" "Montant" "Valor" "금액"]
    about ["about" "aprox." "etwa" "environ" "cerca de" "약"]
    rate_of ["rate of" "tipo de cambio del" "Kurs vom" "taux du" "cotação de" "환율 기준"]
    recipient ["Recipient" "Destinatario" "Empfänger" "Destinataire" "Destinatário" "받는 계정"]
    network_fee ["Network fee" "Comisión de red" "Netzwerkgebühr" "Frais de réseau" "Taxa de rede" "네트워크 수수료"]
    no_fee ["none on Hive" "ninguna en Hive" "keine bei Hive" "aucuns sur Hive" "nenhuma na Hive" "Hive에서는 없음"]
    pay_before ["Pay before" "Pague antes de" "Zahlbar bis" "Payez avant" "Pague antes de" "결제 기한"]
    go_on ["Continue to payment" "Continuar al pago" "Weiter zur Zahlung" "Continuer vers le paiement"
        "Continuar para o pagamento" "결제 계속하기"]
    go_back ["Back" "Volver" "Zurück" "Retour" "Voltar" "뒤로"]
    review ["Review your payment" "Revise su pago" "Prüfen Sie Ihre Zahlung" "Vérifiez votre paiement"
        "Confira seu pagamento" "결제 내용 확인"]
    ways ["Choose how to pay" "Elija cómo pagar" "Wählen Sie, wie Sie zahlen" "Choisissez comment payer"
        "Escolha como pagar" "결제 방법 선택"]

    keychain ["Pay with Hive Keychain" "Pagar con Hive Keychain" "Mit Hive Keychain zahlen" "Payer avec Hive Keychain"
        "Pagar com Hive Keychain" "Hive Keychain으로 결제"]
    keychain_missing ["Hive Keychain was not found in this browser." "No se encontró Hive Keychain en este navegador."
        "Hive Keychain wurde in diesem Browser nicht gefunden." "Hive Keychain est introuvable dans ce navigateur."
        "O Hive Keychain não foi encontrado neste navegador." "이 브라우저에서 Hive Keychain을 찾을 수 없습니다."]
    keychain_install ["Install it" "Instalarlo" "Installieren" "L’installer" "Instalar" "설치하기"]
    your_account ["Your Hive account" "Su cuenta de Hive" "Ihr Hive-Konto" "Votre compte Hive" "Sua conta Hive"
        "내 Hive 계정"]
    need_account ["Please enter your account first." "Primero escriba su cuenta." "Bitte geben Sie zuerst Ihr Konto ein."
        "Saisissez d’abord votre compte." "Digite primeiro a sua conta." "먼저 계정을 입력하세요."]
    confirm_there ["Please confirm in Keychain." "Confirme en Keychain." "Bitte bestätigen Sie in Keychain."
        "Confirmez dans Keychain." "Confirme no Keychain." "Keychain에서 확인해 주세요."]
    sent ["Sent. Waiting for the ledger. Please do not pay again."
        "Enviado. Esperando a la red. No pague otra vez."
        "Gesendet. Die Bestätigung des Netzwerks steht aus. Bitte nicht noch einmal zahlen."
        "Envoyé. En attente du réseau. Ne payez pas une seconde fois."
        "Enviado. Aguardando a rede. Não pague de novo."
        "보냈습니다. 원장을 기다리는 중입니다. 다시 결제하지 마세요."]
    more_signatures ["Keychain waits for more signatures." "Keychain espera más firmas."
        "Keychain wartet auf weitere Unterschriften." "Keychain attend d’autres signatures."
        "O Keychain aguarda mais assinaturas." "Keychain이 추가 서명을 기다리고 있습니다."]
    nothing_sent ["Nothing was sent. You can try again." "No se envió nada. Puede intentarlo de nuevo."
        "Es wurde nichts gesendet. Sie können es noch einmal versuchen."
        "Rien n’a été envoyé. Vous pouvez réessayer." "Nada foi enviado. Você pode tentar de novo."
        "아무것도 보내지 않았습니다. 다시 시도할 수 있습니다."]
    not_confirmed ["Keychain did not confirm the payment, but it may have been sent. We are checking the ledger. Please do not pay again."
        "Keychain no confirmó el pago, pero puede haberse enviado. Estamos consultando la red. No pague otra vez."
        "Keychain hat die Zahlung nicht bestätigt, sie kann aber gesendet worden sein. Wir prüfen das Netzwerk. Bitte nicht noch einmal zahlen."
        "Keychain n’a pas confirmé le paiement, mais il a peut-être été envoyé. Nous vérifions sur le réseau. Ne payez pas une seconde fois."
        "O Keychain não confirmou o pagamento, mas ele pode ter sido enviado. Estamos verificando a rede. Não pague de novo."
        "Keychain이 결제를 확인하지 못했지만 전송되었을 수 있습니다. 원장을 확인하고 있습니다. 다시 결제하지 마세요."]
    refused ["Keychain says: {why}" "Keychain dice: {why}" "Keychain meldet: {why}" "Keychain indique : {why}"
        "O Keychain diz: {why}" "Keychain 메시지: {why}"]
    scan ["Scan with a Hive wallet" "Escanee con una billetera Hive" "Mit einer Hive-Wallet scannen"
        "Scannez avec un portefeuille Hive" "Escaneie com uma carteira Hive" "Hive 지갑으로 스캔"]
    qr_label ["QR code of this payment" "Código QR de este pago" "QR-Code dieser Zahlung" "QR code de ce paiement"
        "Código QR deste pagamento" "이 결제의 QR 코드"]
    open_wallet ["Open wallet on this device" "Abrir la billetera en este dispositivo"
        "Wallet auf diesem Gerät öffnen" "Ouvrir le portefeuille sur cet appareil"
        "Abrir a carteira neste aparelho" "이 기기에서 지갑 열기"]
    hivesigner ["Pay with HiveSigner" "Pagar con HiveSigner" "Mit HiveSigner zahlen" "Payer avec HiveSigner"
        "Pagar com HiveSigner" "HiveSigner로 결제"]
    manual ["Pay manually" "Pagar manualmente" "Manuell bezahlen" "Payer manuellement" "Pagar manualmente" "직접 송금하기"]
    account ["Account" "Cuenta" "Konto" "Compte" "Conta" "계정"]
    memo ["Memo" "Memo" "Memo" "Mémo" "Memo" "메모"]
    warn_currency ["Send exactly this amount, and only {currency}." "Envíe exactamente este importe, y solo {currency}."
        "Senden Sie genau diesen Betrag, und nur {currency}." "Envoyez exactement ce montant, et seulement en {currency}."
        "Envie exatamente este valor, e somente {currency}." "정확히 이 금액을 {currency}로만 보내세요."]
    warn_memo ["Copy the memo exactly. Without it, your payment cannot be matched."
        "Copie el memo exactamente: sin él nadie sabe de quién es el pago."
        "Übernehmen Sie das Memo genau: ohne es ist Ihre Zahlung niemandem zuzuordnen."
        "Recopiez le mémo exactement : sans lui, on ne sait pas de qui vient le paiement."
        "Copie o memo exatamente: sem ele ninguém sabe de quem é o pagamento."
        "메모를 정확히 복사하세요. 메모가 없으면 누구의 결제인지 알 수 없습니다."]
    warn_plain ["Do not encrypt the memo: it must not begin with #."
        "No cifre el memo: no debe empezar por #." "Verschlüsseln Sie das Memo nicht: es darf nicht mit # beginnen."
        "Ne chiffrez pas le mémo : il ne doit pas commencer par #." "Não criptografe o memo: ele não pode começar com #."
        "메모를 암호화하지 마세요. #으로 시작하면 안 됩니다."]
    copy ["Copy" "Copiar" "Kopieren" "Copier" "Copiar" "복사"]
    copied ["Copied" "Copiado" "Kopiert" "Copié" "Copiado" "복사됨"]
    program ["For developers: pay with x402" "Para desarrolladores: pagar con x402" "Für Entwickler: mit x402 zahlen"
        "Pour les développeurs : payer avec x402" "Para desenvolvedores: pagar com x402" "개발자용: x402로 결제"]
    program_how ["A program gets the requirements from this address and pays them with a signed transaction."
        "Un programa obtiene los requisitos en esta dirección y los paga con una transacción firmada."
        "Ein Programm erhält unter dieser Adresse die Bedingungen und zahlt mit einer signierten Transaktion."
        "Un programme obtient les exigences à cette adresse et paie avec une transaction signée."
        "Um programa obtém os requisitos neste endereço e paga com uma transação assinada."
        "프로그램은 이 주소에서 요구 사항을 받아 서명한 거래로 결제합니다."]
    left ["{time} left" "Quedan {time}" "Noch {time}" "Encore {time}" "Restam {time}" "{time} 남음"]
    too_late ["This payment has expired." "Ya es tarde para pagar." "Zum Zahlen ist es jetzt zu spät."
        "Il est trop tard pour payer." "Já é tarde para pagar." "지금은 결제하기에 늦었습니다."]
    cancel ["Cancel this payment" "Cancelar este pago" "Diese Zahlung abbrechen" "Annuler ce paiement"
        "Cancelar este pagamento" "이 결제 취소"]
    cancel_sure ["Cancel this payment? Do not cancel if you have already sent it."
        "¿Cancelar este pago? No lo cancele si ya lo ha enviado."
        "Diese Zahlung abbrechen? Brechen Sie nicht ab, wenn Sie sie schon gesendet haben."
        "Annuler ce paiement ? N’annulez pas si vous l’avez déjà envoyé."
        "Cancelar este pagamento? Não cancele se você já o enviou."
        "이 결제를 취소할까요? 이미 보냈다면 취소하지 마세요."]
    cancel_yes ["Yes, cancel it" "Sí, cancelarlo" "Ja, abbrechen" "Oui, l’annuler" "Sim, cancelar" "네, 취소합니다"]
    cannot_cancel ["This payment can no longer be cancelled." "Este pago ya no se puede cancelar."
        "Diese Zahlung kann nicht mehr abgebrochen werden." "Ce paiement ne peut plus être annulé."
        "Este pagamento não pode mais ser cancelado." "이 결제는 더 이상 취소할 수 없습니다."]

    progress ["Progress" "Progreso" "Fortschritt" "Progression" "Progresso" "진행 상황"]
    step_waiting ["Waiting" "En espera" "Wartet" "En attente" "Aguardando" "대기"]
    step_seen ["Seen" "Visto" "Gesehen" "Vu" "Visto" "확인"]
    step_final ["Final" "Definitivo" "Endgültig" "Définitif" "Definitivo" "확정"]
    step_paid ["Paid" "Pagado" "Bezahlt" "Payé" "Pago" "결제됨"]

    waiting ["Waiting for your payment" "Esperando su pago" "Wir warten auf Ihre Zahlung" "En attente de votre paiement"
        "Aguardando seu pagamento" "결제를 기다리고 있습니다"]
    waiting_more ["This page updates automatically when your transfer arrives."
        "Esta página cambia sola cuando llega su transferencia."
        "Diese Seite ändert sich von selbst, sobald Ihre Überweisung da ist."
        "Cette page change d’elle-même dès que votre virement arrive."
        "Esta página muda sozinha quando sua transferência chegar."
        "송금이 도착하면 이 페이지가 자동으로 바뀝니다."]
    wrong ["Wrong currency" "Moneda equivocada" "Falsche Währung" "Mauvaise devise" "Moeda errada" "잘못된 통화"]
    wrong_more ["You sent another currency. This payment needs {amount}. Contact {shop} for a refund of the other transfer."
        "Llegó una transferencia en otra moneda. Este pago requiere {amount}. Solicite la devolución de la otra a {shop}."
        "Sie haben in einer anderen Währung gezahlt. Diese Zahlung erfordert {amount}. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "Vous avez payé dans une autre devise. Ce paiement demande {amount}. Contactez {shop} pour être remboursé."
        "Você enviou outra moeda. Este pagamento exige {amount}. Peça o reembolso a {shop}."
        "다른 통화로 송금하셨습니다. 이 결제에는 {amount}이(가) 필요합니다. 환불은 {shop}에 문의하세요."]
    part ["Part of the amount has arrived" "Llegó una parte del importe" "Ein Teil des Betrags ist da"
        "Une partie du montant est arrivée" "Parte do valor chegou" "금액의 일부가 도착했습니다"]
    part_more ["{paid} of {amount} received. Please send {rest} more." "Recibido {paid} de {amount}. Envíe {rest} más."
        "{paid} von {amount} erhalten. Bitte senden Sie noch {rest}."
        "{paid} sur {amount} reçus. Envoyez encore {rest}." "Recebidos {paid} de {amount}. Envie mais {rest}."
        "{amount} 중 {paid}을(를) 받았습니다. {rest}을(를) 더 보내 주세요."]
    seen ["Payment received" "Pago recibido" "Zahlung eingegangen" "Paiement reçu" "Pagamento recebido" "결제를 받았습니다"]
    seen_more ["Confirming, usually under 10 seconds. Please do not pay again."
        "Confirmando, normalmente en menos de 10 segundos. No pague otra vez."
        "Wird bestätigt, meist in weniger als 10 Sekunden. Bitte nicht noch einmal zahlen."
        "Confirmation en cours, généralement en moins de 10 secondes. Ne payez pas une seconde fois."
        "Confirmando, normalmente em menos de 10 segundos. Não pague de novo."
        "확인 중이며 보통 10초 이내에 끝납니다. 다시 결제하지 마세요."]
    checking ["Time is up" "Se acabó el tiempo" "Die Zeit ist um" "Le temps est écoulé" "O tempo acabou"
        "시간이 지났습니다"]
    checking_more ["Checking for a transfer that arrived in time. Please do not pay now."
        "Buscamos una transferencia que llegara a tiempo. No pague ahora."
        "Wir suchen nach einer rechtzeitigen Überweisung. Bitte zahlen Sie jetzt nicht."
        "Nous cherchons un virement arrivé à temps. Ne payez pas maintenant."
        "Procuramos uma transferência que chegou a tempo. Não pague agora."
        "제때 도착한 송금이 있는지 찾고 있습니다. 지금은 결제하지 마세요."]
    processing ["Payment submitted" "Pago en camino" "Zahlung unterwegs" "Paiement en route" "Pagamento a caminho"
        "결제가 진행 중입니다"]
    processing_more ["Your signed payment was submitted and is being confirmed. Please do not pay again."
        "Se envió un pago firmado y espera a la red. No pague otra vez."
        "Eine signierte Zahlung wurde gesendet; das Netzwerk hat sie noch nicht bestätigt. Bitte nicht noch einmal zahlen."
        "Un paiement signé a été envoyé et attend le réseau. Ne payez pas une seconde fois."
        "Um pagamento assinado foi enviado e aguarda a rede. Não pague de novo."
        "서명된 결제를 보냈으며 원장을 기다리고 있습니다. 다시 결제하지 마세요."]
    paid ["Paid" "Pagado" "Bezahlt" "Payé" "Pago" "결제 완료"]
    paid_more ["Thank you. Your payment is final." "Gracias. Su pago es definitivo."
        "Vielen Dank. Ihre Zahlung ist endgültig." "Merci. Votre paiement est définitif."
        "Obrigado. Seu pagamento é definitivo." "감사합니다. 결제가 확정되었습니다."]
    overpaid_more ["Thank you. You sent {over} too much. Contact {shop} for a refund of that amount."
        "Gracias. Envió {over} de más. Solicite la devolución a {shop}."
        "Vielen Dank. Sie haben {over} zu viel gesendet. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "Merci. Vous avez envoyé {over} de trop. Contactez {shop} pour être remboursé."
        "Obrigado. Você enviou {over} a mais. Peça o reembolso a {shop}."
        "감사합니다. {over}을(를) 더 보내셨습니다. 환불은 {shop}에 문의하세요."]
    cancelling ["Cancelling…" "Cancelando…" "Wird abgebrochen…" "Annulation en cours…" "Cancelando o pagamento…"
        "취소하는 중입니다…"]
    cancelling_more ["We are checking that no payment is on its way. Please do not pay now."
        "Comprobamos que no haya ningún pago en camino. No pague ahora."
        "Wir prüfen, ob noch eine Zahlung unterwegs ist. Bitte zahlen Sie jetzt nicht."
        "Nous vérifions qu’aucun paiement n’est en route. Ne payez pas maintenant."
        "Estamos verificando se não há um pagamento a caminho. Não pague agora."
        "진행 중인 결제가 없는지 확인하고 있습니다. 지금은 결제하지 마세요."]
    cancelled ["Cancelled" "Cancelado" "Abgebrochen" "Annulé" "Cancelado" "취소됨"]
    cancelled_more ["This payment was cancelled. Please do not pay it." "Este pago se canceló. No lo pague."
        "Diese Zahlung wurde abgebrochen. Bitte zahlen Sie sie nicht." "Ce paiement a été annulé. Ne le payez pas."
        "Este pagamento foi cancelado. Não o pague." "이 결제는 취소되었습니다. 결제하지 마세요."]
    shop_cancelled_more ["{shop} cancelled this payment. Please do not pay it." "{shop} canceló este pago. No lo pague."
        "{shop} hat diese Zahlung abgebrochen. Bitte zahlen Sie sie nicht." "{shop} a annulé ce paiement. Ne le payez pas."
        "{shop} cancelou este pagamento. Não o pague." "{shop}에서 이 결제를 취소했습니다. 결제하지 마세요."]
    expired ["Expired" "Caducado" "Abgelaufen" "Expiré" "Expirado" "만료됨"]
    expired_more ["This payment has expired. Please do not pay it. Contact {shop} for a new one."
        "El plazo de este pago terminó. No lo pague; pida uno nuevo a {shop}."
        "Die Frist dieser Zahlung ist vorbei. Bitte zahlen Sie sie nicht, sondern bitten Sie {shop} um eine neue."
        "Le délai de ce paiement est écoulé. Ne le payez pas ; demandez-en un nouveau à {shop}."
        "O prazo deste pagamento acabou. Não o pague; peça um novo a {shop}."
        "이 결제의 기한이 지났습니다. 결제하지 말고 {shop}에 새 결제를 요청하세요."]
    expired_part_more ["This payment expired after {paid} of {amount} had arrived. Contact {shop} for a refund."
        "El plazo terminó con solo {paid} de {amount}. Contacte con {shop} por ese dinero."
        "Bei Ablauf waren erst {paid} von {amount} da. Bitte wenden Sie sich deswegen an {shop}."
        "À l’échéance, seuls {paid} sur {amount} étaient arrivés. Contactez {shop} pour cet argent."
        "O prazo acabou com apenas {paid} de {amount}. Fale com {shop} sobre esse dinheiro."
        "기한까지 {amount} 중 {paid}만 도착했습니다. 이 돈에 대해서는 {shop}에 문의하세요."]
    failed ["Payment failed" "El pago falló" "Zahlung fehlgeschlagen" "Le paiement a échoué" "O pagamento falhou"
        "결제 실패"]
    failed_more ["The signed payment expired before the ledger included it. No money was moved."
        "El pago firmado no llegó a la red a tiempo. No se movió dinero."
        "Die signierte Zahlung kam nicht rechtzeitig im Netzwerk an. Es wurde kein Geld bewegt."
        "Le paiement signé n’a pas atteint le réseau à temps. Aucun argent n’a bougé."
        "O pagamento assinado não chegou à rede a tempo. Nenhum dinheiro se moveu."
        "서명된 결제가 제때 원장에 도달하지 못했습니다. 돈은 이동하지 않았습니다."]
    late_more ["{late} arrived too late. Contact {shop} for a refund."
        "{late} llegó demasiado tarde. Solicite la devolución a {shop}."
        "{late} kam zu spät an. Bitte wenden Sie sich für eine Erstattung an {shop}."
        "{late} est arrivé trop tard. Contactez {shop} pour être remboursé."
        "{late} chegou tarde demais. Peça o reembolso a {shop}."
        "{late}이(가) 너무 늦게 도착했습니다. 환불은 {shop}에 문의하세요."]

    receipt ["Receipt" "Recibo" "Beleg" "Reçu" "Recibo" "영수증"]
    received ["Received" "Recibido" "Erhalten" "Reçu" "Recebido" "받은 금액"]
    paid_by ["Paid by" "Pagado por" "Bezahlt von" "Payé par" "Pago por" "보낸 계정"]
    paid_at ["Paid at" "Pagado el" "Bezahlt am" "Payé le" "Pago em" "결제 시각"]
    purpose ["For" "Concepto" "Verwendungszweck" "Objet" "Referente a" "내용"]
    transaction ["Transaction" "Transacción" "Transaktion" "Transaction" "Transação" "거래"]
    payment_id ["Payment ID" "ID del pago" "Zahlungs-ID" "ID du paiement" "ID do pagamento" "결제 ID"]
    look_up ["View transaction" "Consultarla" "Nachsehen" "La consulter" "Consultar" "조회하기"]
    print ["Print receipt" "Imprimir recibo" "Beleg drucken" "Imprimer le reçu" "Imprimir recibo" "영수증 인쇄"]
    return_to ["Return to {shop}" "Volver a {shop}" "Zurück zu {shop}" "Retourner chez {shop}" "Voltar para {shop}"
        "{shop}(으)로 돌아가기"]
    going ["You will be redirected to {host} in {seconds} seconds."
        "Será redirigido a {host} en {seconds} segundos."
        "Sie werden in {seconds} Sekunden zu {host} weitergeleitet."
        "Vous serez redirigé vers {host} dans {seconds} secondes."
        "Você será redirecionado para {host} em {seconds} segundos."
        "{seconds}초 후에 {host}(으)로 이동합니다."]
    stay ["Stay here" "Quedarse aquí" "Hier bleiben" "Rester ici" "Ficar aqui" "여기에 머물기"]
    still ["Stop automatic updates of this page" "Que esta página no cambie sola"
        "Diese Seite nicht mehr von selbst ändern" "Empêcher cette page de changer d’elle-même"
        "Impedir que esta página mude sozinha" "이 페이지가 자동으로 바뀌지 않게 하기"]
    look_again ["Check again" "Mirar de nuevo" "Noch einmal nachsehen" "Vérifier à nouveau" "Verificar de novo"
        "다시 확인"]
    help ["Questions? Contact {shop}" "¿Preguntas? Contacte con {shop}" "Fragen? Kontakt zu {shop}"
        "Des questions ? Contactez {shop}" "Dúvidas? Fale com {shop}" "질문이 있으신가요? {shop}에 문의"]
    test_mode ["Test mode: this is not the live Hive network. No real money moves."
        "Modo de prueba: esta no es la red real de Hive. No se mueve dinero real."
        "Testmodus: Dies ist nicht das echte Hive-Netz. Es fließt kein echtes Geld."
        "Mode test : ceci n’est pas le réseau Hive réel. Aucun argent réel ne circule."
        "Modo de teste: esta não é a rede Hive real. Nenhum dinheiro real é movimentado."
        "테스트 모드: 실제 Hive 네트워크가 아닙니다. 실제 돈은 이동하지 않습니다."]
    language ["Language" "Idioma" "Sprache" "Langue" "Idioma" "언어"]

    unknown ["Payment not found" "No existe ese pago" "Diese Zahlung gibt es nicht" "Ce paiement n’existe pas"
        "Esse pagamento não existe" "그런 결제가 없습니다"]
    unknown_more ["Please check the link you followed, or ask the shop for a new one."
        "Revise el enlace o pida uno nuevo a la tienda." "Bitte prüfen Sie den Link oder bitten Sie den Shop um einen neuen."
        "Vérifiez le lien ou demandez-en un nouveau à la boutique." "Confira o link ou peça um novo à loja."
        "링크를 확인하거나 상점에 새 링크를 요청하세요."]
    down ["Not available right now" "No disponible ahora" "Zurzeit nicht verfügbar" "Indisponible pour le moment"
        "Indisponível no momento" "지금은 이용할 수 없습니다"]
    down_more ["Please try again in a moment. If you have paid already, nothing is lost."
        "Inténtelo de nuevo en un momento. Si ya pagó, nada se pierde."
        "Bitte versuchen Sie es gleich noch einmal. Wenn Sie schon gezahlt haben, geht nichts verloren."
        "Réessayez dans un instant. Si vous avez déjà payé, rien n’est perdu."
        "Tente de novo em um instante. Se você já pagou, nada se perde."
        "잠시 후 다시 시도하세요. 이미 결제했다면 잃어버리는 것은 없습니다."]
    broken ["Something went wrong" "Esto no funcionó" "Das hat nicht geklappt" "Cela n’a pas fonctionné"
        "Isso não funcionou" "처리하지 못했습니다"]
    request ["Request" "Solicitud" "Anfrage" "Requête" "Solicitação" "요청"]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names between braces, sorted.
    fn places(phrase: &str) -> Vec<&str> {
        let mut names: Vec<&str> = phrase.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_phrase_is_there_in_every_language_with_the_same_places() {
        for (name, row) in ROWS {
            for (phrase, (_, tag, _)) in row.iter().zip(LANGUAGES) {
                assert!(!phrase.trim().is_empty() && *phrase == phrase.trim(), "{name} {tag}");
                assert_eq!(places(phrase), places(row[0]), "{name} {tag}");
                assert!(!phrase.contains(['<', '>', '&', '"']), "{name} {tag}");
            }
            if row[0].len() > 24 {
                for (column, phrase) in row.iter().enumerate() {
                    assert!(!row[..column].contains(phrase), "{name} is not translated: {phrase}");
                }
            }
        }
        for (column, (lang, tag, _)) in LANGUAGES.into_iter().enumerate() {
            assert_eq!((lang as usize, Lang::of_tag(tag), lang.tag()), (column, Some(lang), tag));
        }
    }

    #[test]
    fn a_browser_gets_the_language_it_likes_best() {
        for (header, wanted) in [
            ("de", Some(Lang::German)),
            ("pt-BR,pt;q=0.9,en;q=0.8", Some(Lang::Portuguese)),
            ("nl,ko;q=0.5,fr;q=0.7", Some(Lang::French)),
            ("en;q=0.1, es;q=0.15", Some(Lang::Spanish)),
            ("de;q=0, fr;q=x", None),
            ("nl, *", None),
            ("", None),
        ] {
            assert_eq!(Lang::preferred(header), wanted, "{header}");
        }
    }

    #[test]
    fn places_are_filled_once() {
        assert_eq!(fill("{a} of {b}", &[("a", "{b}"), ("b", "<2>")]), "{b} of <2>");
        assert_eq!(fill("a {missing} b {", &[]), "a  b ");
    }
}
