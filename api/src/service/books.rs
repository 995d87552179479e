//! The daily check of the books, for admins.

use engine::{
    books::{Day, Finding, Moved},
    time::Timestamp,
};
use proto::{
    ApiError,
    v1::{self, books_server::Books},
};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    payments::page_of,
};

#[tonic::async_trait]
impl Books for Service {
    async fn list_books(
        &self,
        request: Request<v1::ListBooksRequest>,
    ) -> Result<Response<v1::ListBooksResponse>, Status> {
        self.admin(&request).await?;
        let asked = request.into_inner();
        let (_, limit) = page_of(1, asked.limit)?;
        let before = asked.before_ms.map(u64::try_from).transpose();
        let before = before.map_err(|_| ApiError::field("cursor", "must be the nextCursor of an answer"))?;
        let before = before.map(Timestamp::from_millis);
        let mut days = self.gateway.books(before, limit as usize + 1).await.map_err(error)?;
        let has_more = days.len() > limit as usize;
        days.truncate(limit as usize);
        let next_before_ms = days.last().map(|day| convert::millis(day.from)).filter(|_| has_more);
        Ok(Response::new(v1::ListBooksResponse { days: days.into_iter().map(told).collect(), next_before_ms }))
    }
}

fn told(day: Day) -> v1::BooksDay {
    v1::BooksDay {
        from_ms: convert::millis(day.from),
        to_ms: convert::millis(day.to),
        checked_at_ms: convert::millis(day.checked_at),
        outcome: day.outcome().word().to_owned(),
        accounts: day.accounts,
        unchecked: day.unchecked,
        obstacle: day.obstacle,
        operations: day.operations,
        mismatches: day.mismatches,
        findings: day.findings.into_iter().map(finding).collect(),
    }
}

fn finding(finding: Finding) -> v1::BooksFinding {
    let list = |moved: Vec<Moved>| moved.into_iter().map(operation).collect();
    v1::BooksFinding {
        account: finding.account.to_string(),
        merchant_ids: finding.merchants.iter().map(ToString::to_string).collect(),
        missing: list(finding.missing),
        missing_count: finding.missing_count,
        extra: list(finding.extra),
        extra_count: finding.extra_count,
    }
}

fn operation(moved: Moved) -> v1::BooksOperation {
    v1::BooksOperation { tx_id: moved.tx_id.to_string(), amount: Some(convert::money(moved.money)) }
}
