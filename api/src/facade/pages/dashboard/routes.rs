//! The routes of the dashboard, one row for each method and path.

use http::StatusCode;

use super::{
    account, audit, endpoints,
    entry::{self, enter},
    merchant, merchants, nodes, overview, payment, payments, settings, unmatched, webhooks,
};
use crate::facade::{
    http::route::{Access, Route, get, post},
    limits::Rates,
    rest::export::Format,
};

/// Calls the handler of a page with the values of the path's placeholders.
macro_rules! to {
    ($function:path) => {
        |visit, _| Box::pin($function(visit))
    };
    ($function:path, id) => {
        |visit, [id, _]| Box::pin($function(visit, id))
    };
}

/// A route for every logged-in visitor (`Visitor`), or for admins only (`VisitingAdmin`).
macro_rules! page {
    ($method:ident, $path:literal, $access:ident, $rates:ident, $page:expr) => {
        Route {
            access: Access::$access,
            rates: Rates::$rates,
            is_unlisted: true,
            ..$method($path, "", |facade, call, values| {
                Box::pin(enter(facade, call, (Access::$access, Rates::$rates), values, $page))
            })
        }
    };
}

const CSV: Format = Format::Csv { bom: false };

/// Every route of the dashboard.
#[rustfmt::skip]
pub(crate) const ROUTES: &[Route] = &[
    get("/dashboard/login", "", |facade, call, _| Box::pin(entry::show_login(facade, call))).unlisted(),
    post("/dashboard/login", "", |facade, call, _| Box::pin(entry::log_in(facade, call))).unlisted(),
    post("/dashboard/logout", "", |facade, call, _| Box::pin(entry::log_out(facade, call))).unlisted(),
    page!(get, "/dashboard", Visitor, Calls, to!(overview::page)),
    page!(get, "/dashboard/payments", Visitor, Calls, to!(payments::page)),
    page!(get, "/dashboard/payments.csv", Visitor, Export, |visit, _| Box::pin(payments::export(visit, CSV))),
    page!(get, "/dashboard/payments.json", Visitor, Export, |visit, _| Box::pin(payments::export(visit, Format::Json))),
    page!(get, "/dashboard/payments/new", Visitor, Calls, |visit, _| Box::pin(async move { Ok(payment::form(visit, StatusCode::OK, Vec::new())) })),
    page!(post, "/dashboard/payments/new", Visitor, Calls, to!(payment::create)),
    page!(get, "/dashboard/payments/{id}", Visitor, Calls, |visit, [id, _]| Box::pin(payment::page(visit, id, Vec::new()))),
    page!(post, "/dashboard/payments/{id}/cancel", Visitor, Calls, to!(payment::cancel, id)),
    page!(post, "/dashboard/payments/{id}/pay", Visitor, Calls, to!(payment::pay, id)),
    page!(post, "/dashboard/payments/{id}/delete-metadata", Visitor, Calls, to!(payment::delete_metadata, id)),
    page!(post, "/dashboard/payments/{id}/delete-note", Visitor, Calls, to!(payment::delete_note, id)),
    page!(post, "/dashboard/payments/{id}/resolve", Visitor, Calls, to!(unmatched::resolve, id)),
    page!(get, "/dashboard/payments/{id}/refund", Visitor, Calls, to!(unmatched::refund, id)),
    page!(get, "/dashboard/unmatched", Visitor, Calls, to!(unmatched::list)),
    page!(get, "/dashboard/unmatched/{id}", Visitor, Calls, |visit, [id, _]| Box::pin(unmatched::one(visit, id, Vec::new()))),
    page!(post, "/dashboard/unmatched/{id}/assign", Visitor, Calls, to!(unmatched::assign, id)),
    page!(post, "/dashboard/unmatched/{id}/ignore", Visitor, Calls, to!(unmatched::ignore, id)),
    page!(get, "/dashboard/account", Visitor, Calls, |visit, _| Box::pin(async move { Ok(account::page(visit)) })),
    page!(post, "/dashboard/account/challenge", Visitor, Calls, to!(account::challenge)),
    page!(post, "/dashboard/account/prove", Visitor, Calls, to!(account::prove)),
    page!(post, "/dashboard/account/cancel", Visitor, Calls, to!(account::cancel)),
    page!(get, "/dashboard/webhooks", Visitor, Calls, |visit, _| Box::pin(webhooks::page(visit, Vec::new()))),
    page!(post, "/dashboard/webhooks/test", Visitor, WebhookTest, to!(webhooks::test)),
    page!(post, "/dashboard/webhooks/enable", Visitor, Calls, to!(webhooks::enable)),
    page!(post, "/dashboard/webhooks/replay", Visitor, Calls, to!(webhooks::replay)),
    page!(get, "/dashboard/webhooks/{id}", Visitor, Calls, to!(webhooks::delivery, id)),
    page!(post, "/dashboard/webhooks/{id}/redeliver", Visitor, Redeliver, to!(webhooks::redeliver, id)),
    page!(get, "/dashboard/endpoints", Visitor, Calls, |visit, _| Box::pin(endpoints::list(visit, StatusCode::OK, Vec::new()))),
    page!(post, "/dashboard/endpoints", Visitor, Calls, to!(endpoints::create)),
    page!(get, "/dashboard/endpoints/{id}", Visitor, Calls, |visit, [id, _]| Box::pin(endpoints::one(visit, id, StatusCode::OK, Vec::new()))),
    page!(post, "/dashboard/endpoints/{id}", Visitor, Calls, to!(endpoints::save, id)),
    page!(post, "/dashboard/endpoints/{id}/test", Visitor, WebhookTest, to!(endpoints::test, id)),
    page!(post, "/dashboard/endpoints/{id}/enable", Visitor, Calls, to!(endpoints::enable, id)),
    page!(post, "/dashboard/endpoints/{id}/secret", Visitor, Calls, to!(endpoints::new_secret, id)),
    page!(post, "/dashboard/endpoints/{id}/delete", Visitor, Calls, to!(endpoints::remove, id)),
    page!(get, "/dashboard/settings", Visitor, Calls, |visit, _| Box::pin(settings::page(visit, StatusCode::OK, Vec::new()))),
    page!(post, "/dashboard/settings", Visitor, Calls, to!(settings::save)),
    page!(post, "/dashboard/settings/secret", Visitor, Calls, to!(settings::new_secret)),
    page!(post, "/dashboard/settings/keys/{id}/roll", Visitor, Calls, to!(settings::roll_key, id)),
    page!(get, "/dashboard/merchants", VisitingAdmin, Calls, to!(merchants::page)),
    page!(get, "/dashboard/merchants.csv", VisitingAdmin, Export, |visit, _| Box::pin(merchants::export(visit, CSV))),
    page!(get, "/dashboard/merchants.json", VisitingAdmin, Export, |visit, _| Box::pin(merchants::export(visit, Format::Json))),
    page!(get, "/dashboard/merchants/{id}", VisitingAdmin, Calls, |visit, [id, _]| Box::pin(merchant::page(visit, id, None))),
    page!(post, "/dashboard/merchants/{id}/clear", VisitingAdmin, Calls, to!(merchant::clear, id)),
    page!(post, "/dashboard/merchants/{id}/limits", VisitingAdmin, Calls, to!(merchant::set_limits, id)),
    page!(post, "/dashboard/merchants/{id}/active", VisitingAdmin, Calls, to!(merchants::set_active, id)),
    page!(post, "/dashboard/merchants/{id}/key", VisitingAdmin, Calls, to!(merchants::new_key, id)),
    page!(get, "/dashboard/audit", VisitingAdmin, Calls, to!(audit::page)),
    page!(get, "/dashboard/nodes", VisitingAdmin, Calls, to!(nodes::page)),
];

/// The handler of every other path and method below `/dashboard`. Unauthenticated clients cannot see which pages
/// exist.
pub(crate) static UNKNOWN: Route =
    post("/dashboard/{*path}", "", |facade, call, _| Box::pin(entry::unknown(facade, call))).unlisted();
