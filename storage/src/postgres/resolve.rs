//! Resolves commits whose outcome is unknown because the connection was lost during the commit.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

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

/// Time that a resolution has at least, however late it begins.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Resolves by a write: the insertion waits for a running commit with the same id, and a later commit violates the key. A
/// read would not do: it can see a commit that no standby has confirmed yet, or miss one that still runs.
const RESOLVE: &str = "INSERT INTO commits AS t (id, is_abandoned) VALUES ($1, true) \
     ON CONFLICT (id) DO UPDATE SET is_abandoned = t.is_abandoned \
     RETURNING is_abandoned, current_setting('synchronous_commit')";

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
    let deadline = deadline.max(Instant::now() + LEAST_TIME);
    for attempt in 1.. {
        let tried = async {
            let connection = shared.connect().await?;
            let outcome = once(&connection, id).await?;
            Ok::<_, Fault>((connection, outcome))
        };
        match timeout_at(deadline, tried).await {
            Ok(Ok(resolved)) => return Ok(resolved),
            Ok(Err(fault)) if Instant::now() >= deadline => return Err(fault),
            Ok(Err(_)) => tokio::time::sleep(pause(attempt)).await,
            Err(_) => return Err(Fault::Lost("the database does not respond".to_owned())),
        }
    }
    unreachable!("attempts do not end by themselves")
}
