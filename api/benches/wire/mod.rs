//! What both benchmarks of the wire need: a server in a process of its own, and the smallest client.

use std::{
    io::{BufRead, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A server in a process of its own, ended with its value.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) first_line: String,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program is there");
        let mut first_line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut first_line).expect("a line of text");
        Self { child, first_line }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn request(method: &str, path: &str, key: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\naccept: */*\r\nuser-agent: bench\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn report(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("a reader");
}

pub(crate) async fn once(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("listening");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut response = Vec::new();
    read_response(&mut stream, &mut response).await;
    let text = String::from_utf8(response).expect("text");
    assert!(text.starts_with("HTTP/1.1 20"), "{text}");
    text
}

pub(crate) async fn read_response(stream: &mut TcpStream, response: &mut Vec<u8>) {
    response.clear();
    loop {
        let read = stream.read_buf(response).await.expect("an answer");
        assert!(read > 0, "the server hung up: {}", String::from_utf8_lossy(response));
        if let Some(end) = response.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = std::str::from_utf8(&response[..end]).expect("text").to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            let length: usize = length.expect("a length");
            if response.len() >= end + 4 + length {
                return;
            }
        }
    }
}
