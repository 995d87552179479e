//! Pages of lists. A page token has the position in a list, and a digest of the filters of the list. A token of a list with other filters is
//! refused: its position means nothing there.

use prost::Message;
use proto::ApiError;
use sha2::{Digest, Sha256};

/// Default number of items on a page.
const DEFAULT_LIMIT: u32 = 20;
/// Maximum number of items on a page.
pub(super) const MAX_LIMIT: u32 = 100;

/// The filters of a list.
pub(super) struct Filters(String);

impl Filters {
    /// Returns the filters of a request: the request without its page.
    pub(super) fn of(request: &impl Message) -> Self {
        let digest = Sha256::digest(request.encode_to_vec());
        Self(hex::encode(digest.iter().copied().take(4).collect::<Vec<u8>>()))
    }

    /// Returns the position in a token of a request with these filters.
    pub(super) fn read<'a>(&self, token: &'a str) -> Result<&'a str, ApiError> {
        match token.rsplit_once('.') {
            _ if token.is_empty() => Ok(token),
            Some((position, digest)) if digest == self.0 => Ok(position),
            Some((_, digest)) if digest.len() == self.0.len() => Err(ApiError::field(
                "cursor",
                "is of a list with other filters; repeat the filters of the request that returned it, or begin without a cursor",
            )),
            _ => Err(invalid_token()),
        }
    }

    /// Returns the token of a position; an empty position, the end of the list, has an empty token.
    pub(super) fn token(&self, position: String) -> String {
        if position.is_empty() { position } else { format!("{position}.{}", self.0) }
    }
}

/// Reads the size of a page; 0 means the default.
pub(super) fn page_size(size: u32) -> Result<u32, ApiError> {
    match size {
        0 => Ok(DEFAULT_LIMIT),
        size if size <= MAX_LIMIT => Ok(size),
        _ => Err(ApiError::field("limit", format!("must be a whole number from 1 to {MAX_LIMIT}"))),
    }
}

/// Returns the number of the page, from 1, that starts after `skip` items.
pub(super) fn page_after(skip: u64, size: u32) -> Result<u64, ApiError> {
    let size = u64::from(size);
    match skip % size {
        0 => Ok(skip / size + 1),
        _ => Err(ApiError::field("skip", format!("must be a multiple of the page size, {size}"))),
    }
}

/// Returns the error of an invalid page token.
pub(super) fn invalid_token() -> ApiError {
    ApiError::field("cursor", "must be a cursor of an earlier response")
}

/// Reads a page token that is a number; `None` if it is empty.
pub(super) fn numeric_token(token: &str) -> Result<Option<u64>, ApiError> {
    if token.is_empty() {
        return Ok(None);
    }
    let number = token.parse::<u64>().ok().filter(|number| number.to_string() == token);
    number.map(Some).ok_or_else(invalid_token)
}

#[cfg(test)]
mod tests {
    use proto::v1::ListUnmatchedRequest;

    use super::*;

    #[test]
    fn a_token_is_valid_for_the_filters_of_its_list_only() {
        let filters = |statuses| Filters::of(&ListUnmatchedRequest { statuses, ..ListUnmatchedRequest::default() });
        let token = filters(vec![1]).token("7-0-0".to_owned());
        assert_eq!(filters(vec![1]).read(&token).expect("the same filters"), "7-0-0");
        for other in [vec![], vec![2], vec![1, 2]] {
            assert!(filters(other).read(&token).is_err(), "{token}");
        }
        for invalid in ["7-0-0", "7-0-0.", "7-0-0.0000", "."] {
            assert!(filters(vec![1]).read(invalid).is_err(), "{invalid}");
        }
        assert_eq!(
            (filters(vec![]).token(String::new()).as_str(), filters(vec![]).read("").expect("a start")),
            ("", "")
        );
    }
}
