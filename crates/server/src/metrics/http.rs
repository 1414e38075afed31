//! The part of HTTP/1.1 that a monitoring system needs: a request, an answer, and the end of the connection.

use crate::stream::Stream;
use std::time::{Duration, Instant};

/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The time in which the whole request must arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads one request and answers it. `page` is called only if the request asks for the page.
pub(super) fn answer(stream: &Stream, page: impl FnOnce() -> String) {
    // Errors of the socket mean that the client went away. They end the connection and have no other effect.
    let _ = stream.set_write_timeout(PATIENCE);
    if let Some(head) = read_head(stream) {
        let _ = stream.write_all(&reply(&head, page));
        stream.drain();
    }
    stream.close();
}

/// The head of the request, up to the empty line.
fn read_head(stream: &Stream) -> Option<Vec<u8>> {
    let end = Instant::now() + PATIENCE;
    let mut head = vec![0; HEAD_BYTES_MAX];
    let mut len = 0;
    while len < head.len() {
        stream.set_read_timeout(end.checked_duration_since(Instant::now())?).ok()?;
        match stream.read(&mut head[len..]) {
            Ok(0) | Err(_) => return None,
            Ok(more) => len += more,
        }
        if head[..len].windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            head.truncate(len);
            return Some(head);
        }
    }
    Some(head)
}

fn reply(head: &[u8], page: impl FnOnce() -> String) -> Vec<u8> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let (status, kind, body) = match words[..] {
        [method, target, version] if version.starts_with(b"HTTP/1.") => {
            let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
            match (method, path) {
                (b"GET" | b"HEAD", b"/metrics") => {
                    ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page())
                }
                (b"GET" | b"HEAD", _) => ("404 Not Found", "text/plain", "GET /metrics\n".to_string()),
                _ => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_string()),
            }
        }
        _ => ("400 Bad Request", "text/plain", "expected an HTTP/1.1 request\n".to_string()),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if words.first() != Some(&&b"HEAD"[..]) {
        reply.extend_from_slice(body.as_bytes());
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_to(head: &str) -> String {
        String::from_utf8(reply(head.as_bytes(), || "up 1\n".to_string())).unwrap()
    }

    #[test]
    fn a_scraper_gets_the_page_and_others_hear_what_is_wrong() {
        let page = answer_to("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nup 1\n"), "{page}");
        assert!(page.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
        assert!(page.contains("Content-Length: 5\r\n"));
        assert!(answer_to("GET /metrics?name=up HTTP/1.0\r\n\r\n").ends_with("up 1\n"));
        let head = answer_to("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(answer_to("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(answer_to("POST /metrics HTTP/1.1\r\n\r\n").contains("Allow: GET, HEAD\r\n"));
        assert!(answer_to("\u{10}nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(answer_to("").starts_with("HTTP/1.1 400"));
    }
}
