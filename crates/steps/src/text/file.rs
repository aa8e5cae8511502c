//! Reading a `tokenizer.json`.

use std::fs;
use std::io::Read;
use std::path::Path;

use tokenizers::Tokenizer;

use super::error::{MAX_FILE_BYTES, TextError};
use super::growth::Growth;
use super::{bounds, effort};

/// Reads a tokenizer, and how much longer it may make a text.
///
/// # Errors
///
/// [`TextError::File`]: there is no such file, it is too large, it is no tokenizer, or it asks for more than limits
/// allow.
#[allow(clippy::disallowed_methods, reason = "a load reads it, on a thread of its own")]
pub fn open(path: &Path) -> Result<(Tokenizer, Growth), TextError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let wrong = |cause: String| TextError::File { file: name.to_string(), cause };
    let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(wrong(format!("it has more than {MAX_FILE_BYTES} bytes, which no tokenizer needs")));
    }
    bounds::check_file(&bytes).map_err(wrong)?;
    let read = effort::bounded(|| Tokenizer::from_bytes(&bytes))
        .ok_or_else(|| wrong("one of its patterns takes too many steps".to_owned()))?;
    let tokenizer = read.map_err(|error| {
        wrong(format!("it is no tokenizer that this release reads ({error}); save it again with `tokenizer.save`"))
    })?;
    bounds::check(&tokenizer).map_err(wrong)?;
    let growth = Growth::of(&tokenizer).map_err(wrong)?;
    Ok((tokenizer, growth))
}
