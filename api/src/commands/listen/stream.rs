//! Reads server-sent events.

/// The longest line that is kept: an event's body is far shorter.
const LONGEST: usize = 4 * 1024 * 1024;

/// A message of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// The cursor behind the message; empty if it has none.
    pub(super) id: String,
    pub(super) event: String,
    pub(super) data: String,
}

/// Collects bytes into messages. One that is cut off is dropped: it comes again.
#[derive(Debug, Default)]
pub(super) struct Parser {
    rest: Vec<u8>,
    message: Message,
}

impl Parser {
    /// Takes the next bytes and returns the messages that they complete.
    ///
    /// # Errors
    /// If a line is too long to be an event.
    pub(super) fn feed(&mut self, part: &[u8]) -> Result<Vec<Message>, &'static str> {
        self.rest.extend_from_slice(part);
        let mut messages = Vec::new();
        let mut start = 0;
        while let Some(length) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            let line = self.rest[start..start + length].to_vec();
            start += length + 1;
            messages.extend(self.line(line.strip_suffix(b"\r").unwrap_or(&line)));
        }
        self.rest.drain(..start);
        if self.rest.len() > LONGEST { Err("the stream of events has a line that is too long") } else { Ok(messages) }
    }

    /// Takes a line; returns the message that it ends.
    fn line(&mut self, line: &[u8]) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return (message != Message::default()).then_some(message);
        }
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut self.message.id),
            "event" => value.clone_into(&mut self.message.event),
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // Comments, and the interval of reconnections.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, event: &str, data: &str) -> Message {
        Message { id: id.to_owned(), event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn messages_are_read_whatever_their_parts() {
        let stream = ": hello\n\nevent:ready\nid:7\nretry:3000\ndata:{}\n\nid: 8\r\nevent: a.b\r\ndata: \u{e9}\r\ndata: 2\r\n\r\nid:9\nda";
        let expected = [message("7", "ready", "{}"), message("8", "a.b", "\u{e9}\n2")];
        for size in 1..=stream.len() {
            let mut parser = Parser::default();
            let found: Vec<Message> =
                stream.as_bytes().chunks(size).flat_map(|part| parser.feed(part).expect("short lines")).collect();
            assert_eq!(found, expected, "in parts of {size} bytes");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = Parser::default();
        assert_eq!(parser.feed(&vec![b'x'; LONGEST]), Ok(Vec::new()));
        assert!(parser.feed(b"x").is_err());
    }
}
