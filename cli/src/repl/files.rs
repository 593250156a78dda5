//! Commands with files: data, saved sessions and records.

use super::Talk;
use crate::exit::{Exit, Failure, of_file};
use crate::formats::in_plain_words;
use crate::options;
use crate::render::fields::Fields;
use crate::render::keys;
use crate::replace;
use lisp_runtime::outcome::OutcomeKind;
use lisp_runtime::{DataSet, Input, Outcome};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

impl Talk<'_> {
    /// Starts or stops recording forms and values to a file.
    pub(super) fn record(&mut self, file: &str) {
        self.recorded = None;
        if file.is_empty() {
            return;
        }
        // What a file has stays: it may be a program.
        let opened = match regular(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => File::options().append(true).create(true).open(file),
        };
        match opened {
            Ok(opened) => {
                self.recorded = Some(opened);
                tell_line!("adding forms and values to {file}");
            }
            Err(error) => self.file_failed(file, &error),
        }
    }

    /// Records the last form and its result, if recording is on.
    pub(super) fn keep(&mut self, outcome: &Outcome) {
        let (Some(file), Some(form)) = (&mut self.recorded, self.texts.turns.last()) else { return };
        let text = outcome.text().unwrap_or_default();
        let came = match outcome.problem() {
            Some(problem) => format!("\n; => error: {}", problem.error.reason),
            // A value that was cut cannot be compared.
            None if outcome.text_cut().is_some() || text.contains('\n') => String::new(),
            None if outcome.kind() == Some(OutcomeKind::Fail) => format!("\n; => failed: {text}"),
            None => format!("\n; => {text}"),
        };
        if let Err(error) = writeln!(file, "{}{came}", form.trim()) {
            tell_line!("ptcl: recording stopped: {error}");
            self.exit = Exit::InputOutput;
            self.recorded = None;
        }
    }

    /// Saves the session. A file with other text is replaced only if that is asked for.
    pub(super) fn save(&mut self, file: &str, replaces: bool) {
        if !replaces && matches!(content(file), Ok(Content::Other)) {
            self.refuse(&format!("{file} exists and is not a saved session; :save! {file} replaces it"));
            return;
        }
        self.session.cancel_handle().reset();
        let saved = self.session.save();
        let text = self.reported(saved).filter(|text| self.is_small_enough(text));
        match text.map(|text| replace::write(Path::new(file), text.as_bytes())) {
            Some(Ok(())) => tell_line!("saved the session to {file}"),
            Some(Err(error)) => self.file_failed(file, &error),
            None => {}
        }
    }

    /// Reports that a file cannot be read or written.
    fn file_failed(&mut self, file: &str, error: &io::Error) {
        tell_line!("ptcl: {file}: {}", of_file(error));
        self.exit = Exit::InputOutput;
    }

    /// Continues a saved session in place of the current one, which `:undo` brings back.
    pub(super) fn load(&mut self, file: String) -> Result<(), Failure> {
        self.session.cancel_handle().reset();
        match regular(&file).and_then(|()| content(&file)) {
            Ok(Content::Session) => {}
            Ok(_) => {
                self.refuse(&format!("{file} is not a saved session; to read data, write :data {file}"));
                return Ok(());
            }
            Err(error) => {
                self.file_failed(&file, &error);
                return Ok(());
            }
        }
        match std::fs::read_to_string(&file) {
            Err(error) => self.file_failed(&file, &error),
            Ok(text) if !self.is_small_enough(&text) => {}
            Ok(text) => {
                let loaded = self.runner.load(&text, self.input_with_data())?;
                if let Some(loaded) = self.reported(loaded) {
                    self.begin_loaded(loaded, &file);
                    tell_line!("loaded {file}: {} definitions", self.session.names().len());
                    self.loaded = Some(file);
                }
            }
        }
        Ok(())
    }

    /// Binds the data of a file for the forms that follow, as `--data` does.
    pub(super) fn add_data(&mut self, argument: &str) -> Result<(), Failure> {
        let added = options::data_of(":data", argument, self.texts.grant.rows).and_then(|(name, text)| match name {
            Some(name) => Ok(vec![(name, text)]),
            None => fields_of(&text).map_err(|error| {
                let why = in_plain_words(&format!("invalid JSON: {error}"));
                Failure::Usage(format!(":data {argument}: {why}"))
            }),
        });
        let sets = added.and_then(|added| self.imported(argument, added));
        let sets = match sets {
            Ok(sets) => sets,
            Err(failure) => {
                tell_line!("ptcl: {failure}");
                self.exit = failure.exit();
                return Ok(());
            }
        };
        let before = self.added.clone();
        let names: Vec<String> = sets.iter().map(|(name, ..)| format!("data/{name}")).collect();
        let mut known = self.data.clone();
        for (name, text, set) in sets {
            known.insert(format!("data/{name}"));
            keys::collect(&text, &mut known);
            self.added.insert(name, set);
        }
        if self.renew(self.input.clone())? {
            self.data = known;
            tell_line!(
                "added {}",
                if names.is_empty() { "nothing: the object is empty".to_owned() } else { names.join(" ") }
            );
        } else {
            self.added = before;
        }
        Ok(())
    }

    /// Imports texts of JSON. Each has its name.
    fn imported(
        &self,
        argument: &str,
        added: Vec<(String, String)>,
    ) -> Result<Vec<(String, String, DataSet)>, Failure> {
        let given = self.texts.grant.given_names();
        let one = |(name, text): (String, String)| {
            let wrong = |why: &str| Failure::Usage(format!(":data {argument}: {why}"));
            if given.contains(&name) {
                return Err(wrong(&format!(
                    "data/{name} was bound when the REPL started: write NAME=FILE with another name"
                )));
            }
            let set = self.runner.engine().import(&name, &text);
            let set = set.map_err(|problem| wrong(&in_plain_words(&problem.error.message)))?;
            Ok((name, text, set))
        };
        added.into_iter().map(one).collect()
    }

    /// Returns the input of the session, with the data of `:data`.
    pub(super) fn input_with_data(&self) -> Input<'static> {
        self.with_data(self.input.clone())
    }

    /// Adds the data of `:data` to an input.
    pub(super) fn with_data(&self, input: Input<'static>) -> Input<'static> {
        self.added.values().fold(input, |input, set| input.data_set(set))
    }
}

/// Returns the fields of a JSON object, each with its JSON text.
fn fields_of(json: &str) -> Result<Vec<(String, String)>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_str(json)?;
    Ok(fields.0.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect())
}

/// What a file has, as its first bytes say.
enum Content {
    Session,
    Nothing,
    Other,
}

/// Returns what a file has. A pipe or a device has nothing that could be lost.
fn content(file: &str) -> io::Result<Content> {
    /// What a saved session of any version begins with.
    const SESSION: &[u8] = b"{\"schema\":\"ptc-session/";
    if !std::fs::metadata(file)?.is_file() {
        return Ok(Content::Nothing);
    }
    let mut start = Vec::new();
    File::open(file)?.take(SESSION.len() as u64).read_to_end(&mut start)?;
    Ok(match &start[..] {
        SESSION => Content::Session,
        [] => Content::Nothing,
        _ => Content::Other,
    })
}

/// Fails unless a path is a file. Opening a named pipe would wait for its other side.
fn regular(file: &str) -> io::Result<()> {
    match std::fs::metadata(file)? {
        found if found.is_file() => Ok(()),
        found => {
            let what = if found.is_dir() { "it is a directory" } else { "it is a pipe or a device" };
            Err(io::Error::other(format!("{what}: name a file")))
        }
    }
}
