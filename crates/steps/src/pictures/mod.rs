//! Files of pictures become tensors: decoded, turned, resized, cropped, and written as numbers.
//!
//! - `container`: which format bytes are in, also behind base64.
//! - `decode`: from a file to 8-bit pixels, within limits.
//! - `orientation`: how a file says that its picture is to be turned.
//! - `segments`: a JPEG file's segments, read leniently.
//! - `jpeg`: the usual JPEG files, read quicker.
//! - `png`: what of a PNG file is read.
//! - `webp`: sizes that a WebP file does not tell in its head.
//! - `geometry`: the sizes on the way, and the crop.
//! - `resize`, `across`, `down`, `coefficients`, `halves`: Pillow's arithmetic.
//! - `write`: from pixels to the tensor.

mod across;
mod bitmap;
mod coefficients;
mod container;
mod decode;
mod down;
#[cfg(test)]
mod fuzz;
mod geometry;
#[cfg(target_arch = "x86_64")]
mod halves;
#[cfg(target_arch = "x86_64")]
mod jpeg;
mod orientation;
mod png;
mod resize;
mod segments;
mod webp;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alipes_engine::{Engine, EngineError, InputView, OutputTensor, RefusedRow};
use alipes_protocol::{Datatype, Shape, codec::elements};
use alipes_spec::{ModelSpec, PictureLayout, PictureSpec};
use bytes::Bytes;

use super::numbers::input;
use bitmap::Bitmap;
use decode::check_size;
use geometry::Geometry;
use write::Writer;

/// How pictures become tensors.
pub struct Recipe {
    input: String,
    batches: bool,
    orient: bool,
    max_pixels: u64,
    geometry: Geometry,
    writer: Writer,
}

impl Recipe {
    /// The recipe that a specification describes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the model has other tensors, batches pictures of different sizes, or makes pictures that
    /// are larger than the limits.
    pub fn new(model: &ModelSpec, spec: &PictureSpec) -> Result<Recipe, EngineError> {
        let (batches, geometry) = (model.max_batch_size > 0, Geometry::new(spec));
        let ([input], [_]) = (&model.inputs[..], &model.outputs[..]) else {
            return Err(EngineError::invalid(format!("'{}' needs one input and one output", model.name)));
        };
        if batches && geometry.fixed().is_none() {
            let text = format!("'{}' batches pictures, which therefore need one size: resize or crop them", model.name);
            return Err(EngineError::invalid(text));
        }
        if let Some((width, height)) = geometry.fixed() {
            let checked = check_size(width as u64, height as u64, spec.max_pixels, "its pictures would have");
            checked.map_err(|reason| EngineError::invalid(format!("'{}': {reason}", model.name)))?;
        }
        let writer = Writer::new(spec)?;
        let (orient, max_pixels) = (spec.orient, spec.max_pixels);
        Ok(Recipe { input: input.name.clone(), batches, orient, max_pixels, geometry, writer })
    }

    /// A file as pixels of the final size.
    fn bitmap(&self, file: &[u8]) -> Result<Bitmap, String> {
        let file = container::open(file)?;
        let decoded = decode::decode(&file, self.max_pixels, self.orient)?;
        let bitmap = if self.writer.channels() == 1 { decoded.lightness() } else { decoded };
        self.geometry.apply(bitmap, self.max_pixels)
    }

    /// A file as pixels of the final size; a decoder that panics has met a file that it cannot read, which is no reason
    /// to fail others.
    fn guarded(&self, file: &[u8]) -> Result<Bitmap, String> {
        catch_unwind(AssertUnwindSafe(|| self.bitmap(file)))
            .unwrap_or_else(|_| Err("its decoder panicked, please report it".to_owned()))
    }

    fn refusal(&self, row: usize, reason: &str) -> RefusedRow {
        RefusedRow { row, error: EngineError::invalid(format!("input '{}' holds no picture: {reason}", self.input)) }
    }
}

/// Pictures as an engine.
pub struct Pictures {
    recipe: Arc<Recipe>,
    refused: Vec<RefusedRow>,
}

impl Pictures {
    /// An instance.
    pub fn new(recipe: Arc<Recipe>) -> Pictures {
        Pictures { recipe, refused: Vec::new() }
    }

    /// The tensor of a batch, or of a lone picture.
    fn tensor(&mut self, files: &[&[u8]]) -> (Shape, Datatype, Bytes) {
        let recipe = Arc::clone(&self.recipe);
        let mut bitmaps = files
            .iter()
            .map(|file| recipe.guarded(file))
            .enumerate()
            .map(|(row, bitmap)| bitmap.map_err(|reason| self.refused.push(recipe.refusal(row, &reason))).ok());
        let Some((width, height)) = recipe.geometry.fixed() else {
            let bitmap = bitmaps.next().flatten();
            let (width, height) = bitmap.as_ref().map_or((0, 0), |bitmap| (bitmap.width, bitmap.height));
            let shape = recipe.shape(None, width, height);
            let (datatype, data) = recipe.writer.write(1, width * height, [bitmap].into_iter());
            return (shape, datatype, data);
        };
        let shape = recipe.shape(recipe.batches.then_some(files.len()), width, height);
        let (datatype, data) = recipe.writer.write(files.len(), width * height, bitmaps);
        (shape, datatype, data)
    }
}

impl Recipe {
    fn shape(&self, rows: Option<usize>, width: usize, height: usize) -> Shape {
        let channels = self.writer.channels();
        let sizes = match self.writer.layout() {
            PictureLayout::Nchw => [channels, height, width],
            PictureLayout::Nhwc => [height, width, channels],
        };
        // Tensors are counted in `i64`, and these are far below: a limit holds the pixels.
        rows.into_iter().chain(sizes).map(|size| size as i64).collect()
    }
}

impl Engine for Pictures {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        self.refused.clear();
        let files: Vec<&[u8]> = elements::iter(input(inputs, 0)?.data).collect();
        let (shape, datatype, data) = self.tensor(&files);
        outputs.extend(wanted.iter().map(|&index| {
            let (shape, data) = (shape.clone(), data.clone());
            OutputTensor { index, datatype, shape, data }
        }));
        Ok(())
    }

    /// A file of some bytes may hold millions of pixels, and a scan that goes through them a hundred times.
    fn sizes_tell(&self, _bytes: usize) -> bool {
        false
    }

    fn refused(&mut self) -> Vec<RefusedRow> {
        std::mem::take(&mut self.refused)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recipe(side: u32, max_pixels: u64) -> Result<Recipe, EngineError> {
        let port = |name: &str, datatype: &str, dims: &[i64]| json!({"name": name, "datatype": datatype, "dims": dims});
        let step = json!({
            "kind": "picture", "resize": {"kind": "exact", "width": side, "height": 2}, "filter": "bilinear",
            "crop": null, "channels": "rgb", "layout": "nhwc", "numbers": null, "orient": true,
            "max_pixels": max_pixels,
        });
        let model = json!({
            "schema": 1, "name": "p", "version": 1, "platform": "p", "max_batch_size": 8,
            "inputs": [port("X", "BYTES", &[1])], "outputs": [port("Y", "UINT8", &[-1, -1, 3])],
            "scheduling": {"kind": "direct"}, "instances": ["i"], "engine": {"kind": "native", "step": step},
            "config_json": "", "config_proto": "", "metric_tags": {},
        });
        let model: ModelSpec = serde_json::from_value(model).expect("a specification");
        let alipes_spec::EngineSpec::Native(engine) = &model.engine else { panic!("another engine") };
        let alipes_spec::NativeStep::Picture(spec) = &engine.step else { panic!("another step") };
        Recipe::new(&model, spec)
    }

    #[test]
    fn a_model_that_makes_pictures_beyond_the_limits_is_refused() {
        assert!(recipe(5, 10).is_ok());
        let refused = |side, most| recipe(side, most).err().expect("refused").message;
        assert!(refused(6, 10).starts_with("'p': its pictures would have 6 x 2 pixels, more than the limit of 10"));
        assert!(refused(70_000, 1 << 40).contains("more than the limit of 65535 on a side"));
        assert!(refused(0, 10).contains("expected at least one"));
    }

    #[test]
    fn no_network_thread_takes_a_picture() {
        assert!(!Pictures::new(Arc::new(recipe(2, 10).expect("a recipe"))).sizes_tell(1));
    }
}
