//! From an HTTP answer to rows, or to the failure that the server reports.

use memchr::memchr_iter;

use crate::clickhouse::{explain, tsv};
use crate::error::{Error, ErrorKind, ServerError};
use crate::ports::Response;

/// What the server answered to a statement that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How many rows the statement wrote, where the server says it.
    pub written_rows: Option<u64>,
    body: Vec<u8>,
}

impl Answer {
    /// The rows, each a list of fields; NULL is none.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if the last line is cut short or a line has another number of fields.
    pub fn rows<const N: usize>(&self) -> Result<Vec<[Option<Vec<u8>>; N]>, Error> {
        let mut rows = Vec::new();
        for fields in self.fields()? {
            rows.push(fields.try_into().map_err(|_| incomplete())?);
        }
        Ok(rows)
    }

    /// The rows of a result that is all text and never NULL, such as what the server says of itself.
    pub(crate) fn texts(&self) -> Result<Vec<Vec<String>>, Error> {
        let lossy = |field: Option<Vec<u8>>| String::from_utf8_lossy(&field.unwrap_or_default()).into_owned();
        Ok(self.fields()?.into_iter().map(|fields| fields.into_iter().map(lossy).collect()).collect())
    }

    /// The one row of such a result.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if it is anything else: then no ClickHouse has answered.
    pub(crate) fn only_row<const N: usize>(&self) -> Result<[String; N], Error> {
        let row = self.texts().ok().and_then(|mut rows| rows.pop());
        row.and_then(|row| row.try_into().ok())
            .ok_or_else(|| explain::status(200, &String::from_utf8_lossy(&self.body)))
    }

    fn fields(&self) -> Result<Vec<Vec<Option<Vec<u8>>>>, Error> {
        let Some(lines) = self.body.strip_suffix(b"\n") else {
            return if self.body.is_empty() { Ok(Vec::new()) } else { Err(incomplete()) };
        };
        let fields = |line| tsv::split(line, b'\t').map(tsv::unescape).collect();
        Ok(tsv::split(lines, b'\n').map(fields).collect())
    }
}

/// A field that is text by its type, such as a number or a UUID.
pub(crate) fn text(field: Option<Vec<u8>>) -> Result<String, Error> {
    let text = field.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(incomplete)
}

pub(crate) fn incomplete() -> Error {
    Error::new(ErrorKind::Protocol, "the answer is incomplete, or it is not in the format that was asked for")
        .with_hint("look for a proxy between here and the server that changes or cuts answers")
}

/// Tells success from failure: success is a status of 2xx in an answer that is ClickHouse's own, with no exception in the
/// headers and none in the body.
///
/// # Errors
/// The failure, with what the server says of it.
pub(crate) fn decode(response: Response, query_id: &str) -> Result<Answer, Error> {
    let header_code = response.header("X-ClickHouse-Exception-Code").and_then(|code| code.parse().ok());
    let in_body = exception_in_body(&response);
    let succeeded =
        (200..300).contains(&response.status) && is_clickhouse(&response) && header_code.is_none() && in_body.is_none();
    if succeeded {
        return Ok(Answer {
            written_rows: response.header("X-ClickHouse-Summary").and_then(written_rows),
            body: response.body,
        });
    }

    let text = String::from_utf8_lossy(in_body.unwrap_or(&response.body));
    let text = text.trim();
    match header_code.or_else(|| exception_code(text)) {
        Some(code) => Err(explain::server(
            ServerError {
                code,
                name: exception_name(text).unwrap_or_default().to_owned(),
                query_id: Some(response.header("X-ClickHouse-Query-Id").unwrap_or(query_id).to_owned()),
            },
            response.status,
            text,
        )),
        None => Err(explain::status(response.status, text)),
    }
}

/// Whether the answer has a header of ClickHouse's own, as every one of its answers to a statement has. Those of other web
/// servers, which call many a request a success, have none.
fn is_clickhouse(response: &Response) -> bool {
    const PREFIX: &str = "x-clickhouse-";
    let is_own = |name: &str| name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
    response.headers.iter().any(|(name, _)| is_own(name))
}

/// The exception that follows rows already sent: a block with the tag that the header announces (from 25.11), before
/// that a bare last line. Rows cannot look like it: every result of ours begins its lines with a number or NULL.
fn exception_in_body(response: &Response) -> Option<&[u8]> {
    const MARKER: &[u8] = b"__exception__\r\n";
    let body = response.body.as_slice();
    if let Some(tag) = response.header("X-ClickHouse-Exception-Tag") {
        let start = [b"\r\n", MARKER, tag.as_bytes(), b"\r\n"].concat();
        let mut ends = memchr_iter(b'\r', body).filter_map(|at| body.get(at..)?.strip_prefix(start.as_slice()));
        return ends.next();
    }
    let last_line = body.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let text = std::str::from_utf8(last_line).ok()?;
    (text.contains("DB::Exception") && exception_code(text).is_some()).then_some(last_line)
}

/// The number in `Code: 60. DB::Exception: …` or, on old servers, `Code: 60, e.displayText() = …`.
fn exception_code(text: &str) -> Option<i32> {
    let digits = text.strip_prefix("Code: ")?;
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    digits.get(..end)?.parse().ok()
}

/// The name in `… (UNKNOWN_TABLE) (version …)`: the last one in brackets.
fn exception_name(text: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    text.rsplit('(').filter_map(|part| part.split_once(')').map(|(name, _)| name)).find(is_name)
}

/// `written_rows` of the summary, a JSON object whose members are all texts of digits.
fn written_rows(summary: &str) -> Option<u64> {
    let (_, rest) = summary.split_once(r#""written_rows":""#)?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const CASES: &str = include_str!("../../tests/cases/responses.json");

    fn response(case: &Value) -> Response {
        Response {
            status: u16::try_from(case["status"].as_u64().unwrap()).unwrap(),
            headers: case["headers"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                .collect(),
            body: case["body"].as_str().unwrap().into(),
        }
    }

    #[test]
    fn cases() {
        let cases: Value = serde_json::from_str(CASES).unwrap();
        for case in cases["cases"].as_array().unwrap() {
            let kind = decode(response(case), "q").err().map(|error| error.kind.name());
            assert_eq!(kind, case["kind"].as_str(), "{case}");
        }
    }

    #[test]
    fn a_server_error_keeps_code_name_and_query() {
        let error = decode(
            Response {
                status: 404,
                headers: vec![("X-ClickHouse-Exception-Code".into(), "60".into())],
                body: b"Code: 60. DB::Exception: Table m.s does not exist. (UNKNOWN_TABLE) (version 26.7.2.1 (official build))\n".into(),
            },
            "q1",
        )
        .unwrap_err();
        let server = error.server.as_ref().unwrap();
        assert_eq!((server.code, server.name.as_str(), server.query_id.as_deref()), (60, "UNKNOWN_TABLE", Some("q1")));
    }

    #[test]
    fn rows_are_whole_or_refused() {
        let rows = |body: &str| Answer { written_rows: None, body: body.into() }.rows::<2>();
        assert_eq!(rows("").unwrap().len(), 0);
        assert_eq!(
            rows("1\ta\\nb\n2\t\\N\n").unwrap(),
            [[Some(b"1".to_vec()), Some(b"a\nb".to_vec())], [Some(b"2".to_vec()), None]]
        );
        for body in ["1\ta", "1\n", "1\t2\t3\n", "1\ta\n2"] {
            assert_eq!(rows(body).unwrap_err().kind, ErrorKind::Protocol, "{body:?}");
        }
    }

    #[test]
    fn written_rows_come_from_the_summary() {
        assert_eq!(written_rows(r#"{"read_rows":"3","written_rows":"1"}"#), Some(1));
        assert_eq!(written_rows(r#"{"written_rows":"18446744073709551615"}"#), Some(u64::MAX));
        assert_eq!(written_rows(r#"{"written_rows":"-1"}"#), None);
        assert_eq!(written_rows("{}"), None);
    }
}
