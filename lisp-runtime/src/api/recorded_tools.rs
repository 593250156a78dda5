//! The tools of a run in the first line of its record.

use super::record_error::RecordError;
use crate::tools::contract::{Contract, Effect, Treatment};
use crate::tools::naming::{self, names_in};
use crate::tools::signature::Signature;
use crate::tools::tool::Tool;
use crate::tools::tool_set::Tools;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The JSON Schemas of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Schemas<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
}

/// A tool of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedTool<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) schemas: Option<Schemas<'a>>,
    pub(super) treatment: Treatment,
    /// Whether the record is of a version that did not store which tools are cached.
    #[serde(skip)]
    pub(super) lacks_cached: bool,
    /// Whether the record is of a version that did not store effects.
    #[serde(skip)]
    pub(super) lacks_effect: bool,
}

impl<'a> RecordedTool<'a> {
    fn of(tool: &'a Tool) -> Self {
        let Contract { text, schemas, name: _, given_name: _, description: _, signature: _, hyphenated: _, derived: _ } =
            &*tool.contract;
        let schemas = schemas.as_deref().map(|schemas| schemas.texts());
        RecordedTool {
            signature: text.as_deref().map(Cow::Borrowed),
            schemas: schemas.map(|(input, output)| Schemas { input, output }),
            treatment: Treatment::clone(&tool.treatment),
            lacks_cached: false,
            lacks_effect: false,
        }
    }

    /// Returns how the tool is now and how it was, if a run cannot resume with it. New optional parameters are no
    /// difference.
    fn difference(&self, tool: &Tool) -> Option<(String, String)> {
        let (contract, treatment) = (&*tool.contract, &*tool.treatment);
        let (is, was) = (contract.text.as_deref(), self.signature.as_deref());
        if (self.schemas.is_none() || contract.schemas.is_none()) && !extends(is, was) {
            let says = |text| match text {
                Some(text) => format!("has the signature {text}"),
                None => "has no signature".to_owned(),
            };
            return Some((says(is), says(was)));
        }
        let (is, was) = (fixed(treatment), fixed(&self.treatment));
        if is != was {
            return Some((is, was));
        }
        if self.lacks_cached {
            return None;
        }
        if treatment.cached != self.treatment.cached {
            let says = |is: bool| if is { "is cached" } else { "is not cached" }.to_owned();
            return Some((says(treatment.cached), says(self.treatment.cached)));
        }
        match (&self.schemas, &contract.schemas) {
            (None, None) => None,
            (None, Some(_)) => Some(("has a JSON Schema of its own".to_owned(), "has no JSON Schema".to_owned())),
            (Some(Schemas { input, output }), None) => {
                let output = output.map_or("any", RawValue::get);
                let was = format!("has the schemas {} -> {}", shown(input.get()), shown(output));
                Some(("has no JSON Schema".to_owned(), was))
            }
            (Some(Schemas { input, output }), Some(is)) => {
                (!is.extends(input, *output)).then(|| is.difference(input, *output))
            }
        }
    }

    /// Returns the tool as an external one.
    fn external(self, name: &str) -> Result<Tool, RecordError> {
        let RecordedTool { signature, schemas, treatment, lacks_cached: _, lacks_effect: _ } = self;
        let tool = match schemas {
            Some(Schemas { input, output }) => {
                Tool::of_schemas(&naming::name(name), input.get(), output.map(RawValue::get))
                    .map_err(|error| RecordError::Line { line: 1, why: format!("tool/{name}: {error}") })?
            }
            None => Tool::external(name),
        };
        let tool = match signature {
            // A signature that is not valid was only a text in the original run, too.
            Some(text) if tool.contract.schemas.is_none() && Signature::parse(&text).is_ok() => tool.signature(text),
            Some(text) => tool.described(text.into_owned()),
            None => tool,
        };
        Ok(tool.amend(|contract| contract.name = name.to_owned()).treat(|it| *it = treatment))
    }
}

/// Returns what of a treatment a resumed run must have as it was, besides the cache.
fn fixed(treatment: &Treatment) -> String {
    let Treatment { tagged, max_calls, redacted, effect: _, idempotent: _, cached: _, detached: _ } = treatment;
    format!("has tagged {tagged}, max_calls {max_calls}, redacted {redacted:?}")
}

/// The tools that the programs of a run name: others cannot be called. Older records have other tools, too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RecordedTools<'a>(#[serde(borrow)] pub(super) BTreeMap<Cow<'a, str>, RecordedTool<'a>>);

impl<'a> RecordedTools<'a> {
    /// Returns the tools that these programs name. If names are equal, the last tool counts.
    pub(super) fn of(all: impl Iterator<Item = &'a Tool>, sources: &[&str]) -> Self {
        let all: BTreeMap<&str, &Tool> = all.map(|tool| (tool.name(), tool)).collect();
        let named = named(sources, |name| all.contains_key(name)).into_iter();
        let tools = named.filter_map(|name| all.get(name)).map(|tool| (tool.name().into(), RecordedTool::of(tool)));
        RecordedTools(tools.collect())
    }

    /// Checks that the tools which the programs name exist and take what they took: those of the run itself first, then
    /// those of the engine.
    pub(super) fn check(&self, engine: &Tools, own: Option<&Tools>, sources: &[&str]) -> Result<(), RecordError> {
        let now = |name: &str| own.and_then(|own| own.get(name)).or_else(|| engine.get(name));
        let named = named(sources, |name| self.0.contains_key(name));
        let missing: Vec<String> =
            named.iter().filter(|name| now(name).is_none()).map(|name| (*name).to_owned()).collect();
        if !missing.is_empty() {
            return Err(RecordError::MissingTools(missing));
        }
        let difference = |name: &str| self.0.get(name)?.difference(now(name)?);
        match named.into_iter().find_map(|name| Some((name.to_owned(), difference(name)?))) {
            Some((name, (is, was))) => Err(RecordError::Tool { name, is, was }),
            None => Ok(()),
        }
    }

    /// Returns what a tool declared, if the record stores it.
    pub(super) fn declared(&self, tool: &str) -> Option<(Effect, bool)> {
        match self.0.get(tool) {
            Some(tool) if tool.lacks_effect => None,
            Some(tool) => Some((tool.treatment.effect, tool.treatment.idempotent)),
            None => Some((Effect::Unknown, false)),
        }
    }

    /// Returns the tools that the record does not declare as reading: what their started calls did is unknown. Empty if
    /// the record does not store effects.
    pub(super) fn changing(&self) -> BTreeSet<String> {
        let is_changing = |tool: &RecordedTool<'_>| !tool.lacks_effect && tool.treatment.effect != Effect::Read;
        self.0.iter().filter(|(_, tool)| is_changing(tool)).map(|(name, _)| name.to_string()).collect()
    }

    /// Returns the tools as external ones.
    pub(super) fn external(self) -> Result<Vec<Tool>, RecordError> {
        self.0.into_iter().map(|(name, tool)| tool.external(&name)).collect()
    }
}

/// Returns the tools that programs name, of those that are known: a text may name any number of others.
fn named<'s>(sources: &[&'s str], is_known: impl Fn(&str) -> bool) -> BTreeSet<&'s str> {
    sources.iter().flat_map(|source| names_in(source)).filter(|name| is_known(name)).collect()
}

/// Returns whether a signature takes all that another one took.
fn extends(is: Option<&str>, was: Option<&str>) -> bool {
    let read = |text| Signature::parse(text).ok();
    let optional = || Some(read(is?)?.extends(&read(was?)?));
    is == was || optional().unwrap_or(false)
}

/// Returns the beginning of a schema.
fn shown(schema: &str) -> Cow<'_, str> {
    const MAX: usize = 200;
    match schema.char_indices().nth(MAX) {
        None => Cow::Borrowed(schema),
        Some((end, _)) => Cow::Owned(format!("{}...", &schema[..end])),
    }
}
