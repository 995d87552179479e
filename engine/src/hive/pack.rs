//! Binary serialization of hived: little-endian, decoded strictly.

use super::{DecodeError, Fault, Pack};

/// Serializes values.
pub(super) struct Writer {
    pub(super) pack: Pack,
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(pack: Pack) -> Self {
        Self { pack, bytes: Vec::with_capacity(160) }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes an unsigned LEB128 of at most 32 bits, in the minimal form.
    pub(super) fn varint(&mut self, value: usize) {
        let mut rest = u32::try_from(value).expect("nothing we pack has 2^32 parts");
        while rest >= 0x80 {
            self.bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push((rest & 0x7f) as u8);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.varint(text.len());
        self.put(text.as_bytes());
    }
}

/// Deserializes values.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a minimal LEB128; hived also accepts longer encodings, which would be ambiguous.
    pub(super) fn varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u64;
        for place in 0..5u32 {
            let [byte] = self.array::<1>()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                let minimal = byte != 0 || place == 0;
                return u32::try_from(value).ok().filter(|_| minimal).ok_or_else(|| Fault::Varint.into());
            }
        }
        Err(Fault::Varint.into())
    }

    /// Reads a number of items; an error if it exceeds the remaining bytes, so that allocations are bounded.
    pub(super) fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.varint()? as usize;
        if count > self.rest.len() { Err(Fault::Truncated.into()) } else { Ok(count) }
    }

    pub(super) fn text(&mut self) -> Result<String, DecodeError> {
        let length = self.varint()? as usize;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Fault::Utf8.into())
    }

    pub(super) fn end(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(Fault::Trailing { count }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_round_trip_and_must_be_minimal(value in any::<u32>()) {
            let mut writer = Writer::new(Pack::Legacy);
            writer.varint(value as usize);
            prop_assert_eq!(Reader::new(&writer.bytes).varint(), Ok(value));
            let last = writer.bytes.len() - 1;
            writer.bytes[last] |= 0x80;
            writer.bytes.push(0);
            prop_assert_eq!(Reader::new(&writer.bytes).varint(), Err(Fault::Varint.into()));
        }
    }

    #[test]
    fn a_varint_beyond_32_bits_is_refused() {
        for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x1f][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x02]] {
            assert_eq!(Reader::new(bytes).varint(), Err(Fault::Varint.into()));
        }
    }
}
