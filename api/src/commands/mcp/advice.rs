//! What an agent should do next after a failure: one sentence for each reason.

/// Returns the next step after a payment that ended with a status and a reason.
pub(super) fn after_payment(status: &str, reason: &str) -> &'static str {
    match (status, reason) {
        ("offer", _) => "Call pay_url again with confirm: true to pay this price, if it is worth it.",
        ("paid", _) => "The payment is complete; `response` has the purchased content. Do not pay again.",
        ("free", _) => "No payment is required; `response` is the content.",
        (_, "approval_needed") => {
            "An operator must approve it: ask your user to run the command in `message`, then call pay_url again with the same arguments."
        }
        (_, "approval_denied") => "An operator denied this payment. Do not pay it, and do not work around the denial.",
        (_, "above_hour_limit" | "above_day_limit" | "above_month_limit") => {
            "The budget is used up. Stop paying until `availableAt`; if it is missing, the amount exceeds the budget. Report this to your user."
        }
        (_, "above_payment_limit" | "above_maximum") => {
            "The price is above the limit of one payment. Do not pay it; report it to your user."
        }
        (_, "host_not_allowed" | "account_not_allowed" | "currency_not_allowed" | "other_currency") => {
            "The policy does not allow this payment. Only your user can change the policy."
        }
        (_, "redirect") => "Check the URL in `message` and call pay_url with it, if you trust it.",
        (_, "insufficient_funds") => "The balance of the account is too low. Ask your user to fund it.",
        (
            _,
            "not_its_key" | "no_key" | "bad_key" | "exposed_key_file" | "bad_policy" | "no_account" | "other_chain",
        ) => "The wallet is not set up correctly. Show `message` to your user.",
        (_, "plain_http") => "Use an https URL.",
        (_, "bad_request") => "Correct the argument that `message` names.",
        (_, "session_completed") => "This payment is already completed. Do not pay it again.",
        (_, "session_expired" | "offer_expired" | "session_not_pending") => {
            "The offer has expired. Request a new one from the seller."
        }
        ("unknown", _) => {
            "The outcome of the payment is unknown. Call pay_url again with the same arguments: it repeats the same signed transaction and never pays twice."
        }
        ("settled", _) => {
            "The money was transferred and the seller no longer serves this payment. Do not pay again; send `txId` to the seller."
        }
        ("unreachable", _) => "Nothing was submitted. Try again later with the same arguments.",
        ("unpaid", _) => {
            "The seller refused the payment. With a `txId`, calling pay_url with the same arguments repeats the same transaction; otherwise correct the cause that `reason` names."
        }
        _ => "Do not retry unchanged: correct the cause that `message` names, or report it to your user.",
    }
}

/// Returns the next step after a call of the gateway's API that failed with an HTTP status.
pub(super) const fn after_call(status: u16) -> &'static str {
    match status {
        400 | 422 => "Correct the arguments that `details` or `message` names.",
        401 => "The API key is missing or wrong. Ask your user for a valid key.",
        403 => "The API key lacks the permission. Ask your user.",
        404 => "The record does not exist: check the id.",
        409 => "The payment's state does not allow this: read it with get_payment.",
        429 => "Too many requests: wait a moment, then repeat.",
        _ => "The gateway failed. Repeat the call; create_payment with the same idempotencyKey creates nothing twice.",
    }
}
