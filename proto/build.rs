//! Compiles the protobuf files with a compiler written in Rust; protoc is not needed.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: [&str; 15] = [
    "billing",
    "common",
    "compliance",
    "events",
    "facades",
    "keys",
    "maintenance",
    "merchants",
    "ownership",
    "payments",
    "reconciliation",
    "system",
    "unmatched",
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
    // Server reflection shows comments; locations without one are removed.
    let mut described = descriptors.clone();
    for info in described.file.iter_mut().filter_map(|file| file.source_code_info.as_mut()) {
        info.location.retain(|location| location.leading_comments.is_some() || location.trailing_comments.is_some());
    }
    fs::write(out.join("engine_descriptor.bin"), prost::Message::encode_to_vec(&described))?;
    fs::write(out.join("names.rs"), names(&described))?;
    tonic_prost_build::configure().btree_map(".").bytes(".").emit_rerun_if_changed(false).compile_fds(descriptors)?;
    Ok(())
}

/// Returns the names of services and methods as Rust constants.
fn names(descriptors: &prost_types::FileDescriptorSet) -> String {
    let (mut services, mut methods, mut streams) = (Vec::new(), Vec::new(), Vec::new());
    for file in descriptors.file.iter().filter(|file| file.package() == "hivetill.engine.v1") {
        for service in &file.service {
            let name = format!("{}.{}", file.package(), service.name());
            for method in &service.method {
                let path = format!("/{name}/{}", method.name());
                if method.server_streaming() {
                    streams.push(path.clone());
                }
                methods.push(path);
            }
            services.push(name);
        }
    }
    format!(
        "/// The full names of all services.\npub const SERVICES: &[&str] = &{services:?};\n\
         /// The paths of all methods.\npub const METHODS: &[&str] = &{methods:?};\n\
         /// The paths of the methods that return a stream.\npub const STREAMS: &[&str] = &{streams:?};\n"
    )
}
