//! One connection to the primary: how it is established and checked, and how statements run on it.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use futures_util::{StreamExt, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Error, NoTls, Row, Statement,
    error::{Severity, SqlState},
    types::{ToSql, Type},
};

use crate::{
    postgres::{
        address::{Address, Encryption},
        fault::{Fault, text},
        schema,
        table::TABLE_NAMES,
        tls::Connector,
        values::column,
    },
    store::error::OpenError,
};

/// The oldest server that is supported, as `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;
/// Longest time that a statement may take. Its connection is not used any more then.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for verifications and copies, whose statements read whole tables.
const MAINTENANCE_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);
/// How long a maintenance waits for the locks of tables.
const LOCK_TIMEOUT: &str = "10s";
/// Maximum number of prepared statements of a connection. Beyond it, all are prepared again.
const MAX_STATEMENTS: usize = 1_000;
/// Longest time to establish a connection to all hosts in turn and to check it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The setting that marks a session: a pooler does not pass it on.
const SESSION_MARK: &str = "hivetill.session";

/// The types of parameters.
const TYPES: [Type; 16] = [
    Type::UUID,
    Type::INT8,
    Type::INT4,
    Type::INT2,
    Type::BOOL,
    Type::TEXT,
    Type::BYTEA,
    Type::TIMESTAMPTZ,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::INT4_ARRAY,
    Type::INT2_ARRAY,
    Type::BOOL_ARRAY,
    Type::TEXT_ARRAY,
    Type::BYTEA_ARRAY,
    Type::TIMESTAMPTZ_ARRAY,
];

/// The parameters of a statement.
pub(crate) type Parameters<'p> = [&'p (dyn ToSql + Sync)];

/// Identifies the database, which is the same for every connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) id: Vec<u8>,
}

/// A connection to the primary, with the statements that were prepared on it.
pub(crate) struct Connection {
    client: Client,
    statements: Mutex<BTreeMap<Box<str>, Statement>>,
    /// Whether the server sent a warning since the last write began.
    is_warned: Arc<AtomicBool>,
    /// Longest time that a statement may take.
    statement_timeout: Duration,
    /// Whether a pooler may run each transaction on another connection of the server, which has no prepared statements of this one.
    is_pooled: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection {{ is_closed: {} }}", self.is_closed())
    }
}

impl Connection {
    /// Connects to the first host of an address that accepts writes. The server's version is checked, nothing else.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) async fn open(address: &Address) -> Result<Self, OpenError> {
        timeout(OPEN_TIMEOUT, Self::connect(address)).await.map_err(|_| {
            OpenError::Unreachable(format!("{address}: no response within {} s", OPEN_TIMEOUT.as_secs()))
        })?
    }

    async fn connect(address: &Address) -> Result<Self, OpenError> {
        let is_warned = Arc::new(AtomicBool::new(false));
        let mut marked = address.config().clone();
        let options = marked.get_options().map(|options| format!("{options} ")).unwrap_or_default();
        marked.options(format!("{options}-c {SESSION_MARK}=direct"));
        let (client, is_refused) = match start(address, &marked, &is_warned).await? {
            // A pooler that knows no such parameter.
            Err(error) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => {
                (start(address, address.config(), &is_warned).await?.map_err(|error| refusal(address, &error))?, true)
            }
            started => (started.map_err(|error| refusal(address, &error))?, false),
        };
        // Unnamed statements are understood by servers and poolers.
        let (statements, statement_timeout) = (Mutex::default(), STATEMENT_TIMEOUT);
        let mut connection = Self { client, statements, is_warned, statement_timeout, is_pooled: true };
        let version = format!(
            "SELECT current_setting('server_version_num')::integer, current_setting('server_version'), \
             coalesce(current_setting('{SESSION_MARK}', true), '') = 'direct'"
        );
        let row = connection.one(&version, &[]).await?;
        if column::<i32>(&row, 0)? < OLDEST_SERVER {
            let (found, oldest) = (column(&row, 1)?, OLDEST_SERVER / 10_000);
            return Err(OpenError::ServerTooOld { found, oldest });
        }
        connection.is_pooled = is_refused || !column::<bool>(&row, 2)?;
        Ok(connection)
    }

    /// Connects and checks that the database has a schema that this program can use, and is the one it used before.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) async fn open_checked(
        address: &Address,
        known: Option<&Installation>,
    ) -> Result<(Self, Installation), OpenError> {
        let connection = Self::open(address).await?;
        schema::check(&connection).await?;
        let found = Installation { id: schema::installation(&connection).await? };
        if known.is_some_and(|known| *known != found) {
            return Err(OpenError::OtherInstallation(address.to_string()));
        }
        Ok((connection, found))
    }

    /// Begins a transaction for maintenance, whose statements may take long. `isolation` is `REPEATABLE READ` for one snapshot for
    /// all reads, or `READ COMMITTED`.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn begin_maintenance(&mut self, isolation: &str) -> Result<(), Fault> {
        self.statement_timeout = MAINTENANCE_TIMEOUT;
        self.run(&format!(
            "BEGIN ISOLATION LEVEL {isolation}; SET LOCAL statement_timeout = 0; \
             SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
        ))
        .await
    }

    /// Locks every table against writes until the transaction ends.
    ///
    /// # Errors
    /// [`Fault::Contended`] if others hold locks for too long.
    pub(crate) async fn lock_tables(&self) -> Result<(), Fault> {
        self.run(&format!("LOCK TABLE {} IN EXCLUSIVE MODE", TABLE_NAMES.join(", "))).await
    }

    /// Returns whether no statement can be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Returns the driver's client, for transactions and copies.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    fn prepared(&self, sql: &str) -> Option<Statement> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned()
    }

    async fn statement(&self, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = self.prepared(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if statements.len() >= MAX_STATEMENTS {
            statements.clear();
        }
        Ok(statements.entry(sql.into()).or_insert(statement).clone())
    }

    /// Runs a statement, which is prepared the first time unless there is a pooler, and returns its rows. Statements of several callers are
    /// pipelined: the server runs them one after the other.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn query(&self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>, Fault> {
        let run = async {
            if self.is_pooled {
                return Ok(self.client.query_typed(sql, &typed(parameters)?).await?);
            }
            let statement = self.statement(sql).await?;
            Ok(self.client.query(&statement, parameters).await?)
        };
        let limit = self.statement_timeout;
        timeout(limit, run)
            .await
            .unwrap_or_else(|_| Err(Fault::TimedOut(format!("no response within {} s", limit.as_secs()))))
    }

    /// Runs a statement that writes, with no other statement in progress on the connection.
    ///
    /// # Errors
    /// See [`Fault`]. [`Fault::Lost`], too, if the server sends a warning: when the wait for a synchronous standby is canceled, it
    /// responds as if the standby had the commit.
    pub(crate) async fn write(&self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>, Fault> {
        self.is_warned.store(false, Ordering::SeqCst);
        let rows = self.query(sql, parameters).await?;
        match self.is_warned.load(Ordering::SeqCst) {
            true => Err(Fault::Lost("a commit may not be on the standby".to_owned())),
            false => Ok(rows),
        }
    }

    /// Runs a statement that returns one row.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn one(&self, sql: &str, parameters: &Parameters<'_>) -> Result<Row, Fault> {
        let rows = self.query(sql, parameters).await?;
        rows.into_iter().next().ok_or_else(|| Fault::Failed("a statement returned no row".to_owned()))
    }

    /// Runs statements without parameters.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }
}

/// Connects and drives the connection.
async fn start(
    address: &Address,
    config: &Config,
    is_warned: &Arc<AtomicBool>,
) -> Result<Result<Client, Error>, OpenError> {
    if address.encryption() == Encryption::Disable {
        return Ok(config.connect(NoTls).await.map(|(client, connection)| {
            tokio::spawn(drive(connection, Arc::clone(is_warned)));
            client
        }));
    }
    Ok(config.connect(Connector::new(address)?).await.map(|(client, connection)| {
        tokio::spawn(drive(connection, Arc::clone(is_warned)));
        client
    }))
}

/// Drives a connection until it ends, and records warnings before the response that they belong to.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, is_warned: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = stream::poll_fn(|context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notice(notice) = message
            && notice.parsed_severity() == Some(Severity::Warning)
        {
            tracing::warn!(code = notice.code().code(), "warning of the database: {}", notice.message());
            is_warned.store(true, Ordering::SeqCst);
        }
    }
}

/// Returns the parameters with their types: those of the lists of values and of what reads are bound to.
fn typed<'p>(parameters: &Parameters<'p>) -> Result<Vec<(&'p (dyn ToSql + Sync), Type)>, Fault> {
    let mut scratch = BytesMut::new();
    let mut type_of = |parameter: &(dyn ToSql + Sync)| {
        scratch.clear();
        TYPES.into_iter().find(|kind| parameter.to_sql_checked(kind, &mut scratch).is_ok())
    };
    let typed = parameters.iter().map(|parameter| {
        let kind = type_of(*parameter).ok_or_else(|| Fault::Failed(format!("no type for {parameter:?}")))?;
        Ok((*parameter, kind))
    });
    typed.collect()
}

/// Returns why a connection was refused.
fn refusal(address: &Address, error: &Error) -> OpenError {
    let why = text(error);
    let address = address.to_string();
    match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            OpenError::Authentication { address, why }
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => OpenError::NoDatabase { address, why },
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => OpenError::Privilege(why),
        _ if why.starts_with("authentication error") => OpenError::Authentication { address, why },
        _ if why.starts_with("error performing TLS handshake") => OpenError::Tls(format!("{address}: {why}")),
        _ if is_read_only(error) => OpenError::ReadOnly(address),
        _ => OpenError::Unreachable(format!("{address}: {why}")),
    }
}

/// The driver returns this kind of error for a server that accepts no writes. Connecting itself fails with other kinds, except for
/// a Unix socket that may not be opened, which names an operating system's error.
fn is_read_only(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied && cause.raw_os_error().is_none())
}
