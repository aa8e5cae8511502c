//! Native steps: what a model without a file computes in this process, such as pictures into tensors.

use serde::Deserialize;

/// A native step as an engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeSpec {
    /// What is computed.
    pub step: NativeStep,
}

/// What a native step computes.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NativeStep {
    /// Files of pictures become tensors.
    Picture(PictureSpec),
    /// Numbers become shares of one, along the last axis.
    Softmax,
    /// The best classes of each row.
    TopK(TopKSpec),
    /// Vectors of tokens become one vector.
    MeanPooling(PoolingSpec),
    /// Texts become tokens.
    Tokenizer(TokenizerSpec),
    /// Tokens become texts.
    Detokenizer(DetokenizerSpec),
}

/// How a picture becomes a tensor: decoded, turned, resized, cropped, in this order, then written as numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureSpec {
    /// The size that it is brought to; none where it stays.
    pub resize: Option<ResizeSpec>,
    /// How pixels between pixels are made.
    pub filter: FilterSpec,
    /// Width and height of the part that is cut out of its centre.
    pub crop: Option<(u32, u32)>,
    /// Which channels there are, in which order.
    pub channels: Channels,
    /// Which axis comes first.
    pub layout: PictureLayout,
    /// Numbers that are written instead of bytes.
    pub numbers: Option<NumberSpec>,
    /// Whether it is turned as its EXIF orientation says.
    pub orient: bool,
    /// Most pixels that it may have, at every stage.
    pub max_pixels: u64,
}

/// A picture's size after it was resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ResizeSpec {
    /// This one, whatever it was.
    Exact {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// The shorter side is this long, and the longer one keeps its proportion, cut off to whole pixels.
    ShortSide {
        /// In pixels.
        pixels: u32,
    },
}

/// Names of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterSpec {
    /// The nearest pixel.
    Nearest,
    /// The mean of the pixels beneath.
    Box,
    /// A triangle.
    Bilinear,
    /// A cubic.
    Bicubic,
    /// A windowed sinc of three lobes.
    Lanczos,
}

/// Channels of a tensor of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Lightness alone.
    L,
}

impl Channels {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Channels::Rgb | Channels::Bgr => 3,
            Channels::L => 1,
        }
    }
}

/// Order of a picture's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureLayout {
    /// Channels, rows, columns.
    Nchw,
    /// Rows, columns, channels.
    Nhwc,
}

/// How a byte becomes a number: `(byte x factor / divisor - mean) / std`, in single precision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberSpec {
    /// What bytes are multiplied by.
    pub factor: f32,
    /// What they are divided by then.
    pub divisor: f32,
    /// One for each channel.
    pub mean: Vec<f32>,
    /// One for each channel.
    pub std: Vec<f32>,
}

/// Which outputs the best classes have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopKSpec {
    /// How many classes.
    pub count: usize,
    /// Whether scores become shares of one first.
    pub softmax: bool,
    /// What each output of the model holds, in its order.
    pub outputs: Vec<TopKOutput>,
}

/// What an output of the best classes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopKOutput {
    /// Names.
    Labels,
    /// Scores.
    Scores,
    /// Positions.
    Indices,
}

/// How vectors of tokens become one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolingSpec {
    /// Position of the vectors among the inputs.
    pub vectors: usize,
    /// Position of the mask among the inputs; without one all tokens count.
    pub mask: Option<usize>,
    /// Whether the result is made one long.
    pub normalize: bool,
}

/// How texts become tokens; what is left out, the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerSpec {
    /// Absolute path of a `tokenizer.json`.
    pub file: String,
    /// Tokens after which a text is truncated, those that mark its ends included.
    pub max_length: Option<usize>,
    /// Whether texts are filled up to `max_length`, and not to the longest.
    pub pad_to_max_length: bool,
    /// What the length of a row is a multiple of.
    pub pad_to_multiple_of: Option<usize>,
    /// Whether there are tokens that mark the ends of texts.
    pub special_tokens: bool,
    /// Longest text, in bytes.
    pub max_text_bytes: usize,
    /// What each output of the model holds, in its order.
    pub outputs: Vec<TokenOutput>,
}

/// What an output of a tokenizer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenOutput {
    /// Numbers of the tokens.
    Ids,
    /// 1 for a token, 0 for what fills up.
    Mask,
    /// 0 for tokens of the first text of a pair, 1 for those of the second.
    Types,
}

/// How tokens become texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetokenizerSpec {
    /// Absolute path of a `tokenizer.json`.
    pub file: String,
    /// Whether tokens that mark the ends of texts, or fill up, become text too.
    pub special_tokens: bool,
}
