//! The tools of the gate's MCP endpoint: each calls a path of the upstream.

use engine::account::AccountName;
use serde_json::{Map, Value, json};

use super::routes::{self, Price};
use crate::commands::section::{Reading, Section};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// One tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    /// The path to which the arguments are posted.
    pub(super) path: String,
    /// The JSON schema of its arguments.
    pub(super) input_schema: Map<String, Value>,
    /// `None` for a free tool.
    pub(super) price: Option<Price>,
}

impl Tool {
    /// Returns the URL of the offer.
    pub(super) fn url(&self) -> String {
        format!("mcp://tool/{}", self.name)
    }
}

/// Reads a tool.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn parse(mut section: Section<'_>, pay_to: Option<AccountName>) -> Reading<Tool> {
    let name = section.text("name")?.filter(|name| is_name(name)).map(str::to_owned);
    let name = name.ok_or_else(|| section.must("name", "1 to 128 letters, digits, `_`, `-` or `.`"))?;
    let path = routes::path(&mut section)?;
    let schema = section.section("input_schema")?.map(|schema| serde_json::to_value(schema.table));
    let input_schema = match schema {
        None => json!({ "type": "object" }),
        Some(Ok(schema)) if schema["type"] == "object" => schema,
        Some(_) => return Err(section.must("input_schema", "a JSON schema with type = \"object\"")),
    };
    let Value::Object(input_schema) = input_schema else { unreachable!("it is an object") };
    let price = routes::price(&mut section, pay_to)?;
    let description = section.text("description")?.unwrap_or_default().to_owned();
    section.end()?;
    Ok(Tool { name, description, path, input_schema, price })
}

/// Checks that no two tools have one name, and that no path has parameters.
///
/// # Errors
/// The name.
pub(super) fn check(tools: &[Tool]) -> Reading<()> {
    for (at, tool) in tools.iter().enumerate() {
        if tools[..at].iter().any(|other| other.name == tool.name) {
            return Err(format!("two tools are named {}", tool.name));
        }
        if tool.path.contains(['{', '}', '?', '#']) {
            return Err(format!("the path of the tool {} must be a path without parameters", tool.name));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn read(text: &str) -> Reading<Tool> {
        let table: Table = text.parse().unwrap();
        parse(Section::new("tool 1", &table), AccountName::parse("shop.demo").ok())
    }

    #[test]
    fn a_tool_has_a_schema_and_a_price() {
        let text = "name = \"report\"\npath = \"/report\"\nprice = \"0.050 HBD\"\ndescription = \"A report\"\n\
                    [input_schema]\ntype = \"object\"\nrequired = [\"topic\"]\n\
                    [input_schema.properties.topic]\ntype = \"string\"\n";
        let tool = read(text).unwrap();
        let schema =
            json!({ "type": "object", "required": ["topic"], "properties": { "topic": { "type": "string" } } });
        assert_eq!(Value::Object(tool.input_schema.clone()), schema);
        let price = tool.price.as_ref().unwrap();
        assert_eq!((price.amount.to_string().as_str(), price.description.as_str()), ("0.050 HBD", "A report"));
        assert_eq!((tool.url().as_str(), tool.description.as_str()), ("mcp://tool/report", "A report"));
        let free = read("name = \"hello\"\npath = \"/hello\"\n").unwrap();
        assert_eq!((free.price, free.input_schema.len()), (None, 1));
    }

    #[test]
    fn a_tool_that_cannot_be_used_is_refused_with_its_place() {
        let cases = [
            ("path = \"/a\"\n", "`tool 1.name` must be"),
            ("name = \"a/b\"\npath = \"/a\"\n", "`tool 1.name` must be"),
            ("name = \"a\"\n", "`tool 1.path` must be"),
            ("name = \"a\"\npath = \"/a\"\ninput_schema = { type = \"string\" }\n", "`tool 1.input_schema` must be"),
            ("name = \"a\"\npath = \"/a\"\nprise = \"0.050 HBD\"\n", "did you mean `tool 1.price`?"),
        ];
        for (text, expected) in cases {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        let tool = |name: &str, path: &str| read(&format!("name = \"{name}\"\npath = \"{path}\"\n")).unwrap();
        assert!(check(&[tool("a", "/a"), tool("a", "/b")]).unwrap_err().contains("two tools"));
        assert!(check(&[tool("a", "/a/{id}")]).unwrap_err().contains("without parameters"));
        assert_eq!(check(&[tool("a", "/a"), tool("b", "/a")]), Ok(()));
    }
}
