//! Turns the interface's files into Rust, with a compiler of our own language: no protoc needed.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: [&str; 14] = [
    "astray",
    "billing",
    "books",
    "common",
    "compliance",
    "events",
    "keys",
    "maintenance",
    "merchants",
    "ownership",
    "payments",
    "services",
    "webhooks",
    "x402",
];

fn main() -> Result<(), Box<dyn Error>> {
    let paths = FILES.map(|file| format!("hivetill/engine/v1/{file}.proto"));
    for path in &paths {
        println!("cargo::rerun-if-changed={path}");
    }
    let descriptors = protox::Compiler::new(["."])?
        .include_source_info(true)
        .include_imports(true)
        .open_files(&paths)?
        .file_descriptor_set();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut bare = descriptors.clone();
    for file in &mut bare.file {
        file.source_code_info = None;
    }
    fs::write(out.join("engine_descriptor.bin"), prost::Message::encode_to_vec(&bare))?;
    tonic_prost_build::configure().btree_map(".").bytes(".").emit_rerun_if_changed(false).compile_fds(descriptors)?;
    Ok(())
}
