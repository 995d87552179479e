//! The checksum of a stored row, over its table, its key and its value. It detects changed bytes and bytes of another
//! row.
//!
//! The checksum is CRC-32C. It detects every error of up to three bits, every burst of up to 32 bits, and all but one
//! in 2³² of the others.

use std::{cmp::Ordering, fmt::Debug, marker::PhantomData};

use engine::mutant;
use redb::{Key, TypeName, Value};

/// Size of a checksum, which follows the value, bytes.
pub(crate) const SUM_LEN: usize = 4;

/// The type of a value with its checksum, as the database stores it. Only table views read its content.
#[derive(Debug)]
pub(crate) struct Checked<V: Value + 'static>(PhantomData<fn() -> V>);

impl<V: Value + 'static> Value for Checked<V> {
    type SelfType<'a> = &'a [u8];
    type AsBytes<'a> = &'a [u8];

    fn fixed_width() -> Option<usize> {
        V::fixed_width().map(|width| width + SUM_LEN)
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
    where
        Self: 'a,
    {
        data
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a Self::SelfType<'b>) -> &'a [u8] {
        value
    }

    fn type_name() -> TypeName {
        TypeName::new(&format!("checked {}", V::type_name().name()))
    }
}

/// A text in a key, ordered by its bytes. Damaged bytes cause no panic: invalid UTF-8 is read as the text before it,
/// and the checksum of the row shows the damage.
#[derive(Debug)]
pub(crate) struct Text;

impl Value for Text {
    type SelfType<'a> = &'a str;
    type AsBytes<'a> = &'a str;

    fn fixed_width() -> Option<usize> {
        None
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a str
    where
        Self: 'a,
    {
        match std::str::from_utf8(data) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&data[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a Self::SelfType<'b>) -> &'a str {
        value
    }

    fn type_name() -> TypeName {
        TypeName::new("text")
    }
}

impl Key for Text {
    fn compare(one: &[u8], other: &[u8]) -> Ordering {
        one.cmp(other)
    }
}

/// The start value of the checksums of one table's rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed(u32);

impl Seed {
    /// Returns the seed of a table.
    pub(crate) fn of(table: &str) -> Self {
        Self(update(u32::MAX, table.as_bytes()))
    }

    fn sum(self, key: &[u8], value: &[u8]) -> [u8; SUM_LEN] {
        // The length separates key and value, so that a byte cannot move from one to the other.
        let length = u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes();
        (!update(update(update(self.0, &length), key), value)).to_le_bytes()
    }

    /// Returns a value with its checksum.
    pub(crate) fn seal(self, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(value.len() + SUM_LEN);
        sealed.extend_from_slice(value);
        sealed.extend_from_slice(&self.sum(key, value));
        sealed
    }

    /// Returns the value without its checksum; none if the row does not match its checksum.
    pub(crate) fn open<'b>(self, key: &[u8], sealed: &'b [u8]) -> Option<&'b [u8]> {
        let (value, sum) = sealed.split_last_chunk::<SUM_LEN>()?;
        (self.sum(key, value) == *sum || mutant!("damaged-row-is-returned")).then_some(value)
    }
}

/// Returns the value of sealed bytes whose checksum was verified before.
pub(crate) fn value_of(sealed: &[u8]) -> &[u8] {
    sealed.split_last_chunk::<SUM_LEN>().map_or(&[], |(value, _)| value)
}

/// The polynomial of CRC-32C, bit-reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// For each position in an 8-byte word, the contribution of each byte value there.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let (mut byte, mut start) = (0, 0);
    while byte < 256 {
        let mut sum: u32 = start;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        (byte, start) = (byte + 1, start + 1);
    }
    let mut position = 1;
    while position < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[position - 1][byte];
            tables[position][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        position += 1;
    }
    tables
}

fn update(mut sum: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(sum);
        let bytes = word.to_le_bytes();
        sum = (0..8).fold(0, |sum, position| sum ^ TABLES[7 - position][usize::from(bytes[position])]);
    }
    for byte in rest {
        sum = (sum >> 8) ^ TABLES[0][usize::from(sum.to_le_bytes()[0] ^ byte)];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32c() {
        let crc = |bytes: &[u8]| !update(u32::MAX, bytes);
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_row_opens_only_as_it_was_written() {
        let (payments, slugs) = (Seed::of("payments"), Seed::of("slugs"));
        let sealed = payments.seal(b"key", b"pay to blue.mugs");
        assert_eq!(payments.open(b"key", &sealed), Some(b"pay to blue.mugs".as_slice()));
        assert_eq!(slugs.open(b"key", &sealed), None, "a row of another table");
        assert_eq!(payments.open(b"kez", &sealed), None, "a row of another key");
        assert_eq!(payments.open(b"keyp", &sealed[1..]), None, "a key that took a byte of the value");
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(payments.open(b"key", &damaged), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(payments.open(b"key", &sealed[..length]), None, "{length} bytes");
        }
        let empty = payments.seal(b"key", b"");
        assert_eq!(payments.open(b"key", &empty), Some(b"".as_slice()));
    }

    #[test]
    fn a_damaged_text_is_read_up_to_the_damage() {
        assert_eq!(Text::from_bytes(b"blue.mugs"), "blue.mugs");
        assert_eq!(Text::from_bytes(b"blue\xaemugs"), "blue");
        assert_eq!(Text::compare(b"a\xff", b"ab"), Ordering::Greater);
    }
}
