//! Builds the inference service from alipes' own proto files, without protoc.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut descriptors = protox::compile([folder.join("inference.proto")], [&folder])?;
    // The floor answers these calls; the others need not be written to say that they are not there.
    for service in descriptors.file.iter_mut().flat_map(|file| &mut file.service) {
        service.method.retain(|method| matches!(method.name(), "ModelInfer" | "ModelStreamInfer"));
    }
    tonic_prost_build::configure()
        .build_transport(false)
        // Tensor bytes stay slices of the network buffer, as in alipes.
        .bytes(".inference.ModelInferRequest.raw_input_contents")
        .bytes(".inference.ModelInferResponse.raw_output_contents")
        .bytes(".inference.InferTensorContents.bytes_contents")
        .compile_fds(descriptors)?;
    Ok(())
}
