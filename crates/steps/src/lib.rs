//! Native steps: what goes before and behind a network, without a file and without Python.
//!
//! - `pictures`: files of pictures become tensors.
//! - `classes`: shares and best classes.
//! - `text`: texts become tokens, and tokens texts.
//! - `pooling`: one vector for a text.
//!
//! Each is an [`Engine`], so that queues, batches, instances, statistics and ensembles are those of any model.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read recorded files, and write damaged ones"))]

mod classes;
mod numbers;
mod pictures;
mod pooling;
mod text;

use std::sync::Arc;

use alipes_engine::{Engine, EngineError};
use alipes_spec::{ModelSpec, NativeStep};

/// A native step, loaded: what its instances share.
pub struct LoadedStep(Kind);

enum Kind {
    Picture(Arc<pictures::Recipe>),
    Softmax,
    TopK(Arc<classes::Choice>),
    MeanPooling(pooling::Pooling),
    Tokenizer(Arc<text::Tokenizer>),
    Detokenizer(Arc<text::Detokenizer>),
}

impl LoadedStep {
    /// Prepares a step for a model.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the model's tensors are not the step's, or a file cannot be used.
    pub fn open(model: &ModelSpec, step: &NativeStep) -> Result<LoadedStep, EngineError> {
        let kind = match step {
            NativeStep::Picture(picture) => Kind::Picture(Arc::new(pictures::Recipe::new(model, picture)?)),
            NativeStep::Softmax => Kind::Softmax,
            NativeStep::TopK(top) => Kind::TopK(Arc::new(classes::Choice::new(model, top)?)),
            NativeStep::MeanPooling(pooling) => Kind::MeanPooling(pooling::Pooling::new(pooling)),
            NativeStep::Tokenizer(tokenizer) => Kind::Tokenizer(Arc::new(text::Tokenizer::open(model, tokenizer)?)),
            NativeStep::Detokenizer(spec) => Kind::Detokenizer(Arc::new(text::Detokenizer::open(model, spec)?)),
        };
        Ok(LoadedStep(kind))
    }

    /// An instance.
    pub fn instance(&self) -> Box<dyn Engine> {
        match &self.0 {
            Kind::Picture(recipe) => Box::new(pictures::Pictures::new(Arc::clone(recipe))),
            Kind::Softmax => Box::new(classes::Softmax),
            Kind::TopK(choice) => Box::new(classes::TopK::new(Arc::clone(choice))),
            Kind::MeanPooling(pooling) => Box::new(pooling.clone()),
            Kind::Tokenizer(tokenizer) => Box::new(text::Texts::new(Arc::clone(tokenizer))),
            Kind::Detokenizer(detokenizer) => Box::new(text::Tokens::new(Arc::clone(detokenizer))),
        }
    }
}
