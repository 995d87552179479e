//! Visual regression: screenshots of the checkout compared with committed pictures.
//!
//! Fonts differ between machines, and each payment has a QR code and times of its own. So what is committed and compared
//! are the mean colors of blocks, 32 in a row, made by `reduce.js` in the browser. `HIVETILL_UPDATE_GOLDEN=1` renews them.

use std::path::PathBuf;

use serde_json::json;

use super::chrome::Tab;

/// The states with a picture, each light and dark.
const STATES: [&str; 4] = ["pay", "completed", "expired", "cancelled"];
/// The widths with a picture, and how much a color channel may differ there on average, of 255. Another font moves
/// more blocks of a narrow page: serif instead of sans-serif differs by up to 13.5 and 4.3.
const WIDTHS: [(u32, f64); 2] = [(375, 16.0), (1_280, 6.0)];
/// How much the height of a page may differ, in percent: another font wraps lines elsewhere (serif: up to 6.2).
const HEIGHT: f64 = 8.0;

/// Compares a screenshot with its committed picture, if the state has one, and returns what differs.
pub(super) async fn compare(tab: &Tab, state: &str, width: u32, scheme: &str, png: &[u8]) -> Option<String> {
    let (_, limit) = WIDTHS.into_iter().find(|(known, _)| *known == width && STATES.contains(&state))?;
    let tools = include_str!("reduce.js");
    let now: Vec<u8> = tab.eval(&format!("{tools}.reduce({})", json!(png))).await;
    let title = format!("{state}-{width}-{scheme}.png");
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/checkout"));
    let path = folder.join(&title);
    if std::env::var_os("HIVETILL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, now).expect("a committed picture");
        return None;
    }
    let Ok(committed) = std::fs::read(&path) else {
        return Some(format!("{title}: no picture is committed"));
    };
    let compare = format!("{tools}.compare({}, {}).then(by => [by.height, by.color])", json!(committed), json!(now));
    let [height, color]: [f64; 2] = tab.eval(&compare).await;
    (height > HEIGHT || color > limit).then(|| {
        format!("{title}: the height differs by {height:.1} % (limit {HEIGHT}), colors by {color:.1} (limit {limit})")
    })
}
