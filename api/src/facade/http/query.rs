//! Reads query parameters, and the fields of HTML forms, which have the same encoding.

use engine::{money::Currency, time::Timestamp};
use proto::{ApiError, Reason, v1};

use super::nearest::nearest;
use crate::facade::record;

/// A query parameter: its name, the name of its schema in `schemas::parameter`, and its description.
pub(crate) type Parameter = (&'static str, &'static str, &'static str);

/// Maximum page number.
const PAGE_MAX: u32 = 1_000_000_000;
const LIMIT_MAX: u32 = 100;
const DAYS_MAX: u32 = 366;
const IDS_MAX: usize = 100;
const QUERY_MAX_CHARS: usize = 200;

/// Parameters that are being read. Errors are collected and returned by [`Query::finish`].
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    violations: Vec<(String, String)>,
    /// The parameters of the route; `None` if others are ignored.
    known: Option<&'static [Parameter]>,
}

impl Query {
    /// Parses `name=value&…`; unknown parameters are ignored.
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = url::form_urlencoded::parse(raw.as_bytes()).into_owned().collect();
        Self { pairs, violations: Vec::new(), known: None }
    }

    /// Parses `name=value&…`; with `known`, other parameters are errors.
    pub(crate) fn of_route(raw: &str, known: Option<&'static [Parameter]>) -> Self {
        Self { known, ..Self::parse(raw) }
    }

    /// Returns the first value of a parameter; `None` if it is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Reads `page`, from 1; default 1.
    pub(crate) fn page(&mut self) -> u32 {
        self.number("page", PAGE_MAX).unwrap_or(1)
    }

    /// Reads `limit`, 1 to 100; default 20.
    pub(crate) fn limit(&mut self) -> u32 {
        self.number("limit", LIMIT_MAX).unwrap_or(20)
    }

    /// Reads `cursor`, which the engine validates; empty if missing.
    pub(crate) fn cursor(&self) -> String {
        self.get("cursor").unwrap_or_default().to_owned()
    }

    /// Reads the filters of the list of payments.
    pub(crate) fn payments(&mut self) -> v1::ListPaymentsRequest {
        let (page, limit) = (self.page(), self.limit());
        v1::ListPaymentsRequest {
            skip: skip(page, limit),
            page_size: limit,
            page_token: self.cursor(),
            statuses: self.statuses(),
            created_from: self.instant("from"),
            created_to: self.instant("to"),
            currency: self.currency(),
            min_amount_units: self.units("minAmount"),
            max_amount_units: self.units("maxAmount"),
            unusual: self.boolean("unusual"),
            ids: self.ids(),
            query: self.search(),
        }
    }

    /// Reads `query`, a text to search for.
    pub(crate) fn search(&mut self) -> Option<String> {
        let text = self.get("query")?.to_owned();
        if text.chars().count() > QUERY_MAX_CHARS {
            return self.wrong("query", format!("must have at most {QUERY_MAX_CHARS} characters"));
        }
        Some(text)
    }

    /// Reads an amount in smallest units.
    fn units(&mut self, name: &str) -> Option<u64> {
        let text = self.get(name)?;
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse().ok().filter(|_| digits) {
            Some(units) => Some(units),
            None => self.wrong(name, "must be a whole number of smallest units"),
        }
    }

    /// Reads `days`, 1 to 366; default 30.
    pub(crate) fn days(&mut self) -> u32 {
        self.number("days", DAYS_MAX).unwrap_or(30)
    }

    /// Reads a Boolean.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        match self.get(name)? {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => self.wrong(name, "must be true or false"),
        }
    }

    /// Finishes reading.
    ///
    /// # Errors
    /// `unknown_field` if there are parameters that the route does not have, otherwise `validation_failed`, with every wrong one.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let names = || self.known.into_iter().flatten().map(|(name, _, _)| *name);
        let mut unknown: Vec<&str> = match self.known {
            Some(_) => self.pairs.iter().map(|(name, _)| name.as_str()).collect(),
            None => Vec::new(),
        };
        unknown.retain(|name| names().all(|known| known != *name));
        unknown.dedup();
        if unknown.is_empty() && self.violations.is_empty() {
            return Ok(());
        }
        let reason = if unknown.is_empty() { Reason::ValidationFailed } else { Reason::UnknownField };
        let unknown = unknown.into_iter().map(|name| {
            let message = match nearest(name, names()) {
                Some(near) => format!("is not a parameter of this route; did you mean {near}?"),
                None => "is not a parameter of this route".to_owned(),
            };
            (name.to_owned(), message)
        });
        let all = unknown.chain(self.violations.iter().cloned());
        Err(all.fold(ApiError::new(reason), |error, (field, message)| error.and_field(field, message)))
    }

    /// Records an error of a parameter and returns the default value.
    pub(crate) fn wrong<T: Default>(&mut self, name: &str, message: impl Into<String>) -> T {
        self.violations.push((name.to_owned(), message.into()));
        T::default()
    }

    fn number(&mut self, name: &str, max: u32) -> Option<u32> {
        // `limit=` is an error: only a missing parameter has a default.
        let text = self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u32>().ok().filter(|number| digits && (1..=max).contains(number)) {
            Some(number) => Some(number),
            None => self.wrong(name, format!("must be a whole number from 1 to {max}")),
        }
    }

    /// Reads a list: the parameter may be repeated and its values separated by commas.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let values = self.pairs.iter().filter(|(key, _)| key == name).flat_map(|(_, value)| value.split(','));
        values.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
    }

    fn statuses(&mut self) -> Vec<i32> {
        let mut statuses = Vec::new();
        for word in self.list("status") {
            match record::status_of_word(&word) {
                Some(status) => statuses.push(status.into()),
                None => self.wrong(
                    "status",
                    "must be pending, processing, completed, failed, user_cancelled or system_cancelled",
                ),
            }
        }
        statuses
    }

    pub(crate) fn currency(&mut self) -> Option<i32> {
        match Currency::parse(self.get("currency")?) {
            Some(currency) => Some(record::currency_to_wire(currency).into()),
            None => self.wrong("currency", "must be HIVE or HBD"),
        }
    }

    fn instant(&mut self, name: &str) -> Option<proto::time::Timestamp> {
        match Timestamp::parse(self.get(name)?) {
            Some(instant) => Some(record::instant_to_wire(instant)),
            None => self.wrong(name, "must be an ISO 8601 instant such as 2026-11-20T14:00:00Z"),
        }
    }

    fn ids(&mut self) -> Vec<String> {
        let ids = self.list("ids");
        if ids.len() > IDS_MAX {
            return self.wrong("ids", format!("must have at most {IDS_MAX} payment ids"));
        }
        ids
    }
}

/// Returns the number of items on the pages before a page.
pub(crate) fn skip(page: u32, limit: u32) -> u64 {
    u64::from(page.saturating_sub(1)) * u64::from(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(raw: &str) -> Vec<String> {
        let mut query = Query::parse(raw);
        query.payments();
        match query.finish() {
            Ok(()) => Vec::new(),
            Err(error) => error.fields.into_iter().map(|field| field.field).collect(),
        }
    }

    #[test]
    fn pages_and_limits_have_a_range() {
        for good in ["", "page=1&limit=100", "page=7", "limit=1", "unknown=x", "status="] {
            assert_eq!(named(good), [""; 0], "{good}");
        }
        for bad in ["0", "-1", "1.5", "abc", "", "%201", "+1", "99999999999", "1e2"] {
            assert_eq!(named(&format!("page={bad}")), ["page"], "{bad}");
            assert_eq!(named(&format!("limit={bad}")), ["limit"], "{bad}");
        }
        assert_eq!(named("limit=101"), ["limit"]);
    }

    #[test]
    fn an_unknown_parameter_is_reported_with_the_nearest_known_name() {
        let known: &[Parameter] = &[("status", "statuses", ""), ("unusual", "boolean", ""), ("page", "page", "")];
        let refused = |raw: &str| {
            let mut query = Query::of_route(raw, Some(known));
            query.page();
            query.finish().expect_err(raw)
        };
        let error = refused("unusal=true&utm_source=x&page=0&status=paid");
        assert_eq!((error.reason, error.http()), (Reason::UnknownField, 400));
        let reported: Vec<(&str, &str)> = error.fields.iter().map(|f| (f.field.as_str(), f.message.as_str())).collect();
        assert_eq!(reported[0], ("unusal", "is not a parameter of this route; did you mean unusual?"));
        assert_eq!(reported[1], ("utm_source", "is not a parameter of this route"));
        assert_eq!(reported[2].0, "page");
        Query::parse("utm_source=x").finish().expect("pages ignore unknown parameters");
    }

    #[test]
    fn every_filter_is_read_or_reported() {
        let mut query = Query::parse(
            "status=pending,completed&status=failed&currency=HIVE&from=2026-11-20T14:00:00Z&unusual=true&ids=a,b&query=blue%20mug&minAmount=1&maxAmount=2500",
        );
        let request = query.payments();
        query.finish().expect("good");
        assert_eq!(request.statuses, [1, 3, 4]);
        assert_eq!(request.currency, Some(v1::Currency::Hive.into()));
        assert_eq!(request.created_from, Some(proto::time::from_millis(1_795_183_200_000)));
        assert_eq!((request.unusual, request.query.as_deref()), (Some(true), Some("blue mug")));
        assert_eq!(request.ids, ["a", "b"]);
        assert_eq!((request.min_amount_units, request.max_amount_units), (Some(1), Some(2_500)));
        assert_eq!(
            named("status=paid&currency=hbd&from=yesterday&to=2026-11-20&unusual=maybe&minAmount=-1&maxAmount=1.5"),
            ["status", "from", "to", "currency", "minAmount", "maxAmount", "unusual"]
        );
        assert_eq!(named(&format!("ids={}", "x,".repeat(101))), ["ids"]);
    }
}
