//! A wire between two processes: forwards the bytes of every connection, and can be cut. A cut loses nothing and closes nothing:
//! bytes wait, as in a network whose packets are dropped.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{process::folder, wait::background};

/// A wire. Its threads end with the test run.
pub(crate) struct Wire {
    /// Where to connect instead of the target.
    pub(crate) address: String,
    switch: Arc<Switch>,
}

#[derive(Default)]
struct Switch {
    is_cut: Mutex<bool>,
    mended: Condvar,
    is_closed: AtomicBool,
}

impl Switch {
    fn wait_until_mended(&self) {
        let mut is_cut = self.is_cut.lock().expect("no thread panics with it");
        while *is_cut {
            is_cut = self.mended.wait(is_cut).expect("no thread panics with it");
        }
    }

    fn set(&self, is_cut: bool) {
        *self.is_cut.lock().expect("no thread panics with it") = is_cut;
        self.mended.notify_all();
    }
}

impl Wire {
    /// Lays a wire to a TCP address.
    pub(crate) fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let (switch, target) = (Arc::new(Switch::default()), target.to_owned());
        let held = Arc::clone(&switch);
        background(move || {
            for near in listener.incoming().map_while(Result::ok) {
                held.wait_until_mended();
                let Ok(far) = TcpStream::connect(&target) else { continue };
                let clones = (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                forward(near, clones.1, &held);
                forward(far, clones.0, &held);
            }
        });
        Self { address, switch }
    }

    /// Lays a wire to a Unix socket. Its address is a folder with a socket of the same name.
    pub(crate) fn to_socket(target: &Path) -> Self {
        let folder = folder("wire");
        let name = target.file_name().expect("a socket");
        let listener = UnixListener::bind(folder.join(name)).expect("a new socket");
        let (switch, target) = (Arc::new(Switch::default()), PathBuf::from(target));
        let held = Arc::clone(&switch);
        background(move || {
            for near in listener.incoming().map_while(Result::ok) {
                held.wait_until_mended();
                let Ok(far) = UnixStream::connect(&target) else { continue };
                let clones = (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                forward(near, clones.1, &held);
                forward(far, clones.0, &held);
            }
        });
        Self { address: folder.to_str().expect("a path in UTF-8").to_owned(), switch }
    }

    /// Cuts the wire: nothing arrives any more.
    pub(crate) fn cut(&self) {
        self.switch.set(true);
    }

    /// Mends the wire: what waits arrives.
    pub(crate) fn mend(&self) {
        self.switch.set(false);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.switch.is_closed.store(true, Ordering::SeqCst);
        self.mend();
    }
}

/// Forwards bytes in one direction in a thread of its own.
fn forward(mut from: impl Read + Send + 'static, mut to: impl Write + Shut + Send + 'static, switch: &Arc<Switch>) {
    let switch = Arc::clone(switch);
    background(move || {
        let mut bytes = [0; 16 * 1024];
        loop {
            let count = from.read(&mut bytes).unwrap_or(0);
            switch.wait_until_mended();
            if count == 0 || switch.is_closed.load(Ordering::SeqCst) || to.write_all(&bytes[..count]).is_err() {
                to.shut();
                return;
            }
        }
    });
}

/// The end of a connection that can be closed in both directions.
trait Shut {
    fn shut(&self);
}

impl Shut for TcpStream {
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

impl Shut for UnixStream {
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}
