//! Sends raw bytes on a connection, for requests that no HTTP client sends.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    http::{Api, Response},
    wait::TIMEOUT,
};

/// Sends bytes unchanged and reads until the server closes. `None` if it closes without a response.
#[track_caller]
pub(crate) fn raw(api: &Api, request: &[u8]) -> Option<Response> {
    let address = api.base.strip_prefix("http://").expect("plain http");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    // A server may respond and close before everything is sent.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("the server neither responds nor closes: {error}; so far {bytes:?}"),
        }
    }
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).expect("a header"),
            HeaderValue::from_str(value.trim()).expect("a header"),
        );
    }
    let body = bytes[end + 4..].to_vec();
    Some(Response { status, headers, sent_bytes: body.len(), body })
}
