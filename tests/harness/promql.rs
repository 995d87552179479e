//! Evaluates the expressions of the alerting rules against scrapes, with the subset of PromQL that
//! docs/deploy/alarms.yml and docs/deploy/scale-out/alarms.yml use. Durations of `for` are ignored; a range is the time between two scrapes.

#![allow(clippy::float_arithmetic, reason = "metrics are floating-point numbers, and none is money")]

use std::{collections::BTreeMap, path::Path};

type Labels = BTreeMap<String, String>;
type Vector = Vec<(Labels, f64)>;

const NAME: &str = "__name__";

/// One scrape, or a target without a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page(Option<Vector>);

impl Page {
    /// Parses the text of a scrape; none if the target did not respond.
    pub(crate) fn of(text: Option<&str>) -> Self {
        Self(text.map(|text| text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()))
    }

    fn select(&self, name: &str, matchers: &[(String, bool, String)]) -> Vector {
        let up = [(Labels::from([(NAME.to_owned(), "up".to_owned())]), f64::from(u8::from(self.0.is_some())))];
        let all = self.0.iter().flatten().chain(&up);
        let is_wanted = |labels: &Labels| {
            labels[NAME] == name
                && matchers.iter().all(|(label, is_pattern, wanted)| match (label.as_str(), *is_pattern) {
                    // Prometheus adds the job of its own settings.
                    ("job", false) => wanted == "hivetill",
                    (label, false) => labels.get(label).is_some_and(|value| value == wanted),
                    (label, true) => labels.get(label).is_some_and(|value| wanted.split('|').any(|word| word == value)),
                })
        };
        all.filter(|(labels, _)| is_wanted(labels)).cloned().collect()
    }
}

fn sample(line: &str) -> Option<(Labels, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let mut read = Labels::from([(NAME.to_owned(), name.to_owned())]);
    for pair in labels.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty()) {
        let (label, value) = pair.split_once("=\"")?;
        read.insert(label.to_owned(), value.trim_end_matches('"').to_owned());
    }
    Some((read, value.parse().ok()?))
}

/// Returns every alarm of a gateway with its expression.
pub(crate) fn rules() -> Vec<(String, String)> {
    let rules = rules_of("alarms.yml");
    assert!(rules.len() > 10, "{rules:?}");
    rules
}

/// Returns the further alarms of several engines over one database.
pub(crate) fn scale_out_rules() -> Vec<(String, String)> {
    rules_of("scale-out/alarms.yml")
}

fn rules_of(file: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/deploy").join(file);
    let text = std::fs::read_to_string(path).expect("the rules");
    let member = |line: &str, name: &str| line.trim().strip_prefix(name).map(|rest| rest.trim().to_owned());
    let mut rules = Vec::new();
    for line in text.lines() {
        if let Some(alarm) = member(line, "- alert:") {
            rules.push((alarm, String::new()));
        } else if let (Some(expr), Some((_, kept))) = (member(line, "expr:"), rules.last_mut()) {
            *kept = expr;
        }
    }
    assert!(rules.iter().all(|(_, expr)| !expr.is_empty()), "{rules:?}");
    rules
}

/// Returns whether an alarm's expression is true for the later of two scrapes.
#[track_caller]
pub(crate) fn fires(alarm: &str, before: &Page, after: &Page, seconds: f64) -> bool {
    let expr = rules()
        .into_iter()
        .chain(scale_out_rules())
        .find(|(name, _)| name == alarm)
        .unwrap_or_else(|| panic!("no alarm {alarm}"))
        .1;
    match evaluate(&expr, before, after, seconds) {
        Value::Vector(vector) => !vector.is_empty(),
        Value::Scalar(_) => panic!("{alarm} compares nothing: {expr}"),
    }
}

#[derive(Debug, Clone)]
enum Value {
    Scalar(f64),
    Vector(Vector),
}

fn evaluate(expr: &str, before: &Page, after: &Page, seconds: f64) -> Value {
    let mut reader = Reader { rest: expr, before, after, seconds };
    let value = reader.comparison();
    assert!(reader.rest.trim().is_empty(), "{expr}: cannot read {:?}", reader.rest);
    value
}

struct Reader<'a> {
    rest: &'a str,
    before: &'a Page,
    after: &'a Page,
    seconds: f64,
}

impl<'a> Reader<'a> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn wants(&mut self, token: &str) {
        assert!(self.take(token), "{token:?} is missing before {:?}", self.rest);
    }

    fn word(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn comparison(&mut self) -> Value {
        let left = self.product();
        let holds: fn(f64, f64) -> bool = if self.take("==") {
            |a, b| a == b
        } else if self.take(">") {
            |a, b| a > b
        } else if self.take("<") {
            |a, b| a < b
        } else {
            return left;
        };
        let right = self.product();
        let Value::Vector(left) = left else { panic!("a scalar is compared") };
        let kept = left.into_iter().filter(|(labels, value)| match &right {
            Value::Scalar(limit) => holds(*value, *limit),
            Value::Vector(right) => {
                right.iter().any(|(other, limit)| unnamed(other) == unnamed(labels) && holds(*value, *limit))
            }
        });
        Value::Vector(kept.collect())
    }

    fn product(&mut self) -> Value {
        let left = self.term();
        if !self.take("*") {
            return left;
        }
        match (left, self.term()) {
            (Value::Scalar(factor), Value::Vector(vector)) => {
                Value::Vector(vector.into_iter().map(|(labels, value)| (labels, factor * value)).collect())
            }
            other => panic!("a product of {other:?}"),
        }
    }

    fn term(&mut self) -> Value {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            let number = self.word(|c| c.is_ascii_digit() || c == '.');
            return Value::Scalar(number.parse().expect("a number"));
        }
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        match word {
            "sum" | "max" => self.aggregate(word == "max"),
            "rate" | "increase" => {
                self.wants("(");
                let (name, matchers) = self.selector();
                self.wants("[");
                self.word(|c| c.is_ascii_alphanumeric());
                self.wants("]");
                self.wants(")");
                let before = self.before.select(name, &matchers);
                let per = if word == "rate" { self.seconds } else { 1.0 };
                let grown = self.after.select(name, &matchers).into_iter().filter_map(|(labels, now)| {
                    // A series with one sample has no increase.
                    let (_, then) = before.iter().find(|(other, _)| *other == labels)?;
                    Some((unnamed(&labels), if now < *then { now } else { now - then } / per))
                });
                Value::Vector(grown.collect())
            }
            "histogram_quantile" => {
                self.wants("(");
                let Value::Scalar(quantile) = self.term() else { panic!("a quantile is a number") };
                self.wants(",");
                let Value::Vector(buckets) = self.product() else { panic!("buckets are a vector") };
                self.wants(")");
                Value::Vector(quantiles(quantile, &buckets))
            }
            name => {
                let matchers = self.matchers();
                Value::Vector(self.after.select(name, &matchers))
            }
        }
    }

    fn selector(&mut self) -> (&'a str, Vec<(String, bool, String)>) {
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        (name, self.matchers())
    }

    fn matchers(&mut self) -> Vec<(String, bool, String)> {
        let mut matchers = Vec::new();
        if !self.take("{") {
            return matchers;
        }
        while !self.take("}") {
            let label = self.word(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
            let is_pattern = self.take("=~");
            assert!(is_pattern || self.take("="), "a matcher before {:?}", self.rest);
            self.wants("\"");
            let (value, rest) = self.rest.split_once('"').expect("the end of a matcher");
            self.rest = rest;
            matchers.push((label, is_pattern, value.to_owned()));
            self.take(",");
        }
        matchers
    }

    fn aggregate(&mut self, is_max: bool) -> Value {
        let by = self.take("by");
        let without = !by && self.take("without");
        let mut named = Vec::new();
        if by || without {
            self.wants("(");
            while !self.take(")") {
                named.push(self.word(|c| c.is_ascii_alphanumeric() || c == '_').to_owned());
                self.take(",");
            }
        }
        self.wants("(");
        let Value::Vector(vector) = self.comparison() else { panic!("an aggregate of a number") };
        self.wants(")");
        let mut groups: BTreeMap<Labels, f64> = BTreeMap::new();
        for (labels, value) in vector {
            let is_kept = |label: &String| if without { !named.contains(label) } else { named.contains(label) };
            let group = unnamed(&labels).into_iter().filter(|(label, _)| is_kept(label)).collect();
            let sum = groups.entry(group).or_insert(if is_max { f64::MIN } else { 0.0 });
            *sum = if is_max { sum.max(value) } else { *sum + value };
        }
        Value::Vector(groups.into_iter().collect())
    }
}

fn unnamed(labels: &Labels) -> Labels {
    let mut labels = labels.clone();
    labels.remove(NAME);
    labels
}

/// As in Prometheus: linear within the bucket of the quantile.
fn quantiles(quantile: f64, buckets: &Vector) -> Vector {
    let mut groups: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (labels, count) in buckets {
        let mut group = labels.clone();
        let bound = group.remove("le").expect("a bucket has a bound");
        groups.entry(group).or_default().push((bound.parse().expect("a bound"), *count));
    }
    let of_group = |(labels, mut buckets): (Labels, Vec<(f64, f64)>)| {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = buckets.last().map_or(0.0, |last| last.1);
        if total == 0.0 {
            return None;
        }
        let rank = quantile * total;
        let at = buckets.iter().position(|(_, count)| *count >= rank)?;
        let (low, below) = if at == 0 { (0.0, 0.0) } else { buckets[at - 1] };
        let (high, count) = buckets[at];
        let value = if high.is_infinite() { low } else { low + (high - low) * (rank - below) / (count - below) };
        Some((labels, value))
    };
    groups.into_iter().filter_map(of_group).collect()
}
