//! Access to the gRPC port: tokens with scopes, rotation of tokens, client certificates, connection limits.

use std::{
    collections::BTreeSet,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use http::uri::PathAndQuery;
use prost::Message as _;
use prost_types::FileDescriptorProto;
use proto::{
    Caller, Engine, Transport,
    access::{REQUIREMENTS, Requirement},
    v1,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio_stream::StreamExt;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt;

use crate::{
    grpc::{Port, mug, with_key},
    harness::{Api, LedgerProcess, Process, Shop, Split, folder, order, until, until_ready},
    limits::connect_from,
};

crate::tests!(
    the_service_token_grants_all_calls_except_those_of_the_operator,
    a_payment_is_inspected_with_the_operators_token_or_an_admins_key,
    two_tokens_of_a_scope_are_valid_at_once,
    the_service_token_is_sufficient_for_a_facade,
    weak_tokens_are_rejected_at_the_start,
    a_port_with_a_client_authority_accepts_only_its_clients,
    a_facade_of_several_engines_uses_client_certificates,
    unusable_certificates_are_rejected_at_the_start,
    a_client_that_is_idle_after_the_tls_handshake_is_disconnected,
    one_ip_address_gets_at_most_half_of_the_connections,
);

const OPERATOR: &str = "operator-0123456789-0123456789-0123456789";
const SERVICE: &str = "service-0123456789-0123456789-0123456789";

/// Returns the paths of all methods that reflection lists, except health and reflection.
pub(crate) async fn methods(channel: Channel, token: &str) -> BTreeSet<String> {
    let mut client = ServerReflectionClient::new(Transport::remote(channel, Some(token)).expect("a token"));
    let mut builder = async |question| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let mut responses =
            client.server_reflection_info(tokio_stream::iter([request])).await.expect("reflected").into_inner();
        responses.next().await.expect("a response").expect("reflected").message_response
    };
    let Some(MessageResponse::ListServicesResponse(list)) = builder(MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list of services");
    };
    let mut methods = BTreeSet::new();
    for service in list.service.iter().filter(|service| service.name.starts_with("hivetill.")) {
        let question = MessageRequest::FileContainingSymbol(service.name.clone());
        let Some(MessageResponse::FileDescriptorResponse(files)) = builder(question).await else { panic!("no file") };
        for file in files.file_descriptor_proto {
            let file = FileDescriptorProto::decode(file.as_slice()).expect("a description");
            let described =
                file.service.iter().filter(|found| format!("{}.{}", file.package(), found.name()) == service.name);
            methods.extend(described.flat_map(|found| {
                found.method.iter().map(|method| format!("/{}/{}", service.name, method.name())).collect::<Vec<_>>()
            }));
        }
    }
    methods
}

/// Calls a method with an empty message and returns the status.
async fn call(channel: Channel, path: &str, headers: &[(&'static str, &str)]) -> Status {
    let mut client: Grpc<Channel> = Grpc::new(channel);
    client.ready().await.expect("ready");
    let mut request = Request::new(());
    for (name, value) in headers {
        let value = http::HeaderValue::from_bytes(value.as_bytes()).expect("a header");
        request.metadata_mut().as_mut().append(*name, value);
    }
    let path = PathAndQuery::try_from(path).expect("a path");
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    match client.server_streaming(request, path, codec).await {
        Err(status) => status,
        Ok(response) => response.into_inner().message().await.err().unwrap_or_else(|| Status::ok("")),
    }
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

fn the_service_token_grants_all_calls_except_those_of_the_operator() {
    let port = Port::with(&[&format!("--set=grpc.token={OPERATOR}"), &format!("--set=grpc.service_token={SERVICE}")]);
    let channel = port.channel();
    let methods = port.run(methods(channel.clone(), OPERATOR));
    let rows: BTreeSet<String> = REQUIREMENTS.iter().map(|(method, _)| (*method).to_owned()).collect();
    assert_eq!(methods, rows, "every method that is served has a row in the table of requirements");
    let mut refused = BTreeSet::new();
    for method in &methods {
        for wrong in ["", "Bearer", "Bearer wrong", "Bearer service-0123456789-0123456789-012345678"] {
            let status = port.run(call(channel.clone(), method, &[("authorization", wrong)]));
            assert_eq!(
                (status.code(), reason(&status).as_str()),
                (Code::Unauthenticated, "ENGINE_ACCESS_DENIED"),
                "{method}"
            );
        }
        let status = port.run(call(channel.clone(), method, &[("authorization", &format!("Bearer {SERVICE}"))]));
        match reason(&status).as_str() {
            "OPERATOR_TOKEN_REQUIRED" => {
                assert_eq!(status.code(), Code::PermissionDenied, "{method}");
                refused.insert(method.rsplit('/').next().unwrap_or_default().to_owned());
            }
            other => assert_ne!(other, "ENGINE_ACCESS_DENIED", "{method}"),
        }
    }
    let wanted = [
        "CopyStore",
        "DescribeEngine",
        "ExportAccount",
        "InspectPayment",
        "RegisterAdmin",
        "RotateReceiptKey",
        "VerifyMerchant",
        "VerifyStore",
    ];
    assert_eq!(refused, wanted.map(str::to_owned).into());
    let by_table = REQUIREMENTS.iter().filter(|(_, requirement)| *requirement != Requirement::Service).count();
    assert_eq!(by_table, wanted.len());
    // Neither an admin's key nor another spelling of a path grants access.
    for path in [
        "/hivetill.engine.v1.MaintenanceService/CopyStore",
        "/hivetill.engine.v1.MaintenanceService/CopyStore/",
        "/hivetill.engine.v1.MaintenanceService/copystore",
        "/hivetill.engine.v1.MaintenanceService/Copy%53tore",
        "//hivetill.engine.v1.MaintenanceService/CopyStore",
        "/hivetill.engine.v1.MaintenanceService/CopyStore?x=1",
        "/hivetill.engine.v1.MerchantService/RegisterAdmin",
    ] {
        let headers = [("authorization", &*format!("Bearer {SERVICE}")), ("x-api-key", port.dev.admin_key())];
        let status = port.run(call(channel.clone(), path, &headers));
        assert!(matches!(status.code(), Code::PermissionDenied | Code::Unimplemented), "{path}: {status:?}");
    }
    // If there are two tokens, the first one decides.
    let path = "/hivetill.engine.v1.MaintenanceService/DescribeEngine";
    let headers = [("authorization", &*format!("Bearer {SERVICE}")), ("authorization", &*format!("Bearer {OPERATOR}"))];
    assert_eq!(port.run(call(channel.clone(), path, &headers)).code(), Code::PermissionDenied);
    let headers = [("authorization", &*format!("Bearer {OPERATOR}"))];
    assert_eq!(port.run(call(channel, path, &headers)).code(), Code::Ok);
}

fn a_payment_is_inspected_with_the_operators_token_or_an_admins_key() {
    let port = Port::with(&[&format!("--set=grpc.token={OPERATOR}"), &format!("--set=grpc.service_token={SERVICE}")]);
    let (shop, channel) = (port.dev.shop(), port.channel());
    let request = || v1::InspectPaymentRequest { payment_id: shop.open_payment().id };
    let inspect = |token: &str, request: Request<v1::InspectPaymentRequest>| {
        let engine = Engine::new(Transport::remote(channel.clone(), Some(token)).expect("a token"));
        port.run(engine.payments().inspect_payment(request)).map(|_| ()).map_err(|status| reason(&status))
    };
    assert_eq!(inspect(OPERATOR, Request::new(request())), Ok(()));
    assert_eq!(inspect(SERVICE, Caller::with_key(port.dev.admin_key()).request(request())), Ok(()));
    assert_eq!(inspect(SERVICE, Request::new(request())), Err("OPERATOR_TOKEN_REQUIRED".to_owned()));
    assert_eq!(inspect(SERVICE, with_key(&shop, request())), Err("ADMIN_REQUIRED".to_owned()));
    // A key that is not text is a wrong key, not a missing one.
    for token in [SERVICE, OPERATOR] {
        let mut garbled = Request::new(request());
        let key = http::HeaderValue::from_bytes(b"sk_live_\xff").expect("a header");
        garbled.metadata_mut().as_mut().insert("x-api-key", key);
        assert_eq!(inspect(token, garbled), Err("INVALID_API_KEY".to_owned()));
    }
}

fn two_tokens_of_a_scope_are_valid_at_once() {
    let (old, old_service) = (OPERATOR.replace("operator", "old"), SERVICE.replace("service", "old-service"));
    let port = Port::with(&[
        &format!("--set=grpc.token={OPERATOR}"),
        &format!("--set=grpc.previous_token={old}"),
        &format!("--set=grpc.service_token={SERVICE}"),
        &format!("--set=grpc.previous_service_token={old_service}"),
    ]);
    assert_eq!(port.dev.startup["grpcToken"], OPERATOR, "dev prints the operator's token");
    let channel = port.channel();
    for (token, code) in [
        (OPERATOR, Code::Ok),
        (&old, Code::Ok),
        (SERVICE, Code::PermissionDenied),
        (&old_service, Code::PermissionDenied),
    ] {
        let authorization = format!("Bearer {token}");
        let asked = |method: &str| {
            let path = format!("/hivetill.engine.v1.{method}");
            port.run(call(channel.clone(), &path, &[("authorization", &authorization)])).code()
        };
        assert_eq!((asked("FeeService/GetFeeRate"), asked("MaintenanceService/DescribeEngine")), (Code::Ok, code));
    }
}

fn the_service_token_is_sufficient_for_a_facade() {
    let folder = folder("access");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let (token, service) = (format!("--set=grpc.token={OPERATOR}"), format!("--set=grpc.service_token={SERVICE}"));
    let (_engine, grpc) = Split::engine_with(&folder.join("data"), &ledger.ledger, "127.0.0.1:0", &[&token, &service]);
    let url = format!("--engine-url={grpc}");
    let shown = format!("--set=grpc.token={SERVICE}");
    let mut facade = Process::start(&["facade", "--listen", "127.0.0.1:0", "--set=limits.profile=off", &url, &shown]);
    let api = Api::new(&format!("http://{}", facade.log_after("listening on ")));
    until_ready(&api);
    let shop = Shop::open(&api, &ledger.ledger);
    shop.post("/api/public/payments", &order()).send().ok(201);
    let admin = |token: &str| {
        let token = format!("--set=grpc.token={token}");
        Process::start(&["admin", "--json", "--account", "hivetill.fees", "--engine-url", &grpc, &token]).finish()
    };
    let refused = admin(SERVICE);
    assert!(refused.code == Some(1) && refused.stderr.contains("operator's token"), "{refused:?}");
    assert!(admin(OPERATOR).success);
}

fn weak_tokens_are_rejected_at_the_start() {
    let folder = folder("access");
    let data = folder.join("data");
    let data_flag = format!("--data={}", data.to_str().expect("a path"));
    let start = |settings: &[&str]| {
        let mut args = vec!["engine".to_owned(), "--init".to_owned(), data_flag.clone()];
        args.extend(
            ["--network", "dev", "--node", "http://127.0.0.1:1", "--grpc-listen", "127.0.0.1:0"].map(str::to_owned),
        );
        args.extend(settings.iter().map(|setting| format!("--set={setting}")));
        let ended = Process::start(&args).finish();
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(!ended.stderr.contains("abc"), "a token is never shown: {ended:?}");
        ended.stderr
    };
    for name in ["grpc.token", "grpc.previous_token", "grpc.service_token", "grpc.previous_service_token"] {
        for token in ["abc", "abcdefghijklmnopqrstuvwxyz12345", "abcdefghijklmnop abcdefghijklmnop"] {
            let report = start(&[&format!("{name}={token}")]);
            assert!(report.contains(&format!("setting `{name}` must be 32 to 512 visible")), "{report}");
        }
    }
    let same = [format!("grpc.token={OPERATOR}"), format!("grpc.service_token={OPERATOR}")];
    assert!(start(&[&same[0], &same[1]]).contains("grpc.service_token"));
    // The token in the token file must follow the same rules.
    std::fs::create_dir_all(&data).expect("made");
    std::fs::write(data.join("grpc-token"), "abc\n").expect("written");
    let report = start(&[]);
    assert!(report.contains("grpc.token: ") && report.contains("grpc-token must be 32 to 512 visible"), "{report}");
    std::fs::write(data.join("grpc-token"), SERVICE).expect("written");
    let report = start(&[&format!("grpc.previous_service_token={SERVICE}")]);
    assert!(report.contains("grpc.previous_service_token: must not be the operator's token"), "{report}");
}

fn certificate(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/certificates")).join(name)
}

fn pem(name: &str) -> Vec<u8> {
    std::fs::read(certificate(name)).expect("a certificate")
}

fn setting(name: &str, file: &str) -> String {
    format!("--set=grpc.{name}={}", certificate(file).display())
}

fn a_port_with_a_client_authority_accepts_only_its_clients() {
    let tls = [
        setting("tls_cert", "server.pem"),
        setting("tls_key", "server.key"),
        setting("tls_client_ca", "authority.pem"),
    ];
    let port = Port::with(&[&tls[0], &tls[1], &tls[2]]);
    let url = port.dev.startup["grpc"].as_str().expect("the port").to_owned();
    assert!(url.starts_with("https://"), "{url}");
    let engine = |client: Option<&str>| {
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem("authority.pem")));
        if let Some(client) = client {
            tls = tls.identity(Identity::from_pem(pem(&format!("{client}.pem")), pem(&format!("{client}.key"))));
        }
        let endpoint = Endpoint::from_shared(url.clone()).expect("a URL").tls_config(tls).expect("certificates");
        let channel = port.run(async { endpoint.connect_lazy() });
        Engine::new(Transport::remote(channel, port.dev.startup["grpcToken"].as_str()).expect("a token"))
    };
    let shop = port.dev.shop();
    let create = |client| {
        let made = port.run(engine(client).payments().create_payment(with_key(&shop, mug())));
        made.map(|_| ()).map_err(|status| status.code())
    };
    assert_eq!(create(Some("client")), Ok(()));
    // A certificate of another authority, none, a server certificate of this authority, and one that has expired.
    for wrong in [Some("foreign-client"), None, Some("server"), Some("expired-client")] {
        assert_eq!(create(wrong), Err(Code::Unavailable), "{wrong:?}");
    }
    let token = format!("--set=grpc.token={}", port.dev.startup["grpcToken"].as_str().expect("a token"));
    let ca = setting("tls_ca", "authority.pem");
    let admin = |more: &[&str]| {
        let args = ["admin", "--json", "--account", "hivetill.fees", "--engine-url", &url, &token, &ca];
        Process::start(&[args.as_slice(), more].concat()).finish()
    };
    let own = [setting("tls_client_cert", "client.pem"), setting("tls_client_key", "client.key")];
    let made = admin(&[&own[0], &own[1]]);
    assert!(made.success, "{made:?}");
    let refused = admin(&[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("grpc.tls_client_cert"), "{refused:?}");
    let refused = admin(&[&own[0], &own[1], &setting("tls_ca", "foreign-authority.pem")]);
    assert!(refused.code == Some(1) && refused.stderr.contains("check grpc.tls_ca"), "{refused:?}");
    let refused =
        admin(&[&setting("tls_client_cert", "expired-client.pem"), &setting("tls_client_key", "expired-client.key")]);
    let words = "grpc.tls_client_cert: the certificate has expired";
    assert!(refused.code == Some(3) && refused.stderr.contains(words), "{refused:?}");
}

fn a_facade_of_several_engines_uses_client_certificates() {
    let port = Port::with(&[
        &setting("tls_cert", "server.pem"),
        &setting("tls_key", "server.key"),
        &setting("tls_client_ca", "authority.pem"),
    ]);
    let url = port.dev.startup["grpc"].as_str().expect("the port").to_owned();
    // One engine under two names of its certificate.
    let urls = format!("--engine-url={url},{}", url.replace("127.0.0.1", "localhost"));
    let token = format!("--set=grpc.token={}", port.dev.startup["grpcToken"].as_str().expect("a token"));
    let ca = setting("tls_ca", "authority.pem");
    let start = |more: &[&str]| {
        let fixed = ["facade", "--listen=127.0.0.1:0", "--set=limits.profile=off", &urls, &token, &ca];
        let mut facade = Process::start(&[fixed.as_slice(), more].concat());
        let api = Api::new(&format!("http://{}", facade.log_after("listening on ")));
        (facade, api)
    };
    let own = [setting("tls_client_cert", "client.pem"), setting("tls_client_key", "client.key")];
    let (_facade, api) = start(&[&own[0], &own[1]]);
    until_ready(&api);
    let shop = port.dev.shop();
    Shop { api, ..shop.clone() }.open_payment();
    let (mut facade, api) = start(&[]);
    until("a response", || api.get("/api/health").try_send().ok()).refused(503, "engine_unavailable");
    facade.log_after("grpc.tls_client_cert and ");
    let twice = Process::start(&["facade", &format!("--engine-url={url},{url}"), &token]).finish();
    assert!(twice.code == Some(3) && twice.stderr.contains("engine_url"), "{twice:?}");
}

fn unusable_certificates_are_rejected_at_the_start() {
    let folder = folder("access");
    let data_flag = format!("--data={}", folder.join("data").to_str().expect("a path"));
    let empty = folder.join("empty.pem");
    std::fs::write(&empty, "").expect("written");
    let empty = format!("--set=grpc.tls_client_ca={}", empty.display());
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let (server, key) = (setting("tls_cert", "server.pem"), setting("tls_key", "server.key"));
    let (expired, its_key) = (setting("tls_cert", "expired-server.pem"), setting("tls_key", "expired-server.key"));
    for (more, words) in [
        ([&expired, &its_key, ""], "grpc.tls_cert: the certificate has expired"),
        ([&server, &setting("tls_key", "client.key"), ""], "grpc.tls_cert: "),
        ([&setting("tls_cert", "server.key"), &key, ""], "grpc.tls_cert: "),
        ([&server, &key, &empty], "grpc.tls_client_ca: "),
        ([&server, &key, &setting("tls_client_ca", "client.key")], "grpc.tls_client_ca: "),
    ] {
        let node = &ledger.ledger.rpc.base;
        let fixed =
            ["engine", "--init", &data_flag, "--network", "dev", "--node", node, "--grpc-listen", "127.0.0.1:0"];
        let args: Vec<&str> = fixed.into_iter().chain(more.into_iter().filter(|arg| !arg.is_empty())).collect();
        let ended = Process::start(&args).finish();
        assert!(ended.code == Some(3) && ended.stderr.contains(words), "{words}: {ended:?}");
    }
}

/// How long a test waits for the server to close a connection, far beyond the server's deadline.
const READ_TIMEOUT: Duration = Duration::from_secs(40);

/// Returns whether the server has closed the connection.
fn is_closed(read: std::io::Result<usize>) -> bool {
    match read {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

fn a_client_that_is_idle_after_the_tls_handshake_is_disconnected() {
    let port = Port::with(&[&setting("tls_cert", "server.pem"), &setting("tls_key", "server.key")]);
    let address = port.dev.startup["grpc"].as_str().expect("the port").trim_start_matches("https://").to_owned();
    let mut roots = rustls::RootCertStore::empty();
    let authority = CertificateDer::pem_slice_iter(&pem("authority.pem")).collect::<Result<Vec<_>, _>>();
    roots.add_parsable_certificates(authority.expect("PEM"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    // Nothing, and the HTTP/2 preface without its last byte.
    for sent in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
        let name = "127.0.0.1".try_into().expect("a name");
        let mut tls = rustls::ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let mut stream = TcpStream::connect(&address).expect("listening");
        stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a timeout");
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).expect("the handshake");
        }
        let mut stream = rustls::Stream::new(&mut tls, &mut stream);
        stream.write_all(sent).and_then(|()| stream.flush()).expect("sent");
        let read = loop {
            match stream.read(&mut [0; 1_024]) {
                // The server may send first.
                Ok(1..) => {}
                read => break read,
            }
        };
        assert!(is_closed(read), "{sent:?}");
    }
}

fn one_ip_address_gets_at_most_half_of_the_connections() {
    const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let port = Port::with(&["--set=grpc.connections=8"]);
    let url = port.dev.startup["grpc"].as_str().expect("the port").to_owned();
    let open = || {
        let mut stream = connect_from(Ipv4Addr::new(127, 0, 0, 2), &url);
        stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a timeout");
        // A closed connection may fail to write.
        let _ = stream.write_all(OPENING);
        let is_open = !is_closed(stream.read(&mut [0; 64]));
        (stream, is_open)
    };
    let mut streams: Vec<_> = (0..12).map(|_| open()).collect();
    assert_eq!(streams.iter().filter(|(_, is_open)| *is_open).count(), 4);
    // Other addresses can still connect.
    let health = port.run(port.engine().system().get_health(Caller::default().request(v1::GetHealthRequest {})));
    health.expect("a call from another address");
    streams.retain(|(_, is_open)| *is_open);
    streams.pop();
    until("a connection to be free again", || open().1.then_some(()));
}
