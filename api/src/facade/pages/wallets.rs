//! Payment links for wallets: the hive:// URI, its QR code, and the HiveSigner link.

use std::fmt::Write as _;

use engine::hive::uri;
use qrcode::{
    Color, EcLevel,
    bits::encode_auto,
    canvas::{Canvas, MaskPattern},
    ec::construct_codewords,
};
use serde::Serialize;
use url::form_urlencoded::byte_serialize;

/// A transfer to sign.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The recipient.
    pub(crate) to: String,
    /// The amount as the ledger formats it, `1.000 HBD`.
    pub(crate) amount: String,
    /// The memo.
    pub(crate) memo: String,
}

#[derive(Serialize)]
struct Operation<'a> {
    to: &'a str,
    amount: &'a str,
    memo: &'a str,
}

impl Wanted {
    /// Returns `hive://sign/op/…`, which mobile wallets and browser extensions support. It contains no payer, which
    /// wallets fill in, and no parameters, which some of them do not support.
    pub(crate) fn hive_uri(&self) -> String {
        let operation = ("transfer", Operation { to: &self.to, amount: &self.amount, memo: &self.memo });
        let json = serde_json::to_string(&operation).expect("texts are plain values");
        format!("hive://sign/op/{}", uri::encode(&json))
    }

    /// Returns the HiveSigner URL that signs this transfer and returns to `return_url` with the transaction id.
    pub(crate) fn hivesigner_url(&self, return_url: &str) -> String {
        let mut url = String::from("https://hivesigner.com/sign/transfer");
        let joiner = if return_url.contains('?') { '&' } else { '?' };
        let back = format!("{return_url}{joiner}tx={{{{id}}}}");
        for (mark, name, value) in [
            ('?', "to", &self.to),
            ('&', "amount", &self.amount),
            ('&', "memo", &self.memo),
            ('&', "redirect_uri", &back),
        ] {
            let value: String = byte_serialize(value.as_bytes()).collect();
            // Some servers read `+` literally; all of them decode `%20`.
            let _ = write!(url, "{mark}{name}={}", value.replace('+', "%20"));
        }
        url
    }
}

/// A QR code as one SVG path of unit squares.
#[derive(Debug, Clone)]
pub(crate) struct Qr {
    /// The width in squares, including the quiet zone.
    pub(crate) side: usize,
    /// The SVG path of the dark squares.
    pub(crate) path: String,
}

/// The width of the quiet zone, in squares, as the standard requires.
const QUIET: usize = 4;

impl Qr {
    /// Encodes a text; `None` if it is too long for a QR code.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut canvas = draw(text)?;
        // Every mask is readable. Choosing the best of eight would take longer than the rest of the page.
        canvas.apply_mask(MaskPattern::Checkerboard);
        let colors = canvas.into_colors();
        let width = colors.len().isqrt();
        let mut path = String::with_capacity(4_096);
        for (y, row) in colors.chunks(width).enumerate() {
            let mut x = 0;
            while x < width {
                let run = row[x..].iter().take_while(|color| **color == Color::Dark).count();
                if run == 0 {
                    x += 1;
                    continue;
                }
                let _ = write!(path, "M{} {}h{run}v1h-{run}z", x + QUIET, y + QUIET);
                x += run;
            }
        }
        Some(Self { side: width + 2 * QUIET, path })
    }
}

/// Draws a code without applying a mask.
fn draw(text: &str) -> Option<Canvas> {
    let bits = encode_auto(text.as_bytes(), EcLevel::M).ok()?;
    let version = bits.version();
    let (data, check) = construct_codewords(&bits.into_bytes(), version, EcLevel::M).ok()?;
    let mut canvas = Canvas::new(version, EcLevel::M);
    canvas.draw_all_functional_patterns();
    canvas.draw_data(&data, &check);
    Some(canvas)
}

#[cfg(test)]
mod tests {
    use qrcode::QrCode;

    use super::*;

    fn wanted() -> Wanted {
        Wanted { to: "shop".to_owned(), amount: "1.000 HBD".to_owned(), memo: "pos-abc".to_owned() }
    }

    #[test]
    fn the_address_is_what_wallets_were_seen_to_read() {
        assert_eq!(
            wanted().hive_uri(),
            "hive://sign/op/WyJ0cmFuc2ZlciIseyJ0byI6InNob3AiLCJhbW91bnQiOiIxLjAwMCBIQkQiLCJtZW1vIjoicG9zLWFiYyJ9XQ.."
        );
    }

    #[test]
    fn hivesigner_comes_back_with_the_transaction() {
        assert_eq!(
            wanted().hivesigner_url("https://pay.example/for/mug-1"),
            "https://hivesigner.com/sign/transfer?to=shop&amount=1.000%20HBD&memo=pos-abc\
             &redirect_uri=https%3A%2F%2Fpay.example%2Ffor%2Fmug-1%3Ftx%3D%7B%7Bid%7D%7D"
        );
    }

    #[test]
    fn a_code_covers_its_squares() {
        let text = "hive://sign/op/x";
        let qr = Qr::of(text).expect("short enough");
        let code = QrCode::with_error_correction_level(text, EcLevel::M).expect("short enough");
        let mut canvas = draw(text).expect("short enough");
        assert_eq!(canvas.apply_best_mask().into_colors(), code.to_colors(), "the same code but for its mask");
        assert_eq!(qr.side, code.width() + 2 * QUIET);
        canvas.apply_mask(MaskPattern::Checkerboard);
        let dark = canvas.into_colors().iter().filter(|color| **color == Color::Dark).count();
        let drawn: usize =
            qr.path.split('h').skip(1).step_by(2).filter_map(|run| run.split('v').next()?.parse::<usize>().ok()).sum();
        assert_eq!(drawn, dark);
        assert!(Qr::of(&"x".repeat(10_000)).is_none());
    }
}
