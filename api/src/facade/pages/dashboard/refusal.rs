//! The page that says what is wrong.

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

/// Answers a merchant's browser with a page that says what is wrong.
pub(crate) fn refusal(refused: &ApiError, is_test: bool, request_id: &str) -> Response {
    let title = match refused.http() {
        403 => "Not allowed",
        404 => "Not found",
        429 => "Too many requests",
        _ => "Something went wrong",
    };
    let message = match refused.reason {
        Reason::InvalidFormToken => {
            "The form is too old or not ours. Go back, load the page again, and send it once more."
        }
        Reason::NotFound => "There is nothing of yours by that name.",
        _ => &refused.message,
    };
    let page = RefusalPage { w: Words(Lang::English), is_test, title, message, request_id };
    error::with_retry(refused, html::page(error::status(refused), page.render(), None))
}
