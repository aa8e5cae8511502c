//! The command line: `--answer FILE [--port N] [--threads N] [--responses N]
//! [--content-type TYPE] [--header NAME:VALUE]...`.

use std::{env, fs, path::PathBuf, process, str::FromStr, thread};

use bytes::Bytes;

/// What a floor is told at its start.
pub struct Options {
    /// Port on the loopback address; 0 asks the system for one.
    pub port: u16,
    /// Network threads, each with a runtime of its own.
    pub threads: usize,
    /// The body of every answer.
    pub answer: Bytes,
    /// Responses to each request of a stream (gRPC only).
    pub responses: u32,
    /// The answer's content type (HTTP only).
    pub content_type: String,
    /// Further headers of the answer (HTTP only).
    pub headers: Vec<(String, String)>,
}

impl Options {
    /// Reads the command line, or says what is wrong with it and exits with status 2.
    pub fn from_command_line() -> Self {
        Self::parse(env::args().skip(1)).unwrap_or_else(|message| {
            eprintln!("{message}");
            process::exit(2);
        })
    }

    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            port: 0,
            threads: default_threads(),
            answer: Bytes::new(),
            responses: 1,
            content_type: "application/json".to_owned(),
            headers: Vec::new(),
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--port" => options.port = number(&name, &value)?,
                "--threads" => options.threads = number::<usize>(&name, &value)?.max(1),
                "--responses" => options.responses = number(&name, &value)?,
                "--answer" => options.answer = read(&value)?,
                "--content-type" => options.content_type = value,
                "--header" => options.headers.push(header(&value)?),
                _ => return Err(format!("unknown option {name}")),
            }
        }
        Ok(options)
    }
}

/// Half the cores, at least two: the count that alipes chooses.
fn default_threads() -> usize {
    thread::available_parallelism().map_or(2, |cores| (cores.get() / 2).max(2))
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: {value:?} is not a number in range"))
}

fn read(path: &str) -> Result<Bytes, String> {
    fs::read(PathBuf::from(path)).map(Bytes::from).map_err(|error| format!("--answer {path}: {error}"))
}

fn header(value: &str) -> Result<(String, String), String> {
    let (name, value) = value.split_once(':').ok_or_else(|| format!("--header {value:?}: expected NAME:VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
