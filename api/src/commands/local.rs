//! The way to an engine that runs on this machine: a socket in its data directory, for whoever may read that.

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

use super::{failure::Failure, files, running::Running, stop::Stop, tokens};
use crate::{
    config::Config,
    service::server::{self as grpc_server, Access},
};

/// The socket, in the data directory.
const SOCKET: &str = "engine.sock";

/// Serves the engine's gRPC services on the data directory's socket, until `stop`. Without one (the path may be too
/// long for a socket) the engine runs all the same.
pub(super) fn serve(
    config: &Config,
    data: &Path,
    running: &Running,
    stop: &Stop,
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
    let served = grpc_server::serve_on(incoming, running.service(), running.maintenance(), access, stop.heard());
    Ok(Some(tokio::spawn(async move {
        if let Err(error) = served.await {
            error!("the socket failed: {error}");
        }
        // The next engine makes its own.
        let _ = fs::remove_file(path);
    })))
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // Whoever had it is gone: we hold the directory's lock.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns the way to the engine that has a data directory of this machine open, if it made a socket there.
pub(super) fn running(config: &Config, data: &Path) -> Result<Option<Transport>, Failure> {
    let path: PathBuf = data.join(SOCKET);
    if !path.exists() {
        return Ok(None);
    }
    let token = match config.optional("grpc.token") {
        Some(token) => Some(token.to_owned()),
        None => files::kept_token(data)?,
    };
    let connect = move |_| {
        let path = path.clone();
        async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    };
    // The address is the socket's; gRPC wants one all the same.
    let channel = Endpoint::from_static("http://engine.local").connect_with_connector_lazy(tower::service_fn(connect));
    let transport = Transport::remote(channel, token.as_deref());
    transport.map(Some).map_err(|_| Failure::Other("grpc.token cannot stand in a header".to_owned()))
}
