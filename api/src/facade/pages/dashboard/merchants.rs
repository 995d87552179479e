//! The list of merchants, for admins: search, activation, and new keys.

use askama::Template;
use http::StatusCode;
use proto::v1;
use warp::reply::Response;

use crate::facade::{
    http::{
        query::{self, Query},
        refusal::Refusal,
    },
    pages::{
        dashboard::{
            settings,
            visit::{Frame, Visit, minute},
        },
        html,
    },
    rest::export::{self, Format},
};

/// Choices of merchants per page.
const LIMITS: [u32; 3] = [20, 50, 100];

#[derive(Template)]
#[template(path = "dashboard/merchants.html")]
struct MerchantsPage<'v> {
    frame: Frame<'v>,
    rows: Vec<Row>,
    total: u64,
    page: u32,
    pages: u64,
    filter: Filter,
    export_query: String,
    limit: u32,
    limits: [u32; 3],
    before: Option<String>,
    after: Option<String>,
}

struct Row {
    id: String,
    name: String,
    account: String,
    created: String,
    is_active: bool,
    is_admin: bool,
    is_flagged: bool,
}

/// The visitor's filter.
struct Filter {
    query: String,
    active: String,
}

impl Filter {
    fn read(query: &Query) -> Self {
        Self {
            query: query.get("query").unwrap_or_default().chars().take(200).collect(),
            active: query.get("active").unwrap_or("all").to_owned(),
        }
    }

    /// Formats the filter and further parameters as a query string.
    fn write(&self, more: &[(&str, String)]) -> String {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.append_pair("query", &self.query).append_pair("active", &self.active);
        out.extend_pairs(more);
        out.finish()
    }

    fn request(&self, page: u32, limit: u32) -> v1::ListMerchantsRequest {
        v1::ListMerchantsRequest {
            skip: query::skip(page, limit),
            page_size: limit,
            page_token: String::new(),
            query: self.query.clone(),
            active: match self.active.as_str() {
                "active" => Some(true),
                "inactive" => Some(false),
                _ => None,
            },
            flagged: (self.active == "flagged").then_some(true),
        }
    }
}

/// Returns the list of merchants, for admins.
pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let query = visit.call.query();
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<u32>().ok());
    let limit = number("limit").filter(|limit| LIMITS.contains(limit)).unwrap_or(LIMITS[0]);
    let page = number("page").filter(|page| (1..=1_000_000).contains(page)).unwrap_or(1);
    let filter = Filter::read(&query);
    let request = visit.request(filter.request(page, limit));
    let found = visit.facade.engine.merchants().list_merchants(request).await?.into_inner();
    let pages = found.total_size.div_ceil(u64::from(limit));
    let address = |page: u32| {
        let place = [("limit", limit.to_string()), ("page", page.to_string())];
        format!("/dashboard/merchants?{}", filter.write(&place))
    };
    let row = |merchant: &v1::Merchant| Row {
        id: merchant.id.clone(),
        name: merchant.name.clone(),
        account: merchant.hive_account.clone(),
        created: minute(merchant.created_at),
        is_active: merchant.active,
        is_admin: merchant.admin,
        is_flagged: merchant.flagged.unwrap_or_default(),
    };
    let page = MerchantsPage {
        frame: visit.frame("merchants", Vec::new()),
        rows: found.merchants.iter().map(row).collect(),
        total: found.total_size,
        page,
        pages: pages.max(1),
        before: (page > 1).then(|| address(page - 1)),
        after: (u64::from(page) < pages).then(|| address(page + 1)),
        export_query: filter.write(&[]),
        filter,
        limit,
        limits: LIMITS,
    };
    Ok(html::page(StatusCode::OK, page.render(), None))
}

/// Exports every merchant that matches the filter, for admins.
pub(super) async fn export(visit: &Visit<'_>, format: Format) -> Result<Response, Refusal> {
    let v1::ListMerchantsRequest { query, active, flagged, .. } = Filter::read(&visit.call.query()).request(1, 0);
    let request = v1::ExportMerchantsRequest { query, active, flagged };
    export::merchants_file(visit.facade, visit.request(request), format).await
}

/// Activates or deactivates a merchant.
pub(super) async fn set_active(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let active = visit.form.get("active") == Some("true");
    let request = v1::SetMerchantActiveRequest { merchant_id: id.to_owned(), active: Some(active) };
    visit.facade.engine.merchants().set_merchant_active(visit.request(request)).await?;
    let done = if active { "active" } else { "inactive" };
    Ok(html::see_other(&format!("/dashboard/merchants?query={id}&done={done}")))
}

/// Issues a new key to a merchant and shows it once; sessions of the old keys end with their keys.
pub(super) async fn new_key(visit: &Visit<'_>, id: &str) -> Result<Response, Refusal> {
    let request = v1::ReissueApiKeyRequest { merchant_id: id.to_owned() };
    let made = visit.facade.engine.merchants().reissue_api_key(visit.request(request)).await?.into_inner();
    let note = "The previous keys are revoked, and their sessions have ended.".to_owned();
    Ok(settings::shown_once(visit, "New API key", &made.api_key, note, "/dashboard/merchants"))
}
