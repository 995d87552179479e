//! Resolves commits whose outcome is unknown because the connection was lost during the commit.

use tokio::time::Instant;

use crate::{
    batch::Resolution,
    postgres::{
        commit::writers::Shared,
        connection::Connection,
        fault::Fault,
        ids::pause,
        values::{Id, column},
    },
};

/// Resolves by a write: the insertion waits for a running commit with the same id, and a later commit violates the key. A
/// read would not do: it can see a commit that no standby has confirmed yet, or miss one that still runs.
const RESOLVE: &str = "INSERT INTO commits AS t (id, is_abandoned) VALUES ($1, true) \
     ON CONFLICT (id) DO UPDATE SET is_abandoned = t.is_abandoned RETURNING is_abandoned";

/// Resolves a commit on a connection.
///
/// # Errors
/// See [`Fault`]; it may be asked again.
pub(crate) async fn once(connection: &Connection, id: Id) -> Result<Resolution, Fault> {
    let rows = connection.write(RESOLVE, &[&id]).await?;
    let row = rows.first().ok_or_else(|| Fault::Failed("a statement returned no row".to_owned()))?;
    Ok(if column(row, 0)? { Resolution::Forbidden } else { Resolution::Applied })
}

/// Resolves a commit on a new connection, as soon as there is one, until a deadline. Returns the connection, too.
///
/// # Errors
/// The last [`Fault`] at the deadline: the outcome is still unknown.
pub(crate) async fn until(shared: &Shared, id: Id, deadline: Instant) -> Result<(Connection, Resolution), Fault> {
    for attempt in 1.. {
        let tried = async {
            let connection = shared.connect().await?;
            let outcome = once(&connection, id).await?;
            Ok::<_, Fault>((connection, outcome))
        };
        match tried.await {
            Ok(resolved) => return Ok(resolved),
            Err(fault) if Instant::now() >= deadline => return Err(fault),
            Err(_) => tokio::time::sleep(pause(attempt)).await,
        }
    }
    unreachable!("attempts do not end by themselves")
}
