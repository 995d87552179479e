//! Webhooks over HTTP: one request, no redirects, no proxy, no cookies, no connection shared between merchants, and
//! only to permitted addresses.

use std::{io::ErrorKind, net::IpAddr, sync::Arc, time::Duration};

use engine::webhook::Outcome;
use futures_util::future::BoxFuture;
use reqwest::{Client, dns::Resolve, redirect::Policy};

use crate::{
    environment::{WebhookRequest, WebhookResponse, WebhookTransport},
    webhooks::addresses::{AllowedAddresses, BLOCKED, Guarded, SystemResolver},
};

/// Timeout of establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum bytes of a response that are read, and that are stored.
const MAX_ANSWER: usize = 64 * 1024;
const MAX_SNIPPET: usize = 1024;

/// Posts webhooks with reqwest.
#[derive(Debug, Clone)]
pub struct HttpWebhooks {
    client: Client,
    allowed: AllowedAddresses,
}

impl HttpWebhooks {
    /// Returns a transport that connects to permitted addresses.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(allowed: AllowedAddresses) -> Result<Self, reqwest::Error> {
        Self::resolving_by(Arc::new(SystemResolver), allowed)
    }

    fn resolving_by(resolver: Arc<dyn Resolve>, allowed: AllowedAddresses) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .dns_resolver(Arc::new(Guarded { resolver, allowed: allowed.clone() }))
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { client, allowed })
    }

    /// Returns whether a URL contains an IP address that is not permitted: such a URL needs no resolver.
    fn is_blocked(&self, url: &str) -> bool {
        let Ok(url) = reqwest::Url::parse(url) else { return true };
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        host.parse::<IpAddr>().is_ok_and(|address| !self.allowed.allows(address))
    }

    async fn send(&self, request: WebhookRequest) -> WebhookResponse {
        if self.is_blocked(&request.url) {
            return WebhookResponse { outcome: Outcome::Blocked, snippet: String::new() };
        }
        let mut outgoing = self.client.post(&request.url).timeout(request.timeout).body(request.body);
        for (name, value) in request.headers {
            outgoing = outgoing.header(name, value);
        }
        let mut answer = match outgoing.send().await {
            Ok(answer) => answer,
            Err(error) => return WebhookResponse { outcome: failure(error), snippet: String::new() },
        };
        // The resolver returned permitted addresses only; the peer must be one of them.
        if answer.remote_addr().is_some_and(|address| !self.allowed.allows(address.ip())) {
            return WebhookResponse { outcome: Outcome::Blocked, snippet: String::new() };
        }
        let status = answer.status();
        let retry_after = answer.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        let mut read = 0;
        let mut body = Vec::new();
        // The status decides: a response that is cut off or never ends does not change it.
        while let Ok(Some(chunk)) = answer.chunk().await {
            read += chunk.len();
            body.extend(chunk.iter().take(MAX_SNIPPET - body.len().min(MAX_SNIPPET)));
            if read >= MAX_ANSWER {
                break;
            }
        }
        let outcome = if status.is_success() {
            Outcome::Accepted { status: status.as_u16() }
        } else {
            Outcome::Refused { status: status.as_u16(), retry_after }
        };
        WebhookResponse { outcome, snippet: String::from_utf8_lossy(&body).into_owned() }
    }
}

impl WebhookTransport for HttpWebhooks {
    fn post(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(self.send(request))
    }

    fn accepts(&self, url: &str) -> bool {
        let parsed = reqwest::Url::parse(url).ok();
        let host = parsed.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
        let is_address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        !self.is_blocked(url) && (is_address || self.allowed.may_name(host))
    }
}

/// Classifies the cause of a failed request.
fn failure(error: reqwest::Error) -> Outcome {
    // A host may have the name of an error.
    let error = error.without_url();
    let mut causes = String::new();
    let (mut kind, mut is_tls) = (None, false);
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(inner) = cause {
        causes.push_str(&inner.to_string());
        is_tls |= inner.is::<rustls::Error>();
        let io = inner.downcast_ref::<std::io::Error>();
        kind = io.map(std::io::Error::kind).filter(|kind| *kind != ErrorKind::Other).or(kind);
        // The error inside an I/O error is not one of its sources.
        let wrapped = io.and_then(|io| io.get_ref()).map(|wrapped| wrapped as &dyn std::error::Error);
        cause = wrapped.or_else(|| inner.source());
    }
    let causes = causes.to_lowercase();
    if error.is_timeout() {
        Outcome::Timeout
    } else if causes.contains(BLOCKED) {
        Outcome::Blocked
    } else if causes.contains("dns") || causes.contains("resolve") {
        Outcome::Dns
    } else if is_tls || causes.contains("certificate") || causes.contains("tls") || causes.contains("handshake") {
        Outcome::Tls
    } else {
        match kind {
            Some(ErrorKind::ConnectionRefused) => Outcome::ConnectionRefused,
            Some(
                ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof,
            ) => Outcome::ConnectionReset,
            Some(ErrorKind::TimedOut) => Outcome::Timeout,
            // The connection was closed in the middle of the response, or before it.
            _ if causes.contains("before message completed") => Outcome::ConnectionReset,
            _ => Outcome::Connect,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport(extra: &[&str]) -> HttpWebhooks {
        // Installed once per process by the first caller.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let networks = extra.iter().map(|network| network.parse().unwrap()).collect();
        HttpWebhooks::new(AllowedAddresses::public_and(networks)).unwrap()
    }

    async fn outcome(transport: &HttpWebhooks, url: &str) -> Outcome {
        let timeout = Duration::from_secs(5);
        transport
            .post(WebhookRequest { url: url.to_owned(), headers: Vec::new(), body: Vec::new(), timeout })
            .await
            .outcome
    }

    #[tokio::test]
    async fn what_may_not_be_dialled_is_blocked_by_address_and_by_name() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let public = transport(&[]);
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"] {
            assert_eq!(outcome(&public, &format!("http://{host}:{port}/")).await, Outcome::Blocked, "{host}");
        }
        let nobody_came = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(nobody_came.is_err(), "somebody dialled");
        assert!(!public.accepts("https://127.0.0.1/hook") && public.accepts("https://shop.example/hook"));
    }

    #[tokio::test]
    async fn what_the_operator_allows_is_dialled() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let allowed = transport(&["127.0.0.0/8", "::1/128"]);
        assert_eq!(
            outcome(&allowed, &format!("http://127.0.0.1:{port}/hook")).await,
            Outcome::Accepted { status: 204 }
        );
        assert!(receiver.await.unwrap().starts_with("POST /hook HTTP/1.1"));
    }

    #[tokio::test]
    async fn network_errors_have_their_names() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        enum Ending {
            Reset,
            Closed,
            Plain,
        }
        // Accepts one connection, reads the beginning of the request, and ends it as configured.
        async fn receiver(ending: Ending) -> u16 {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut begun = [0; 16];
                stream.read_exact(&mut begun).await.unwrap();
                match ending {
                    Ending::Reset => stream.set_zero_linger().unwrap(),
                    Ending::Plain => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap(),
                    Ending::Closed => {}
                }
            });
            port
        }
        let allowed = transport(&["127.0.0.0/8", "::1/128"]);
        let (reset, closed) = (receiver(Ending::Reset).await, receiver(Ending::Closed).await);
        let plain = receiver(Ending::Plain).await;
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        // The paths and hosts have the names of other errors.
        for (url, wanted) in [
            (format!("http://127.0.0.1:{free}/dns/tls"), Outcome::ConnectionRefused),
            (format!("http://127.0.0.1:{reset}/resolve"), Outcome::ConnectionReset),
            (format!("http://127.0.0.1:{closed}/certificate"), Outcome::ConnectionReset),
            (format!("https://127.0.0.1:{plain}/"), Outcome::Tls),
            ("http://certificate.invalid/".to_owned(), Outcome::Dns),
        ] {
            assert_eq!(outcome(&allowed, &url).await, wanted, "{url}");
        }
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/", silent.local_addr().unwrap().port());
        let timeout = Duration::from_millis(200);
        let request = WebhookRequest { url, headers: Vec::new(), body: Vec::new(), timeout };
        assert_eq!(allowed.post(request).await.outcome, Outcome::Timeout);
    }

    /// A name that is public at first, and private afterwards.
    #[derive(Default)]
    struct Rebinding(std::sync::atomic::AtomicU32);

    impl Resolve for Rebinding {
        fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
            let asked = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let address = if asked == 0 { "93.184.216.34:0" } else { "127.0.0.1:0" };
            let found: Vec<std::net::SocketAddr> = vec![address.parse().unwrap()];
            Box::pin(async move { Ok(Box::new(found.into_iter()) as reqwest::dns::Addrs) })
        }
    }

    #[tokio::test]
    async fn a_name_that_is_bound_anew_between_two_dials_leads_nowhere() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let names = Arc::new(Rebinding::default());
        let public = HttpWebhooks::resolving_by(Arc::clone(&names) as _, AllowedAddresses::default()).unwrap();
        let url = format!("http://shop.example:{port}/hook");
        assert!(public.accepts(&url));
        let first = names.resolve("shop.example".parse().unwrap()).await.unwrap().next().unwrap();
        assert!(AllowedAddresses::default().allows(first.ip()), "it was public when it was looked at");
        assert_eq!(outcome(&public, &url).await, Outcome::Blocked);
        let nobody_came = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(nobody_came.is_err(), "somebody dialled");
    }

    #[tokio::test]
    async fn of_many_addresses_only_those_that_may_be_dialled_are_left() {
        struct Many;
        impl Resolve for Many {
            fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
                let found = ["10.0.0.1:0", "93.184.216.34:0", "[::1]:0", "[fe80::1]:0", "1.1.1.1:0"];
                let found: Vec<std::net::SocketAddr> = found.iter().map(|address| address.parse().unwrap()).collect();
                Box::pin(async move { Ok(Box::new(found.into_iter()) as reqwest::dns::Addrs) })
            }
        }
        let guarded = Guarded { resolver: Arc::new(Many), allowed: AllowedAddresses::default() };
        let left: Vec<String> =
            guarded.resolve("x.example".parse().unwrap()).await.unwrap().map(|a| a.ip().to_string()).collect();
        assert_eq!(left, ["93.184.216.34", "1.1.1.1"]);
    }
}
