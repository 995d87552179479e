//! Types of operation members with their binary and JSON encodings.

use std::collections::BTreeSet;

use super::{
    DecodeError, Fault, Form,
    json::{Json, write_list, write_text},
    pack::{Reader, Writer},
};

/// A type of operation member.
pub(super) trait Field: Sized {
    fn pack(&self, writer: &mut Writer);
    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
    fn read(json: &Json, form: Form) -> Result<Self, DecodeError>;
    fn write(&self, out: &mut String, form: Form);
}

impl Field for String {
    fn pack(&self, writer: &mut Writer) {
        writer.text(self);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.text()
    }

    fn read(json: &Json, _: Form) -> Result<Self, DecodeError> {
        json.text().map(str::to_owned)
    }

    fn write(&self, out: &mut String, _: Form) {
        write_text(out, self);
    }
}

impl Field for bool {
    fn pack(&self, writer: &mut Writer) {
        writer.put(&[u8::from(*self)]);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Fault::Wanted { wanted: "0 or 1" }.into()),
        }
    }

    fn read(json: &Json, _: Form) -> Result<Self, DecodeError> {
        match json {
            Json::Bool(value) => Ok(*value),
            _ => Err(Fault::Wanted { wanted: "true or false" }.into()),
        }
    }

    fn write(&self, out: &mut String, _: Form) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

macro_rules! whole_number {
    ($($type:ty, $wanted:literal;)*) => {$(
        impl Field for $type {
            fn pack(&self, writer: &mut Writer) {
                writer.put(&self.to_le_bytes());
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.array().map(Self::from_le_bytes)
            }

            fn read(json: &Json, _: Form) -> Result<Self, DecodeError> {
                json.whole($wanted)
            }

            fn write(&self, out: &mut String, _: Form) {
                out.push_str(&self.to_string());
            }
        }
    )*};
}

whole_number! {
    u8, "a whole number of 8 bits";
    u16, "a whole number of 16 bits";
    i16, "a whole number of 16 bits with sign";
    u32, "a whole number of 32 bits";
}

/// A set of names: the binary encoding is sorted, whatever the order in JSON.
impl Field for BTreeSet<String> {
    fn pack(&self, writer: &mut Writer) {
        writer.varint(self.len());
        for item in self {
            writer.text(item);
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        let mut items = Self::new();
        for _ in 0..count {
            let item = reader.text()?;
            if items.last().is_some_and(|last| *last >= item) {
                return Err(Fault::Wanted { wanted: "sorted, without repetition" }.into());
            }
            items.insert(item);
        }
        Ok(items)
    }

    fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
        json.list()?.iter().map(|item| String::read(item, form)).collect()
    }

    fn write(&self, out: &mut String, _: Form) {
        write_list(out, self, |out, item| write_text(out, item));
    }
}
