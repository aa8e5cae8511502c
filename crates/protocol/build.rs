//! Builds the message types of `proto/` without protoc.

#![allow(clippy::disallowed_methods, reason = "a build script reads what Cargo gives it")]

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    let files =
        ["inference.proto", "health.proto", "model_config.proto", "reflection.proto", "reflection_v1alpha.proto"];
    println!("cargo:rerun-if-changed={}", folder.display());
    let descriptors = protox::compile(files.map(|file| folder.join(file)), [&folder])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    prost_build::Config::new()
        // Tensor bytes stay slices of the network buffer.
        .bytes([
            ".inference.ModelInferRequest.raw_input_contents",
            ".inference.ModelInferResponse.raw_output_contents",
            ".inference.InferTensorContents.bytes_contents",
        ])
        // Parameters come in the order of their keys, and an empty map costs nothing.
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
