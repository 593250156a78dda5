//! `ptcl run`: runs a program and prints its value.

use crate::exit::{Exit, Failure};
use crate::fold::{self, Expressions, Fold};
use crate::given::{self, Texts};
use crate::isolation::IsolationOption;
use crate::limits::{LimitOptions, TrustOption};
use crate::lines::{self, Each};
use crate::options::{self, Grant};
use crate::output;
use crate::pager::{self, Paged};
use crate::record::Record;
use crate::render::colour;
use crate::render::errors;
use crate::render::pretty::{Layout, lay_out};
use crate::render::profile::Drawn;
use crate::render::values::{self, Format, OutputOptions, Unfit};
#[cfg(feature = "flamegraph")]
use crate::replace;
use crate::sources::{FromOptions, Sources};
use crate::watch;
use lisp_runtime::internal::visible;
use lisp_runtime::outcome::OutcomeKind;
use lisp_runtime::{Answer, Cancel, Engine, Input, Limits, Outcome};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What the command takes.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("by_lines").multiple(true)))]
pub(crate) struct Arguments {
    /// The program (not with -e), followed by files to read as data/in in place of standard input. - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run EXPR instead of a program file
    #[arg(short, value_name = "EXPR")]
    expression: Option<String>,
    #[command(flatten)]
    from: FromOptions,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    trust: TrustOption,
    #[command(flatten)]
    isolation: IsolationOption,
    #[command(flatten)]
    output: OutputOptions,
    /// Run the program once per line of the input, a JSON value or a row bound to data/in; in parallel, with results in order
    #[arg(long, group = "by_lines", conflicts_with_all = ["record", "json", "slurp"])]
    lines: bool,
    /// Read all values of the input into one vector, data/in
    #[arg(long)]
    slurp: bool,
    /// Reduce the lines of the input to one value, which is written at the end. EXPR is run for each line, one after the other;
    /// acc is its value for the line before, and INIT for the first one; data/in is the line. There is no program
    #[arg(long, num_args = 2, value_names = ["INIT", "EXPR"], allow_hyphen_values = true, group = "by_lines",
          conflicts_with_all = ["expression", "skip_nil", "jobs", "signature", "record", "json", "slurp"])]
    fold: Option<Vec<String>>,
    /// With --fold: write the value of EXPR, which is run once after the last line and has acc, in place of acc
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, requires = "fold", conflicts_with = "expression")]
    then: Option<String>,
    /// With --lines or --fold: continue after a line whose run fails; the exit code is the highest of all lines
    #[arg(long, requires = "by_lines")]
    keep_going: bool,
    /// With --lines: write nothing for a line whose value is nil
    #[arg(long, requires = "lines")]
    skip_nil: bool,
    /// With --lines: number of threads; 0 means one per core
    #[arg(long, requires = "lines", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    jobs: u16,
    /// With --lines or --fold: maximum length of a line, in bytes
    #[arg(long, requires = "by_lines", value_name = "N", default_value_t = 16 << 20)]
    line_bytes: usize,
    /// Write a record of the run to a file; `ptcl replay` runs it again
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show the fuel, allocated bytes and milliseconds of each line and form, on standard error
    #[arg(long, conflicts_with = "by_lines")]
    profile: bool,
    /// Write a flame graph of the fuel to an SVG file
    #[cfg(feature = "flamegraph")]
    #[arg(long, value_name = "FILE", conflicts_with = "by_lines")]
    flame: Option<PathBuf>,
    /// Run again whenever the program or a file that it reads changes
    #[arg(long, conflicts_with_all = ["by_lines", "slurp"])]
    watch: bool,
    /// On a terminal: write a value that is longer than the window as it is, not through $PAGER (or less)
    #[arg(long)]
    no_pager: bool,
    /// Print the whole answer as JSON; --out json prints the value only
    #[arg(long, conflicts_with_all = ["out", "raw", "csv", "table"])]
    json: bool,
}

impl Arguments {
    /// Returns the file of the program.
    fn program(&self) -> Option<&Path> {
        if self.has_program_file() { self.files.first().map(PathBuf::as_path) } else { None }
    }

    /// Returns whether the input is read line by line.
    fn reads_lines(&self) -> bool {
        self.lines || self.fold.is_some()
    }

    fn has_program_file(&self) -> bool {
        self.expression.is_none() && self.fold.is_none()
    }

    /// Returns the texts of the fold.
    fn fold(&self) -> Option<Expressions<'_>> {
        match self.fold.as_deref()? {
            [init, step] => Some(Expressions { init, step, then: self.then.as_deref() }),
            _ => None,
        }
    }

    /// Returns the name and the source of the program.
    fn source(&self) -> Result<(String, String), Failure> {
        let expression = self.fold().map(|fold| fold.step).or(self.expression.as_deref());
        options::read_program(self.program(), expression)
    }

    /// Returns the files after the program.
    fn inputs(&self) -> &[PathBuf] {
        self.files.get(usize::from(self.has_program_file())..).unwrap_or_default()
    }

    fn wants_profile(&self) -> bool {
        #[cfg(feature = "flamegraph")]
        if self.flame.is_some() {
            return true;
        }
        self.profile
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if !arguments.watch {
        return once(arguments);
    }
    let files: Vec<PathBuf> = arguments.files.iter().cloned().chain(arguments.grant.files()).collect();
    watch::check(&files)?;
    watch::again(&files, || once(arguments))
}

fn once(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine_over(default_limits(arguments))?;
    let (name, source) = arguments.source()?;
    let input = match arguments.reads_lines() {
        true => arguments.grant.shared_input(&engine)?,
        false => arguments.grant.input(&engine)?,
    };
    let input = match input {
        Ok(input) => input,
        Err(setup) => {
            tell!("{}", errors::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    // Compile only if the program may name it. The run itself compiles it within its time limit.
    let names_in = || engine.compile(&source).is_ok_and(|program| program.data_names().any(|name| name == given::IN));
    let wants_in = source.contains("data/in") && names_in() && !arguments.grant.given_names().contains(given::IN);
    let sources = Sources::new(arguments.inputs(), arguments.from, arguments.grant.rows);
    let reads = arguments.reads_lines() || arguments.slurp || wants_in || !arguments.inputs().is_empty();
    let reads_standard_input = reads && sources.read_standard_input();
    if arguments.watch && reads_standard_input {
        return Err(Failure::Usage("--watch cannot follow standard input: name a file after the program".to_owned()));
    }
    if reads_standard_input && arguments.program() == Some(Path::new("-")) {
        let why = "the program and data/in cannot both come from standard input: give the program by -e or in a file";
        return Err(Failure::Usage(why.to_owned()));
    }
    let name_of_in = sources.name();
    let input = match reads && !arguments.reads_lines() {
        true => input.json(given::IN, sources.value(arguments.slurp)?),
        false => input,
    };
    let cancel = cancelled_by_ctrl_c();
    let input = input.cancel_with(&cancel);
    if arguments.lines && arguments.fold.is_none() {
        if arguments.output.format() == Format::Table {
            let why = "--lines writes a value for each line, and a table is one value: use --csv, or --slurp in place of --lines";
            return Err(Failure::Usage(why.to_owned()));
        }
        return each_line(arguments, engine, (&name, &source), (input, sources));
    }
    let is_shared = arguments.reads_lines();
    let texts = Texts { grant: &arguments.grant, name: &name, source: &source, is_shared, name_of_in: &name_of_in };
    match arguments.fold() {
        Some(texts_of_fold) => folded(arguments, engine, texts_of_fold, &texts, (input, sources), &cancel),
        None => whole(arguments, engine, &texts, input, &cancel),
    }
}

/// Returns the limits for what the options do not set.
fn default_limits(arguments: &Arguments) -> Limits {
    /// What an answer keeps of what was printed.
    const PRINTS_BYTES: u64 = 1_000_000_000;
    let strict = Limits::default().with_print_chars(0).with_prints_bytes(0);
    match (arguments.reads_lines(), arguments.json) {
        // The value so far cannot be undone.
        (true, _) if arguments.fold.is_some() => arguments.trust.limits().with_session_undo(0),
        // Many runs side by side, each of a small part.
        (true, _) => strict,
        (false, true) => arguments.trust.limits().with_prints_bytes(PRINTS_BYTES),
        (false, false) => arguments.trust.limits(),
    }
}

/// Returns a handle that Ctrl-C cancels. Without a handler, Ctrl-C ends the process.
fn cancelled_by_ctrl_c() -> Cancel {
    let cancel = Cancel::new();
    let interrupt = cancel.clone();
    // The run ends in an orderly way. Code that does not check the handle, such as a blocked write to a pipe, has one
    // second.
    let handler = move || {
        // What interrupts a pager is for the pager.
        if pager::is_open() {
            return;
        }
        interrupt.cancel();
        std::thread::sleep(Duration::from_secs(1));
        std::process::exit(130)
    };
    let _ = ctrlc::set_handler(handler);
    cancel
}

/// Runs the program once per line of the input.
fn each_line(
    arguments: &Arguments,
    engine: Engine,
    (name, source): (&str, &str),
    (input, sources): (Input<'static>, Sources),
) -> Result<Exit, Failure> {
    let program = match engine.compile(source) {
        Ok(program) => program,
        Err(problem) => {
            tell!("{}", errors::draw(&problem, name, source));
            return Ok(Exit::of_problem(&problem));
        }
    };
    values::notes_on_program(&program.warnings()).for_each(|note| tell_line!("ptcl: {note}"));
    let (grant, name, text) = (arguments.grant.clone(), name.to_owned(), source.to_owned());
    let name_of_in = if arguments.inputs().len() < 2 { sources.name() } else { "the input".to_owned() };
    let each = Each {
        runner: arguments.isolation.open(engine, 1)?,
        program,
        input: input.without_memory(),
        format: arguments.output.format(),
        keep_going: arguments.keep_going,
        skip_nil: arguments.skip_nil,
        line_bytes: arguments.line_bytes,
        complain: Box::new(move |outcome| {
            let name_of_in = &name_of_in;
            complaint(outcome, &Texts { grant: &grant, name: &name, source: &text, is_shared: true, name_of_in })
        }),
    };
    lines::run(each, sources, arguments.jobs)
}

/// Folds the lines of the input, and writes the value.
fn folded(
    arguments: &Arguments,
    engine: Engine,
    expressions: Expressions<'_>,
    texts: &Texts<'_>,
    (input, sources): (Input<'static>, Sources),
    cancel: &Cancel,
) -> Result<Exit, Failure> {
    fold::check(&arguments.grant, &engine)?;
    let (input, failed) = streaming(input, cancel, false);
    let fold = Fold {
        failed,
        runner: arguments.isolation.open(engine, 1)?,
        input,
        expressions,
        keep_going: arguments.keep_going,
        line_bytes: arguments.line_bytes,
    };
    match fold::run(fold, sources, texts)? {
        Ok(folded) => Ok(write_outcome(&folded.outcome, arguments, texts)?.max(folded.exit)),
        Err(exit) => Ok(exit),
    }
}

/// Runs the program once, and writes its value or the whole answer.
fn whole(
    arguments: &Arguments,
    engine: Engine,
    texts: &Texts<'_>,
    input: Input<'static>,
    cancel: &Cancel,
) -> Result<Exit, Failure> {
    let (input, failed) = match arguments.json {
        true => (input.measure_live(), None),
        false => {
            let (input, failed) = streaming(input, cancel, arguments.record.is_some());
            (input, Some(failed))
        }
    };
    let input = if arguments.wants_profile() { input.profile() } else { input };
    let runner = arguments.isolation.open(engine, 1)?;
    // Last, so that earlier errors leave no file.
    let record = arguments.record.as_deref().map(Record::to).transpose()?;
    let input = match &record {
        Some(record) => input.record(record.recording()),
        None => input,
    };
    let outcome = runner.eval(texts.source, input)?;
    // Only if needed: it processes the whole value again.
    let mut answer = (arguments.json || record.is_some()).then(|| Answer::new(None, &outcome));
    if let (Some(record), Some(answer)) = (&record, &mut answer) {
        record.finish(answer)?;
    }
    show_profile(arguments, &outcome, texts)?;
    if let Some(error) = failed.and_then(|failed| failed.try_recv().ok()) {
        return Err(Failure::Stream(error));
    }
    match answer.filter(|_| arguments.json) {
        Some(answer) => {
            let mut out = io::stdout().lock();
            writeln!(out, "{}", output::shown(&answer.to_json()))?;
            out.flush()?;
            Ok(lost(&outcome, Exit::of(&outcome)))
        }
        None => write_outcome(&outcome, arguments, texts),
    }
}

/// Writes the value to standard output, and notes to standard error.
fn write_outcome(outcome: &Outcome, arguments: &Arguments, texts: &Texts<'_>) -> Result<Exit, Failure> {
    let format = arguments.output.format();
    let pages = !arguments.no_pager && !arguments.watch;
    let mut out = io::stdout().lock();
    let mut exit = Exit::of(outcome);
    if outcome.is_success() {
        match written(outcome, format) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                let text = laid_out(&output::shown(&text), format).into_owned();
                out.flush()?;
                let what = if format == Format::Table { Paged::Table } else { Paged::Text };
                let is_too_wide = what == Paged::Table && pager::is_wider_than_window(&text);
                let is_too_large = is_too_wide || pager::is_longer_than_window(&text);
                let is_paged = pages && io::stdout().is_terminal() && is_too_large;
                if !is_paged || !pager::show(&text, what)? {
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                if format != Format::Clojure {
                    values::notes(outcome).for_each(|note| tell_line!("ptcl: {note}"));
                }
            }
            Err(unfit) => {
                tell_line!("ptcl: {unfit}");
                exit = unfit.exit();
            }
        }
    }
    out.flush()?;
    values::notes_on_program(outcome.warnings()).for_each(|note| tell_line!("ptcl: {note}"));
    tell!("{}", complaint(outcome, texts));
    if outcome.is_success() {
        exit = lost(outcome, exit);
    }
    Ok(exit)
}

/// Reports printed lines that were lost, and returns the exit code.
fn lost(outcome: &Outcome, exit: Exit) -> Exit {
    match output::lost_prints(outcome) {
        Some(why) => {
            tell_line!("ptcl: {why}");
            exit.max(Exit::Limit)
        }
        None => exit,
    }
}

/// Shows the profile and writes the flame graph. A run that did not start has no profile.
fn show_profile(arguments: &Arguments, outcome: &Outcome, texts: &Texts<'_>) -> Result<(), Failure> {
    let Some(profile) = &outcome.profile else { return Ok(()) };
    let drawn = Drawn::new(profile, texts);
    if arguments.profile {
        tell!("{}", drawn.table());
    }
    #[cfg(feature = "flamegraph")]
    if let Some(path) = &arguments.flame {
        drawn
            .flame()
            .and_then(|svg| replace::write(path, &svg))
            .map_err(|error| Failure::File { path: path.clone(), error })?;
    }
    Ok(())
}

/// Lays a value out for a terminal: over several lines if it does not fit, and with colours.
fn laid_out(text: &str, format: Format) -> Cow<'_, str> {
    let is_terminal = io::stdout().is_terminal();
    let has_colours = colour::is_wanted(is_terminal);
    let columns = match format {
        Format::Clojure | Format::Json if is_terminal => output::columns(),
        Format::Clojure | Format::Json | Format::Ndjson => usize::MAX,
        Format::Pretty => 0,
        // The others are as they are.
        _ => return Cow::Borrowed(text),
    };
    if !is_terminal && !has_colours {
        return Cow::Borrowed(text);
    }
    let layout = Layout { columns, is_json: format != Format::Clojure, has_colours };
    match format {
        Format::Ndjson => Cow::Owned(text.lines().map(|line| lay_out(line, layout) + "\n").collect()),
        _ => Cow::Owned(lay_out(text, layout) + "\n"),
    }
}

/// Returns the value in the requested format.
fn written(outcome: &Outcome, format: Format) -> Result<Vec<u8>, Unfit> {
    match (format, outcome.text_cut()) {
        (Format::Clojure, Some(bytes)) => Err(Unfit::Cut(bytes)),
        (Format::Csv | Format::Tsv | Format::Table, _) => values::rows(values::json(outcome)?, format),
        _ => {
            let mut text = Vec::new();
            values::line(outcome, format, &mut text).map(|()| text)
        }
    }
}

/// Writes each line as the program prints it; a record also keeps them. If standard output fails, the run is cancelled
/// and the error is sent to the channel.
fn streaming<'a>(input: Input<'a>, cancel: &Cancel, keeps: bool) -> (Input<'a>, Receiver<io::Error>) {
    let (fails, failed): (Sender<io::Error>, _) = channel();
    let cancel = cancel.clone();
    let show = move |line: &str| {
        let mut out = io::stdout().lock();
        if let Err(error) = writeln!(out, "{}", output::shown(line)).and_then(|()| out.flush()) {
            // The first error is enough; it may already have been received.
            let _ = fails.send(error);
            cancel.cancel();
        }
    };
    (if keeps { input.on_print(show) } else { input.print_to(show) }, failed)
}

/// The message for standard error: the error, or what was left out.
fn complaint(outcome: &Outcome, texts: &Texts<'_>) -> String {
    if outcome.kind() == Some(OutcomeKind::Fail) {
        let cut = outcome.text_cut().map(|total| format!("... ({total} bytes in all: the limit is result_bytes)"));
        return format!("failed: {}{}\n", visible(outcome.text().unwrap_or_default()), cut.unwrap_or_default());
    }
    let drawn = |problem| given::printed_by_setup(outcome) + &given::draw(problem, texts);
    outcome.problem().map(drawn).unwrap_or_default()
}
