//! Maintenance for operators: backups and verification of the store, and exports of the records that name an account.

use actors::{Engine, RegistrationMode};
use engine::account::AccountName;
use futures_util::{Stream, StreamExt, stream};
use proto::{
    ApiError, Reason,
    v1::{self, maintenance_service_server},
};
use storage::{Duty, EngineId, EngineLease, Membership, Row};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::convert::{error, timestamp};
use crate::{store::OpenStore, version};

/// The maintenance service of the gRPC port and of operator commands. The facade does not use it.
#[derive(Clone)]
pub struct Maintenance {
    store: OpenStore,
    engine: Engine,
    registration: RegistrationMode,
}

impl Maintenance {
    /// Creates the service of a store and its engine.
    #[must_use]
    pub const fn new(store: OpenStore, engine: Engine, registration: RegistrationMode) -> Self {
        Self { store, engine, registration }
    }
}

/// Lists the engines that share a store, and the duties of each.
fn engines((membership, responding): (Membership, EngineId)) -> Vec<v1::EngineDuties> {
    let duties_of = |engine| {
        let held = membership.duties.iter().filter(move |record| record.holder == Some(engine));
        held.map(|record| record.duty)
    };
    let is_single = |duty: &Duty| Duty::SINGLE.contains(duty);
    let one = |lease: &EngineLease| v1::EngineDuties {
        engine_id: lease.engine.to_string(),
        is_responding: lease.engine == responding,
        lease_expires_at: Some(timestamp(lease.until)),
        duties: duties_of(lease.engine).filter(is_single).map(|duty| duty.to_string()).collect(),
        webhook_buckets: u32::try_from(duties_of(lease.engine).filter(|duty| !is_single(duty)).count()).unwrap_or(0),
    };
    membership.engines.iter().map(one).collect()
}

#[tonic::async_trait]
impl maintenance_service_server::MaintenanceService for Maintenance {
    async fn describe_engine(
        &self,
        _: Request<v1::DescribeEngineRequest>,
    ) -> Result<Response<v1::DescribeEngineResponse>, Status> {
        let secrets = self.store.secrets().await.map_err(|error| {
            tracing::error!(%error, "cannot read the store: {error}");
            Status::from(ApiError::new(Reason::StoreUnavailable))
        })?;
        Ok(Response::new(v1::DescribeEngineResponse {
            version: version::VERSION.to_owned(),
            commit: version::commit().to_owned(),
            encrypted_secrets: secrets.sealed,
            plaintext_secrets: secrets.plain,
            registration: super::enums::registration(self.registration).into(),
            engines: self.engine.operations.membership().await.map_err(error)?.map_or_else(Vec::new, engines),
        }))
    }

    type CopyStoreStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::CopyStoreResponse, Status>> + Send>>;

    async fn copy_store(&self, _: Request<v1::CopyStoreRequest>) -> Result<Response<Self::CopyStoreStream>, Status> {
        let rows = self.store.rows().map_err(read_failed)?;
        tracing::info!("backup of the store started");
        let messages = ReceiverStream::new(rows).map(move |rows| {
            let rows = rows.map_err(read_failed)?.into_iter().map(stored_row);
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
            .map_err(|invalid| ApiError::field("hiveAccount", invalid.to_string()))?;
        self.engine.operations.note_account_export(account).await.map_err(error)?;
        let rows = self.store.rows().map_err(read_failed)?;
        let messages = ReceiverStream::new(rows).flat_map(move |rows| {
            let found: Vec<_> = match rows {
                Ok(rows) => rows.iter().filter_map(|row| exported_record(row, account.as_str())).map(Ok).collect(),
                Err(error) => vec![Err(read_failed(error))],
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
        let tables = report.tables.iter().map(|(table, rows)| v1::TableSize { table: (*table).into(), rows: *rows });
        let payments = report.totals.lines.iter().map(|((currency, status), line)| v1::PaymentTotals {
            currency: super::convert::currency(*currency).into(),
            status: super::convert::state(*status).into(),
            payments: line.payments,
            requested_units: line.requested_units.to_string(),
            paid_units: line.paid_units.to_string(),
            received_units: line.received_units.to_string(),
            refunded_units: line.refunded_units.to_string(),
        });
        let unmatched = report.totals.unmatched.iter().map(|(currency, (transfers, units))| v1::UnmatchedTotals {
            currency: super::convert::currency(*currency).into(),
            transfers: *transfers,
            units: units.to_string(),
        });
        Ok(Response::new(v1::VerifyStoreResponse {
            schema: report.schema,
            tables: tables.collect(),
            payments: payments.collect(),
            unmatched: unmatched.collect(),
            findings: report.findings,
            finding_count: report.finding_count,
            scanned_block: report.scanned_block,
        }))
    }
}

/// Logs a failed read of the store and returns its status.
fn read_failed(error: storage::ReadError) -> Status {
    tracing::error!(%error, "cannot read the store: {error}");
    Status::from(ApiError::new(Reason::StoreUnavailable))
}

/// Returns the record of a row if it names an account. Damaged rows are omitted; `VerifyStore` reports them.
fn exported_record(row: &Row, account: &str) -> Option<v1::ExportAccountResponse> {
    let record = storage::export_record_naming(row, account).unwrap_or_else(|error| {
        tracing::warn!(%error, "export omits a damaged row: {error}");
        None
    });
    record.map(|record| v1::ExportAccountResponse { json: record.to_string() })
}

fn stored_row(row: Row) -> v1::StoredRow {
    v1::StoredRow { table: row.table, key: row.key.into(), value: row.value.into() }
}
