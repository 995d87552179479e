//! The Unix socket of an engine in its data directory, for commands on the same host.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use hyper_util::rt::TokioIo;
use proto::Transport;
use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinHandle,
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Endpoint;
use tracing::{error, warn};

use super::{failure::Failure, files, running::RunningEngine, shutdown::Shutdown, tokens};
use crate::{
    config::Config,
    service::server::{self as grpc_server, Access},
};

/// The file name of the socket in the data directory.
const SOCKET: &str = "engine.sock";

/// Serves the engine's gRPC services on the socket until shutdown. If the socket cannot be created, for example because its
/// path is too long, the engine runs without it.
pub(super) fn serve(
    config: &Config,
    data: &Path,
    running: &RunningEngine,
    shutdown: &Shutdown,
) -> Result<Option<JoinHandle<()>>, Failure> {
    let path = data.join(SOCKET);
    let listener = match listen(&path) {
        Ok(listener) => listener,
        Err(error) => {
            warn!("cannot open the socket {}: {error}; commands on this host need --engine-url", path.display());
            return Ok(None);
        }
    };
    let access =
        Access { tokens: tokens::tokens(config, data)?, tls: None, connections: 0, metrics: running.grpc.clone() };
    let incoming = UnixListenerStream::new(listener);
    let served =
        grpc_server::serve_on(incoming, running.service(), running.maintenance(), access, shutdown.requested());
    Ok(Some(tokio::spawn(async move {
        if let Err(error) = served.await {
            error!("the socket failed: {error}");
        }
        // Commands use the existence of the file as a sign of a running engine.
        let _ = fs::remove_file(path);
    })))
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // A remaining file is of an engine that has exited: this process holds the lock of the data directory.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns the transport to the engine that uses a data directory on this host; `None` if it has no socket.
pub(super) fn transport(config: &Config, data: &Path) -> Result<Option<Transport>, Failure> {
    let path: PathBuf = data.join(SOCKET);
    if !path.exists() {
        return Ok(None);
    }
    let token = match config.optional("grpc.token") {
        Some(token) => Some(token.to_owned()),
        None => files::stored_token(data)?,
    };
    let connect = move |_| {
        let path = path.clone();
        async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    };
    // gRPC requires a URL; its host is not used.
    let channel = Endpoint::from_static("http://engine.local").connect_with_connector_lazy(tower::service_fn(connect));
    let transport = Transport::remote(channel, token.as_deref());
    transport.map(Some).map_err(|_| Failure::Other("grpc.token is not a valid header value".to_owned()))
}
