//! Compares every response of every test with the OpenAPI description.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{http::Response, shared};

thread_local! {
    /// The endpoint of the description also responds while the gateway starts.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// The description, and validators compiled from its parts.
struct Description {
    document: Value,
    validators: Mutex<BTreeMap<String, Arc<Validator>>>,
}

/// Panics when the operation of a response describes no such status, content type or schema.
#[track_caller]
pub(super) fn check(method: &str, path: &str, response: &Response) {
    if IS_ASKING.get() {
        return;
    }
    let description = unjudged(description);
    if let Err(why) = description.judge(method, path, response) {
        panic!("{method} {path} is not described so: {why}: {} {}", response.status, response.text());
    }
}

/// Runs a function whose responses are not compared, because it fetches the description itself.
pub(super) fn unjudged<T>(request: impl FnOnce() -> T) -> T {
    let before = IS_ASKING.replace(true);
    let response = request();
    IS_ASKING.set(before);
    response
}

fn description() -> &'static Description {
    static DESCRIPTION: OnceLock<Description> = OnceLock::new();
    DESCRIPTION.get_or_init(|| {
        let document = shared().api.get("/openapi.json").send().ok(200);
        Description { document, validators: Mutex::default() }
    })
}

impl Description {
    fn judge(&self, method: &str, path: &str, response: &Response) -> Result<(), String> {
        let Some(operation) = self.operation(method, path) else { return Ok(()) };
        let described = &operation["responses"][response.status.to_string()];
        if !described.is_object() {
            return Err("no such status".to_owned());
        }
        let media_type = response.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
        let content = &described["content"];
        if response.body.is_empty() {
            return Ok(());
        }
        let schema = match content.get(media_type) {
            Some(content) => &content["schema"],
            None => return Err(format!("no such content type as {media_type:?}")),
        };
        if media_type != "application/json" {
            return Ok(());
        }
        let body = serde_json::from_slice(&response.body).map_err(|error| error.to_string())?;
        let errors: Vec<String> =
            self.validator(schema).iter_errors(&body).map(|e| format!("{}: {e}", e.instance_path)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    /// Finds the operation of a path; a fixed path has precedence over one with a placeholder.
    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let paths = self.document["paths"].as_object()?;
        let asked: Vec<&str> = path.split('/').collect();
        let fits = |template: &str| {
            let parts: Vec<&str> = template.split('/').collect();
            let is_same = |(part, asked): (&&str, &&str)| part.starts_with('{') && !asked.is_empty() || part == asked;
            parts.len() == asked.len() && parts.iter().zip(&asked).all(is_same)
        };
        let fitting = paths.iter().filter(|(template, _)| fits(template));
        let (_, found) = fitting.min_by_key(|(template, _)| template.matches('{').count())?;
        found.get(method)
    }

    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap_or_else(|broken| broken.into_inner());
        let made = validators.entry(schema.to_string()).or_insert_with(|| {
            let whole = json!({ "allOf": [schema], "components": self.document["components"] });
            let options = jsonschema::options().should_validate_formats(true);
            Arc::new(options.build(&whole).expect("a schema"))
        });
        Arc::clone(made)
    }
}
