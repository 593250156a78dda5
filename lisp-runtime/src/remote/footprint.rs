//! The size of a message after decoding, without decoding it: one byte of it may stand for a value of many bytes.
//!
//! Each of these types reads what its namesake reads, keeps nothing, and counts.

use super::report::{DetailData, EveryFigure, RefusedCall};
use crate::terms::clock::Reading;
use crate::terms::outcome::{Call, Figures, FurtherError, Local, OutcomeKind, Phase, Position, Usage};
use crate::terms::place::Place;
use crate::terms::profile::{Cost, ProfileNode};
use crate::terms::warning::{Warning, WarningKind};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// Bytes that a value takes without, and with, what it points to.
trait Decoded {
    fn bytes(&self) -> usize;
}

impl Decoded for &str {
    fn bytes(&self) -> usize {
        size_of::<String>() + self.len()
    }
}

impl Decoded for u32 {
    fn bytes(&self) -> usize {
        size_of::<u32>()
    }
}

impl Decoded for u64 {
    fn bytes(&self) -> usize {
        size_of::<u64>()
    }
}

impl Decoded for (u32, u32) {
    fn bytes(&self) -> usize {
        size_of::<(u32, u32)>()
    }
}

impl Decoded for PlaceFootprint {
    fn bytes(&self) -> usize {
        size_of::<Place>() + self.workers.bytes
    }
}

impl Decoded for Reading {
    fn bytes(&self) -> usize {
        size_of::<Reading>()
    }
}

impl Decoded for (&str, SomeFigure<'_>) {
    fn bytes(&self) -> usize {
        let text = match self.1 {
            SomeFigure::Int(_) => 0,
            SomeFigure::Text(text) => text.len(),
        };
        size_of::<(String, DetailData)>() + self.0.len() + text
    }
}

impl Decoded for SomeCall<'_> {
    fn bytes(&self) -> usize {
        let element = self.element.as_ref().map_or(0, |element| element.of.len());
        size_of::<Call>() + self.function.map_or(0, str::len) + element
    }
}

impl Decoded for SomeLocal<'_> {
    fn bytes(&self) -> usize {
        size_of::<Local>() + self.name.len() + self.value.len()
    }
}

/// A sequence of which only the bytes are counted.
struct Walked<T> {
    bytes: usize,
    of: PhantomData<T>,
}

impl<'de, T: Decoded + Deserialize<'de>> Deserialize<'de> for Walked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Walked { bytes: 0, of: PhantomData })
    }
}

impl<'de, T: Decoded + Deserialize<'de>> Visitor<'de> for Walked<T> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while let Some(item) = items.next_element::<T>()? {
            self.bytes = self.bytes.saturating_add(item.bytes());
        }
        Ok(self)
    }
}

/// The size of printed lines.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct LinesFootprint<'a>(#[serde(borrow)] Walked<&'a str>);

/// The size of a [`GuestCall`](super::GuestCall).
#[derive(Deserialize)]
pub struct CallFootprint<'a> {
    #[serde(rename = "number")]
    _number: u64,
    place: PlaceFootprint,
    name: &'a str,
    arguments: &'a str,
    #[serde(rename = "figures")]
    _figures: Option<Figures>,
    given_up: Walked<PlaceFootprint>,
    #[serde(rename = "has_turn")]
    _has_turn: bool,
}

/// The size of a [`Place`](crate::outcome::Place).
#[derive(Deserialize)]
struct PlaceFootprint {
    workers: Walked<(u32, u32)>,
    #[serde(rename = "effect")]
    _effect: u32,
}

/// The size of a [`Report`](super::Report).
#[derive(Deserialize)]
pub struct ReportFootprint<'a> {
    #[serde(borrow)]
    end: Result<SomeValue<'a>, SomeTrouble<'a>>,
    #[serde(borrow)]
    prints: Walked<&'a str>,
    #[serde(rename = "whole")]
    _whole: bool,
    calls: Walked<u64>,
    given_up: Walked<u64>,
    #[serde(rename = "prints_dropped")]
    _prints_dropped: u64,
    #[serde(rename = "usage", with = "EveryFigure")]
    _usage: Usage,
    #[serde(borrow)]
    names: Walked<&'a str>,
    clock: Walked<Reading>,
    #[serde(rename = "prints_cut")]
    _prints_cut: u64,
    #[serde(borrow)]
    refused: Walked<SomeRefused<'a>>,
    #[serde(rename = "more_refused")]
    _more_refused: u64,
    #[serde(borrow)]
    kept: Option<SomeKept<'a>>,
    #[serde(borrow)]
    profile: Option<SomeProfile<'a>>,
    #[serde(borrow)]
    warnings: Walked<SomeWarning<'a>>,
}

#[derive(Deserialize)]
struct SomeProfile<'a> {
    #[serde(borrow)]
    nodes: Walked<SomeNode<'a>>,
    #[serde(rename = "samples")]
    _samples: u64,
    #[serde(rename = "cut")]
    _cut: bool,
}

#[derive(Deserialize)]
struct SomeNode<'a> {
    #[serde(rename = "parent")]
    _parent: Option<u32>,
    function: Option<&'a str>,
    #[serde(rename = "span")]
    _span: Option<(u32, u32)>,
    #[serde(rename = "setup")]
    _setup: Option<usize>,
    #[serde(rename = "turn")]
    _turn: Option<u64>,
    #[serde(rename = "cost")]
    _cost: Cost,
}

impl Decoded for SomeNode<'_> {
    fn bytes(&self) -> usize {
        size_of::<ProfileNode>() + self.function.map_or(0, str::len)
    }
}

#[derive(Deserialize)]
struct SomeKept<'a> {
    #[serde(borrow)]
    definitions: Option<Result<&'a str, SomeFault<'a>>>,
    #[serde(borrow)]
    history: Option<Result<&'a str, SomeFault<'a>>>,
    #[serde(rename = "set_ups")]
    _set_ups: u32,
}

#[derive(Deserialize)]
struct SomeRefused<'a> {
    #[serde(rename = "place")]
    _place: u32,
    worker: Walked<u32>,
    name: &'a str,
    #[serde(borrow)]
    arguments: SomePreview<'a>,
    error: &'a str,
    #[serde(rename = "too_long")]
    _too_long: bool,
}

#[derive(Deserialize)]
struct SomePreview<'a> {
    text: &'a str,
    #[serde(rename = "bytes_total")]
    _bytes_total: usize,
}

impl Decoded for SomeRefused<'_> {
    fn bytes(&self) -> usize {
        let texts = self.name.len() + self.arguments.text.len() + self.error.len();
        size_of::<RefusedCall>() + texts + self.worker.bytes
    }
}

#[derive(Deserialize)]
struct SomeValue<'a> {
    #[serde(rename = "kind")]
    _kind: OutcomeKind,
    #[serde(borrow)]
    json: Result<&'a str, SomeFault<'a>>,
    text: &'a str,
    #[serde(rename = "text_bytes")]
    _text_bytes: usize,
    #[serde(borrow)]
    memory: Option<Result<&'a str, SomeFault<'a>>>,
}

#[derive(Deserialize)]
struct SomeWarning<'a> {
    #[serde(rename = "kind")]
    _kind: WarningKind,
    message: &'a str,
    #[serde(rename = "position")]
    _position: Option<Position>,
    repair: Option<&'a str>,
}

impl Decoded for SomeWarning<'_> {
    fn bytes(&self) -> usize {
        size_of::<Warning>() + self.message.len() + self.repair.map_or(0, str::len)
    }
}

#[derive(Deserialize)]
struct SomeTrouble<'a> {
    #[serde(borrow)]
    fault: SomeFault<'a>,
    #[serde(rename = "phase")]
    _phase: Phase,
    #[serde(rename = "position")]
    _position: Option<Position>,
    #[serde(rename = "setup")]
    _setup: Option<usize>,
    #[serde(rename = "turn")]
    _turn: Option<u64>,
    #[serde(borrow)]
    calls: Walked<SomeCall<'a>>,
    #[serde(borrow)]
    locals: Walked<SomeLocal<'a>>,
    #[serde(borrow)]
    more: Walked<(SomeFault<'a>, Option<Position>)>,
}

impl Decoded for (SomeFault<'_>, Option<Position>) {
    fn bytes(&self) -> usize {
        size_of::<FurtherError>() + self.0.bytes()
    }
}

#[derive(Deserialize)]
struct SomeCall<'a> {
    function: Option<&'a str>,
    #[serde(rename = "position")]
    _position: Position,
    #[serde(rename = "setup")]
    _setup: Option<usize>,
    #[serde(rename = "turn")]
    _turn: Option<u64>,
    #[serde(borrow)]
    element: Option<SomeElement<'a>>,
}

#[derive(Deserialize)]
struct SomeLocal<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Deserialize)]
struct SomeElement<'a> {
    of: &'a str,
    #[serde(rename = "index")]
    _index: usize,
}

#[derive(Deserialize)]
struct SomeFault<'a> {
    reason: &'a str,
    message: &'a str,
    #[serde(rename = "span")]
    _span: Option<(u32, u32)>,
    hint: Option<&'a str>,
    #[serde(borrow)]
    details: Walked<(&'a str, SomeFigure<'a>)>,
}

#[derive(Deserialize)]
enum SomeFigure<'a> {
    Int(#[allow(dead_code, reason = "nothing of a number is beside it")] i64),
    Text(&'a str),
}

impl SomeFault<'_> {
    fn bytes(&self) -> usize {
        let hint = self.hint.map_or(0, str::len);
        self.reason.len() + self.message.len() + hint + self.details.bytes
    }
}

impl LinesFootprint<'_> {
    /// Returns the bytes of the decoded lines.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }
}

impl CallFootprint<'_> {
    /// Returns the bytes of the decoded call.
    pub fn bytes(&self) -> usize {
        [self.place.workers.bytes, self.name.len(), self.arguments.len(), self.given_up.bytes]
            .into_iter()
            .fold(0, usize::saturating_add)
    }
}

impl ReportFootprint<'_> {
    /// Returns the bytes of the decoded report.
    pub fn bytes(&self) -> usize {
        let made = |part: &Result<&str, SomeFault<'_>>| part.as_ref().map_or_else(SomeFault::bytes, |text| text.len());
        let kept = self.kept.iter().flat_map(|kept| [&kept.definitions, &kept.history]).flatten().map(made);
        let kept = kept.fold(0, usize::saturating_add);
        let end = match &self.end {
            Ok(value) => {
                let memory = value.memory.as_ref().map_or(0, made);
                [made(&value.json), value.text.len(), memory].into_iter().fold(0, usize::saturating_add)
            }
            Err(trouble) => {
                let beside = [trouble.calls.bytes, trouble.locals.bytes, trouble.more.bytes]
                    .into_iter()
                    .fold(0, usize::saturating_add);
                trouble.fault.bytes().saturating_add(beside)
            }
        };
        let profile = self.profile.as_ref().map_or(0, |profile| profile.nodes.bytes);
        let sequences = [
            self.prints.bytes,
            self.calls.bytes,
            self.given_up.bytes,
            self.names.bytes,
            self.clock.bytes,
            self.refused.bytes,
            kept,
            profile,
            self.warnings.bytes,
        ];
        sequences.into_iter().fold(end, usize::saturating_add)
    }
}
