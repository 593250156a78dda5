//! What `data/in` is read from: files, or standard input.

use crate::exit::Failure;
use crate::formats::{DataFormat, JsonLines, RowOptions, vector};
use crate::options::read_file;
use clap::Args;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The format of what is read.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FromOptions {
    /// The format of standard input and of the files after the program [default: as the name of a file says, else json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<DataFormat>,
    /// Read text: one string, or with --lines or --slurp one string a line; same as --from text
    #[arg(short = 'R', long, conflicts_with = "from")]
    raw_input: bool,
}

/// The files, or standard input if there are none.
#[derive(Debug)]
pub(crate) struct Sources {
    /// `-` is standard input.
    files: VecDeque<PathBuf>,
    from: Option<DataFormat>,
    rows: RowOptions,
}

/// Where lines come from.
#[derive(Debug)]
pub(crate) struct Source {
    /// `None` for standard input.
    file: Option<PathBuf>,
    unit: Unit,
}

/// What a line of JSON was in the source. A row and a document may have several lines.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Line,
    Row,
    #[cfg(feature = "json-schema")]
    Document,
}

impl Source {
    /// Returns the place of a line in messages.
    pub(crate) fn place(&self, line: u64) -> String {
        let file = self.file.as_ref().map(|path| path.display().to_string());
        let unit = match self.unit {
            Unit::Line => "line",
            Unit::Row => "row",
            #[cfg(feature = "json-schema")]
            Unit::Document => "document",
        };
        match (file, self.unit) {
            (None, _) => format!("{unit} {line}"),
            (Some(file), Unit::Line) => format!("{file}:{line}"),
            (Some(file), _) => format!("{file}: {unit} {line}"),
        }
    }

    /// Returns why the source cannot be read.
    pub(crate) fn failed(&self, error: io::Error) -> Failure {
        match (error.kind(), &self.file) {
            (io::ErrorKind::InvalidData, file) => {
                let name = file.as_ref().map_or(STANDARD_INPUT.to_owned(), |path| path.display().to_string());
                Failure::Usage(format!("{name}: {error}"))
            }
            (_, Some(path)) => Failure::File { path: path.clone(), error },
            (_, None) => Failure::Stream(error),
        }
    }
}

const STANDARD_INPUT: &str = "standard input";

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the name of a source in messages.
fn name_of(path: &Path) -> String {
    if is_standard_input(path) { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

impl Sources {
    pub(crate) fn new(files: &[PathBuf], from: FromOptions, rows: RowOptions) -> Self {
        let files = if files.is_empty() { VecDeque::from([PathBuf::from("-")]) } else { files.to_vec().into() };
        Sources { files, from: if from.raw_input { Some(DataFormat::Text) } else { from.from }, rows }
    }

    /// Returns whether standard input is read.
    pub(crate) fn read_standard_input(&self) -> bool {
        self.files.iter().any(|path| is_standard_input(path))
    }

    /// Returns the name of what is read as one value.
    pub(crate) fn name(&self) -> String {
        self.files.front().map(|path| name_of(path)).unwrap_or_default()
    }

    fn format(&self, path: &Path) -> DataFormat {
        self.from.unwrap_or_else(|| DataFormat::of_file(path))
    }

    /// Reads everything as one JSON value: the vector of all values if asked for.
    pub(crate) fn value(&self, slurp: bool) -> Result<String, Failure> {
        if !slurp && self.files.len() > 1 {
            let why = "more than one file: read their lines with --lines, or all their values as a vector with --slurp";
            return Err(Failure::Usage(why.to_owned()));
        }
        let mut all = String::new();
        for path in &self.files {
            let text = if is_standard_input(path) { standard_input()? } else { read_file(path)? };
            let wrong = |why: String| Failure::Usage(format!("{}: {why}", name_of(path)));
            let format = self.format(path);
            if !slurp {
                return format.value(text, self.rows).map_err(wrong);
            }
            let values = format.values(text, self.rows).and_then(|values| vector(&values)).map_err(wrong)?;
            let inner = &values[1..values.len() - 1];
            if !all.is_empty() && !inner.is_empty() {
                all.push(',');
            }
            all.push_str(inner);
        }
        Ok(format!("[{all}]"))
    }

    /// Opens the next source, and returns its JSON lines.
    pub(crate) fn open_next(&mut self, max: usize) -> Result<Option<(Source, JsonLines)>, Failure> {
        let Some(path) = self.files.pop_front() else { return Ok(None) };
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", name_of(&path)));
        let format = self.format(&path);
        let unit = match format {
            DataFormat::Csv | DataFormat::Tsv => Unit::Row,
            #[cfg(feature = "json-schema")]
            DataFormat::Yaml => Unit::Document,
            _ => Unit::Line,
        };
        let source = |file| Source { file, unit };
        if is_standard_input(&path) {
            let lines = format.lines(io::stdin(), self.rows, max).map_err(wrong)?;
            return Ok(Some((source(None), lines)));
        }
        let file = File::open(&path).map_err(|error| Failure::File { path: path.clone(), error })?;
        let lines = format.lines(file, self.rows, max).map_err(wrong)?;
        Ok(Some((source(Some(path)), lines)))
    }
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
