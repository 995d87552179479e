//! The dashboard page that reports an error.

use askama::Template;
use proto::{ApiError, Reason};
use warp::reply::Response;

use crate::facade::{
    http::error,
    pages::{
        html,
        words::{Lang, Words},
    },
};

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusalPage<'a> {
    w: Words,
    is_test: bool,
    title: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// Returns an error page to a merchant's browser.
pub(crate) fn refusal(refused: &ApiError, is_test: bool, request_id: &str) -> Response {
    let title = match refused.http() {
        403 => "Not allowed",
        404 => "Not found",
        429 => "Too many requests",
        _ => "Something went wrong",
    };
    let message = match refused.reason {
        Reason::InvalidFormToken => {
            "The form has expired or originates from another site. Go back, reload the page, and submit it again."
        }
        Reason::NotFound => "This record does not exist, or it belongs to another merchant.",
        _ => &refused.message,
    };
    let page = RefusalPage { w: Words(Lang::English), is_test, title, message, request_id };
    error::with_retry(refused, html::page(error::status(refused), page.render(), None))
}
