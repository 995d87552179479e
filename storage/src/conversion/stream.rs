//! Streams the rows of a database as those of an embedded store.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::{from_postgres::Receiver, to_embedded};
use crate::{
    embedded::maintenance::backup::{CHUNK_BYTES, CHUNKS, Row, Rows},
    postgres::commit::writers::Shared,
    store::error::{OpenError, ReadError},
};

/// Reads every row on a connection of its own, at the receiver's speed. Dropping the receiver stops the read.
pub(crate) fn stream(shared: Arc<Shared>) -> Rows {
    let (sender, rows) = mpsc::channel(CHUNKS);
    tokio::spawn(async move {
        let mut channel = Channel { sender, waiting: Vec::new() };
        let last = match read(&shared, &mut channel).await {
            Ok(()) => Ok(std::mem::take(&mut channel.waiting)),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        };
        let _ = channel.sender.send(last).await;
    });
    rows
}

async fn read(shared: &Shared, channel: &mut Channel) -> Result<(), OpenError> {
    let mut connection = shared.connect().await?;
    connection.begin_maintenance("REPEATABLE READ").await?;
    to_embedded::each_row(&connection, channel).await
}

struct Channel {
    sender: mpsc::Sender<Result<Vec<Row>, ReadError>>,
    waiting: Vec<Row>,
}

impl Receiver for Channel {
    fn take(&mut self, row: Result<Row, OpenError>) -> Result<(), OpenError> {
        match row {
            Ok(row) => self.waiting.push(row),
            Err(error) => tracing::error!(%error, "record omitted: {error}"),
        }
        Ok(())
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), OpenError>> {
        Box::pin(async move {
            let size = |row: &Row| row.key.len() + row.value.len();
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            for row in std::mem::take(&mut self.waiting) {
                bytes += size(&row);
                chunk.push(row);
                if bytes >= CHUNK_BYTES {
                    bytes = 0;
                    let sent = self.sender.send(Ok(std::mem::take(&mut chunk))).await;
                    sent.map_err(|_| OpenError::Failed("the receiver of the rows was dropped".to_owned()))?;
                }
            }
            self.waiting = chunk;
            Ok(())
        })
    }
}
