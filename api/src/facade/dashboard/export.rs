//! Lists as files: CSV that a spreadsheet cannot be tricked by, and JSON.

use http::{HeaderValue, StatusCode, header};
use warp::reply::Response;

/// How a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Json,
}

/// Adds a row of cells, as RFC 4180 has it.
pub(super) fn row(out: &mut String, cells: &[&str]) {
    for (count, text) in cells.iter().enumerate() {
        if count > 0 {
            out.push(',');
        }
        cell(out, text);
    }
    out.push_str("\r\n");
}

/// Adds a cell. Text that a spreadsheet would take for a formula is marked as text.
fn cell(out: &mut String, text: &str) {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_formula && !text.contains(['"', ',', '\r', '\n']) {
        out.push_str(text);
        return;
    }
    out.push('"');
    if is_formula {
        out.push('\'');
    }
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

/// Answers with a file.
pub(super) fn file(name: &str, format: Format, body: Vec<u8>) -> Response {
    let (content_type, ending) = match format {
        Format::Csv => ("text/csv; charset=utf-8", "csv"),
        Format::Json => ("application/json", "json"),
    };
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.{ending}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        let mut out = String::new();
        row(&mut out, &["plain", "a,b", "say \"x\"", "=1+1", "+1", "-1", "@x", "\t=1", "two\nlines", ""]);
        assert_eq!(
            out,
            "plain,\"a,b\",\"say \"\"x\"\"\",\"'=1+1\",\"'+1\",\"'-1\",\"'@x\",\"'\t=1\",\"two\nlines\",\r\n"
        );
    }
}
