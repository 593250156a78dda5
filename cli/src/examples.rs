//! The examples at the end of each help text. A test parses each of them.

pub(crate) const RUN: &str = "\
Examples:
  ptcl run examples/orders.clj --data examples/orders.json
  ptcl run -e '(sum-by :total data/orders)' --data examples/orders.json
  cat lines.ndjson | ptcl run --lines --skip-nil -e '(when (> (:n data/in) 10) data/in)'
  ptcl run --from csv --typed --table -e '(take 5 data/in)' rows.csv
  ptcl run --untrusted --isolation process program.clj";

pub(crate) const BATCH: &str = "\
Examples:
  echo '{\"id\": 1, \"program\": \"(sum data/xs)\", \"data\": {\"xs\": [1, 2]}}' | ptcl batch
  ptcl batch --isolation process --jobs 4 < requests.ndjson > answers.ndjson";

pub(crate) const CHECK: &str = "\
Examples:
  ptcl check examples/orders.clj --data examples/orders.json
  ptcl check --tools tools.json -e '(tool/pay {:to \"a\" :amount 5})'";

pub(crate) const FMT: &str = "\
Examples:
  ptcl fmt program.clj
  ptcl fmt --check src/a.clj src/b.clj";

pub(crate) const TEST: &str = "\
Examples:
  ptcl test program.clj notes.md
  ptcl test --watch program.clj";

pub(crate) const EXPLAIN: &str = "\
Examples:
  ptcl explain
  ptcl explain type_error";

pub(crate) const DOC: &str = "\
Examples:
  ptcl doc group-by
  ptcl doc --markdown";

pub(crate) const DOCS: &str = "\
Examples:
  ptcl docs
  ptcl docs cookbook";

pub(crate) const PROMPT: &str = "\
Examples:
  ptcl prompt
  ptcl prompt --tools tools.json --keywords";

pub(crate) const REPL: &str = "\
Examples:
  ptcl repl
  ptcl repl --data examples/orders.json";

pub(crate) const REPLAY: &str = "\
Examples:
  ptcl run program.clj --record run.ptc
  ptcl replay run.ptc";

#[cfg(all(unix, feature = "serve"))]
pub(crate) const SERVE: &str = "\
Examples:
  ptcl serve
  ptcl serve --listen 127.0.0.1:8080 --config service.toml
  ptcl serve --store postgres://ptc@db.example/ptc --config service.toml";

#[cfg(all(unix, feature = "serve"))]
pub(crate) const WORKER: &str = "\
Examples:
  ptcl worker --store postgres://ptc@db.example/ptc --config service.toml --slots 8";

#[cfg(all(unix, feature = "serve"))]
pub(crate) const RUNS: &str = "\
Examples:
  ptcl runs list
  ptcl runs show 01a22106-fd24-7279-81bc-87bae7cdbc95
  ptcl runs approve 01a22106-fd24-7279-81bc-87bae7cdbc95 1
  ptcl runs --config service.toml check";

#[cfg(all(unix, feature = "serve"))]
pub(crate) const STORE: &str = "\
Examples:
  ptcl store --store ptc.db backup copy.db
  ptcl store --store ptc.db check";

#[cfg(all(unix, feature = "mcp"))]
pub(crate) const MCP: &str = "\
Examples:
  ptcl mcp --config service.toml
  ptcl mcp --listen 127.0.0.1:7119 --store ptc.db";

#[cfg(target_os = "linux")]
pub(crate) const SANDBOX: &str = "\
Examples:
  ptcl sandbox --capabilities
  ptcl sandbox --dir /tmp/pipes program.clj";

#[cfg(target_os = "linux")]
pub(crate) const SLATE: &str = "\
Examples:
  ptcl slate first.clj second.clj --json";

#[cfg(feature = "manual")]
pub(crate) const COMPLETIONS: &str = "\
Examples:
  ptcl completions bash > /etc/bash_completion.d/ptcl";

#[cfg(feature = "manual")]
pub(crate) const MAN: &str = "\
Examples:
  ptcl man | man -l -
  ptcl man /usr/local/share/man/man1";

#[cfg(test)]
mod tests {
    use crate::Arguments;
    use clap::{CommandFactory, Parser};

    /// Splits a command line as a shell does, up to a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
        for character in line.chars() {
            match character {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                '|' | '<' | '>' if !quoted => break,
                ' ' if !quoted => words.extend(word.take()),
                character => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        for command in Arguments::command().get_subcommands().filter(|command| command.get_name() != "help") {
            let text = command.get_after_help().unwrap_or_else(|| panic!("no examples of {command}")).to_string();
            let lines = text.strip_prefix("Examples:\n").unwrap().lines();
            for line in lines {
                let at = line.find("ptcl ").unwrap();
                let parsed = Arguments::try_parse_from(words(&line[at..]));
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
                let is_own = line[at..].starts_with(&format!("ptcl {}", command.get_name()));
                assert!(is_own || text.contains(&format!("ptcl {} ", command.get_name())), "{line}");
            }
        }
    }
}
