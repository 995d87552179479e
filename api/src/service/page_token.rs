//! Page tokens: the position in a list, and a digest of the filters of the list. A token of a list with other filters is
//! refused: its position means nothing there.

use prost::Message;
use proto::ApiError;
use sha2::{Digest, Sha256};

use super::payments::invalid_token;

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
