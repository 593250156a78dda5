//! A cache of compiled programs by their source: most hosts run the same few programs again and again.

use super::program::{Program, read_limits};
use crate::terms::limits::Limits;
use lisp_core::syntax::ReadLimits;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The default number of programs that are kept.
pub(crate) const PROGRAMS: usize = 64;
/// The maximum number of programs: 256 MiB by their counted size.
const MAX: usize = 4_096;
/// The largest program that is kept, in bytes as [`lisp_core::compile::Program::bytes`] counts them: four to ten for
/// each byte of most sources. This bounds the size of the cache. A longer source is not looked up.
const LARGEST: usize = 64 * 1024;
/// The fraction that is evicted when the cache is full. Finding the least recently used ones visits all entries.
const PART: usize = 8;

/// The size of a program cache, and its hits and misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramCacheUsage {
    /// The number of programs in the cache.
    pub programs: usize,
    /// Their approximate size in bytes.
    pub bytes: usize,
    /// How often a program was found.
    pub hits: u64,
    /// How often a program was looked up and not found.
    ///
    /// This includes programs that do not compile or are too large to keep. If the cache is off, or the source has more
    /// than 64 KiB, nothing is looked up.
    pub misses: u64,
}

/// The least recently used programs are evicted. Programs that do not compile are not kept.
#[derive(Debug)]
pub(crate) struct ProgramCache {
    max: usize,
    hasher: RandomState,
    kept: Mutex<Programs>,
}

#[derive(Debug, Default)]
struct Programs {
    /// By the hash of the source and the limits. If two hashes are equal, the later program is kept.
    programs: HashMap<u64, Entry>,
    usage: ProgramCacheUsage,
    /// Counts look-ups.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    program: Program,
    asked: u64,
}

impl ProgramCache {
    /// Creates a cache of at most `max` programs, up to 4,096; 0 keeps none.
    pub(crate) fn new(max: usize) -> Self {
        ProgramCache { max: max.min(MAX), hasher: RandomState::new(), kept: Mutex::default() }
    }

    /// Returns the program of a source within limits: from the cache, or made by `compile`.
    pub(crate) fn get<E>(
        &self,
        source: &str,
        limits: &Limits,
        compile: impl FnOnce() -> Result<Program, E>,
    ) -> Result<Program, E> {
        if self.max == 0 || source.len() > LARGEST {
            return compile();
        }
        let ReadLimits { source_bytes, names, .. } = read_limits(limits);
        let hash = self.hasher.hash_one((source, source_bytes, names));
        if let Some(program) = self.lock().find(hash, source, limits) {
            return Ok(program);
        }
        let program = compile()?;
        // Dropped after the lock is released.
        let evicted = self.lock().keep(hash, &program, self.max);
        drop(evicted);
        Ok(program)
    }

    pub(crate) fn usage(&self) -> ProgramCacheUsage {
        self.lock().usage
    }

    /// A thread that panics leaves the cache consistent.
    fn lock(&self) -> MutexGuard<'_, Programs> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Programs {
    fn find(&mut self, hash: u64, source: &str, limits: &Limits) -> Option<Program> {
        self.now += 1;
        // The limits decide what the reader accepts.
        let is_it = |program: &Program| program.source() == source && *program.core().limits() == read_limits(limits);
        match self.programs.get_mut(&hash).filter(|entry| is_it(&entry.program)) {
            Some(entry) => {
                entry.asked = self.now;
                self.usage.hits += 1;
                Some(entry.program.clone())
            }
            None => {
                self.usage.misses += 1;
                None
            }
        }
    }

    /// Keeps a program, and returns the evicted ones.
    fn keep(&mut self, hash: u64, program: &Program, max: usize) -> Vec<Entry> {
        let Some(program) = program.within(LARGEST) else { return Vec::new() };
        let mut evicted = Vec::new();
        if self.programs.len() >= max && !self.programs.contains_key(&hash) {
            evicted = self.take_oldest();
        }
        self.usage.bytes += program.bytes();
        let entry = Entry { program, asked: self.now };
        evicted.extend(self.programs.insert(hash, entry));
        self.usage.bytes -= evicted.iter().map(|entry| entry.program.bytes()).sum::<usize>();
        self.usage.programs = self.programs.len();
        evicted
    }

    /// Removes the least recently used fraction, at least one.
    fn take_oldest(&mut self) -> Vec<Entry> {
        let mut times: Vec<u64> = self.programs.values().map(|entry| entry.asked).collect();
        if times.is_empty() {
            return Vec::new();
        }
        let last = times.len().div_ceil(PART) - 1;
        let until = *times.select_nth_unstable(last).1;
        self.programs.extract_if(|_, entry| entry.asked <= until).map(|(_, entry)| entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn get(cache: &ProgramCache, source: &str) -> Program {
        let limits = Limits::default();
        cache.get(source, &limits, || Program::compile(source, &limits)).expect("a program")
    }

    fn is_kept(cache: &ProgramCache, source: &str) -> bool {
        let hits = cache.usage().hits;
        get(cache, source);
        cache.usage().hits > hits
    }

    #[test]
    fn the_one_asked_for_longest_ago_goes() {
        let cache = ProgramCache::new(2);
        let first = get(&cache, "1");
        get(&cache, "2");
        assert!(Arc::ptr_eq(first.core(), get(&cache, "1").core()));
        get(&cache, "3");
        let usage = cache.usage();
        assert_eq!((usage.programs, usage.hits, usage.misses), (2, 1, 3));
        assert_eq!(usage.bytes, get(&cache, "3").core().bytes() + first.core().bytes());
        assert!(is_kept(&cache, "1") && !is_kept(&cache, "2"));
    }

    #[test]
    fn what_is_large_or_does_not_compile_is_not_kept() {
        let cache = ProgramCache::new(2);
        let large = format!("[{}]", "\"some text\" ".repeat(3_000));
        assert!(!is_kept(&cache, &large) && !is_kept(&cache, &large));
        let limits = Limits::default();
        for _ in 0..2 {
            assert!(cache.get("(", &limits, || Program::compile("(", &limits)).is_err());
        }
        assert_eq!((cache.usage().programs, cache.usage().bytes, cache.usage().hits), (0, 0, 0));
    }

    #[test]
    fn a_program_of_other_limits_is_compiled_anew() {
        let cache = ProgramCache::new(2);
        get(&cache, "(let [a 1 b 2] (+ a b))");
        let narrow = Limits::default().with_symbols(2);
        let source = "(let [a 1 b 2] (+ a b))";
        let problem = cache.get(source, &narrow, || Program::compile(source, &narrow)).err();
        assert_eq!(problem.map(|problem| problem.reason()), Some(lisp_core::Reason::SymbolLimitExceeded));
    }

    #[test]
    fn programs_of_other_limits_are_kept_beside_each_other() {
        let cache = ProgramCache::new(2);
        let narrow = Limits::default().with_symbols(20);
        for _ in 0..3 {
            get(&cache, "(+ 1 2)");
            cache.get("(+ 1 2)", &narrow, || Program::compile("(+ 1 2)", &narrow)).expect("a program");
        }
        assert_eq!((cache.usage().programs, cache.usage().hits, cache.usage().misses), (2, 4, 2));
    }

    #[test]
    fn an_eighth_goes_when_there_are_too_many() {
        let cache = ProgramCache::new(64);
        for number in 0..64 {
            get(&cache, &number.to_string());
        }
        get(&cache, "0");
        assert_eq!(cache.usage().programs, 64);
        get(&cache, "64");
        assert_eq!(cache.usage().programs, 57);
        assert!(is_kept(&cache, "0") && is_kept(&cache, "9") && !is_kept(&cache, "1"));
        for number in 0..1_000 {
            get(&cache, &number.to_string());
            assert!(cache.usage().programs <= 64);
        }
        let bytes: usize = cache.lock().programs.values().map(|entry| entry.program.bytes()).sum();
        assert_eq!(cache.usage().bytes, bytes);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let cache = ProgramCache::new(0);
        get(&cache, "1");
        assert_eq!(cache.usage(), ProgramCacheUsage::default());
    }
}
