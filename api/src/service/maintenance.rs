//! What an operator asks of a running engine: a copy of its whole store.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use proto::{
    ApiError, Reason,
    v1::{self, maintenance_server},
};
use storage::{RedbStore, Row};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The service, at the engine's own ports only: a facade in the same process has no use for it.
#[derive(Debug, Clone)]
pub struct Maintenance {
    store: Arc<RedbStore>,
}

impl Maintenance {
    /// Serves copies of a store.
    #[must_use]
    pub const fn new(store: Arc<RedbStore>) -> Self {
        Self { store }
    }
}

#[tonic::async_trait]
impl maintenance_server::Maintenance for Maintenance {
    type CopyStoreStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::CopyStoreResponse, Status>> + Send>>;

    async fn copy_store(&self, _: Request<v1::CopyStoreRequest>) -> Result<Response<Self::CopyStoreStream>, Status> {
        let unreadable = |error: storage::ReadError| {
            tracing::error!(%error, "the store cannot be copied: {error}");
            Status::from(ApiError::new(Reason::StoreUnavailable))
        };
        let rows = self.store.rows().map_err(unreadable)?;
        tracing::info!("a copy of the store is being taken");
        let messages = ReceiverStream::new(rows).map(move |rows| {
            let rows = rows.map_err(unreadable)?.into_iter().map(stored);
            Ok(v1::CopyStoreResponse { rows: rows.collect() })
        });
        Ok(Response::new(Box::pin(messages)))
    }
}

fn stored(row: Row) -> v1::StoredRow {
    v1::StoredRow { table: row.table, key: row.key.into(), value: row.value.into() }
}
