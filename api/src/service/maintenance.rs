//! What an operator asks of a running engine: a copy of its whole store, or of what names an account.

use std::sync::Arc;

use actors::{Engine, RegistrationMode};
use engine::account::AccountName;
use futures_util::{Stream, StreamExt, stream};
use proto::{
    ApiError, Reason,
    v1::{self, maintenance_service_server},
};
use storage::{EmbeddedStore, Row};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::convert::error;
use crate::version;

/// The service, at the engine's own ports and for the commands of an operator: a facade in the same process has no use for it.
#[derive(Clone)]
pub struct Maintenance {
    store: Arc<EmbeddedStore>,
    engine: Engine,
    registration: RegistrationMode,
}

impl Maintenance {
    /// Serves copies of a store, and what is in force for it.
    #[must_use]
    pub const fn new(store: Arc<EmbeddedStore>, engine: Engine, registration: RegistrationMode) -> Self {
        Self { store, engine, registration }
    }
}

#[tonic::async_trait]
impl maintenance_service_server::MaintenanceService for Maintenance {
    async fn describe_engine(
        &self,
        _: Request<v1::DescribeEngineRequest>,
    ) -> Result<Response<v1::DescribeEngineResponse>, Status> {
        let secrets = self.store.secrets().map_err(|error| {
            tracing::error!(%error, "cannot read the store: {error}");
            Status::from(ApiError::new(Reason::StoreUnavailable))
        })?;
        Ok(Response::new(v1::DescribeEngineResponse {
            version: version::VERSION.to_owned(),
            commit: version::commit().to_owned(),
            sealed_secrets: secrets.sealed,
            plain_secrets: secrets.plain,
            registration: super::enums::registration(self.registration).into(),
        }))
    }

    type CopyStoreStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::CopyStoreResponse, Status>> + Send>>;

    async fn copy_store(&self, _: Request<v1::CopyStoreRequest>) -> Result<Response<Self::CopyStoreStream>, Status> {
        let rows = self.store.rows().map_err(unreadable)?;
        tracing::info!("backup of the store started");
        let messages = ReceiverStream::new(rows).map(move |rows| {
            let rows = rows.map_err(unreadable)?.into_iter().map(stored);
            Ok(v1::CopyStoreResponse { rows: rows.collect() })
        });
        Ok(Response::new(Box::pin(messages)))
    }

    type ExportAccountStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::ExportAccountResponse, Status>> + Send>>;

    async fn export_account(
        &self,
        request: Request<v1::ExportAccountRequest>,
    ) -> Result<Response<Self::ExportAccountStream>, Status> {
        let account = AccountName::parse(&request.get_ref().hive_account)
            .map_err(|wrong| ApiError::field("hiveAccount", wrong.to_string()))?;
        self.engine.operations.note_account_export(account).await.map_err(error)?;
        let rows = self.store.rows().map_err(unreadable)?;
        let messages = ReceiverStream::new(rows).flat_map(move |rows| {
            let found: Vec<_> = match rows {
                Ok(rows) => rows.iter().filter_map(|row| naming(row, account.as_str())).map(Ok).collect(),
                Err(error) => vec![Err(unreadable(error))],
            };
            stream::iter(found)
        });
        Ok(Response::new(Box::pin(messages)))
    }

    async fn verify_store(
        &self,
        _: Request<v1::VerifyStoreRequest>,
    ) -> Result<Response<v1::VerifyStoreResponse>, Status> {
        let report = self.store.verify().await.map_err(|error| {
            tracing::error!(%error, "cannot verify the store: {error}");
            Status::from(ApiError::new(Reason::StoreUnavailable))
        })?;
        tracing::info!(findings = report.finding_count, "store verified: {} findings", report.finding_count);
        let tables = report.tables.iter().map(|(table, rows)| v1::TableLength { table: (*table).into(), rows: *rows });
        let books = report.books.lines.iter().map(|((currency, status), line)| v1::BookLine {
            currency: super::convert::currency(*currency).into(),
            status: super::convert::state(*status).into(),
            payments: line.payments,
            asked_units: line.asked_units.to_string(),
            paid_units: line.paid_units.to_string(),
            received_units: line.received_units.to_string(),
            refunded_units: line.refunded_units.to_string(),
        });
        let unmatched = report.books.unmatched.iter().map(|(currency, (transfers, units))| v1::UnmatchedLine {
            currency: super::convert::currency(*currency).into(),
            transfers: *transfers,
            units: units.to_string(),
        });
        Ok(Response::new(v1::VerifyStoreResponse {
            schema: report.schema,
            tables: tables.collect(),
            books: books.collect(),
            unmatched: unmatched.collect(),
            findings: report.findings,
            finding_count: report.finding_count,
            scanned_block: report.scanned_block,
        }))
    }
}

fn unreadable(error: storage::ReadError) -> Status {
    tracing::error!(%error, "cannot back up the store: {error}");
    Status::from(ApiError::new(Reason::StoreUnavailable))
}

/// Returns the record of a row that names an account. A damaged row names nobody; a verification reports it.
fn naming(row: &Row, account: &str) -> Option<v1::ExportAccountResponse> {
    let record = storage::export_record_naming(row, account).unwrap_or_else(|error| {
        tracing::warn!(%error, "export omits a damaged row: {error}");
        None
    });
    record.map(|record| v1::ExportAccountResponse { json: record.to_string() })
}

fn stored(row: Row) -> v1::StoredRow {
    v1::StoredRow { table: row.table, key: row.key.into(), value: row.value.into() }
}
