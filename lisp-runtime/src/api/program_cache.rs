//! Programs that an engine has compiled lately, by their source: most hosts run the same few again and again.

use super::program::{Program, read_limits};
use crate::terms::limits::Limits;
use lisp_core::syntax::ReadLimits;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many programs are kept unless the host says otherwise.
pub(crate) const PROGRAMS: usize = 64;
/// The most that are kept, whatever the host says: 256 MiB of programs, as they are counted.
const MOST: usize = 4_096;
/// A larger program is not kept, in bytes as [`lisp_core::compile::Program::bytes`] counts them: four to ten for each byte of most sources. So
/// this bounds what a cache holds. One whose source is larger is not looked for.
const LARGEST: usize = 64 * 1024;
/// The part of the programs that goes when there are too many. To find those that were asked for longest ago all are looked at.
const PART: usize = 8;

/// What a cache of compiled programs holds, and how often it had what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramCacheUsage {
    /// The programs that are kept.
    pub programs: usize,
    /// About how many bytes they take.
    pub bytes: usize,
    /// How often a program was there.
    pub hits: u64,
    /// How often one was looked for and was not there. That counts programs that do not compile or turn out too large to be kept as well; with
    /// no room for any, or for a source of more than 64 KiB, none is looked for.
    pub misses: u64,
}

/// Compiled programs; of too many those that were asked for longest ago go. Programs that do not compile are not kept.
#[derive(Debug)]
pub(crate) struct ProgramCache {
    most: usize,
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the hash of the source and the limits: of two with one hash the later one is kept.
    programs: HashMap<u64, Entry>,
    usage: ProgramCacheUsage,
    /// Counts what is asked for.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    program: Program,
    asked: u64,
}

impl ProgramCache {
    /// A cache of at most `most` programs, and of 4,096; 0 keeps none.
    pub(crate) fn new(most: usize) -> Self {
        ProgramCache { most: most.min(MOST), hasher: RandomState::new(), kept: Mutex::default() }
    }

    /// The program of a source within limits: the one that is kept, or what `compile` makes.
    pub(crate) fn get<E>(
        &self,
        source: &str,
        limits: &Limits,
        compile: impl FnOnce() -> Result<Program, E>,
    ) -> Result<Program, E> {
        if self.most == 0 || source.len() > LARGEST {
            return compile();
        }
        let ReadLimits { source_bytes, names, .. } = read_limits(limits);
        let hash = self.hasher.hash_one((source, source_bytes, names));
        if let Some(program) = self.lock().find(hash, source, limits) {
            return Ok(program);
        }
        let program = compile()?;
        // Let go of when the others can go on.
        let gone = self.lock().keep(hash, &program, self.most);
        drop(gone);
        Ok(program)
    }

    pub(crate) fn usage(&self) -> ProgramCacheUsage {
        self.lock().usage
    }

    /// Nothing is left half done by a thread that panics.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, hash: u64, source: &str, limits: &Limits) -> Option<Program> {
        self.now += 1;
        // What the reader takes depends on the limits.
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

    /// Keeps a program. Returns those that go for it.
    fn keep(&mut self, hash: u64, program: &Program, most: usize) -> Vec<Entry> {
        if program.core().bytes() > LARGEST {
            return Vec::new();
        }
        let mut gone = Vec::new();
        if self.programs.len() >= most && !self.programs.contains_key(&hash) {
            gone = self.take_oldest();
        }
        let entry = Entry { program: program.clone(), asked: self.now };
        self.usage.bytes += program.core().bytes();
        gone.extend(self.programs.insert(hash, entry));
        self.usage.bytes -= gone.iter().map(|entry| entry.program.core().bytes()).sum::<usize>();
        self.usage.programs = self.programs.len();
        gone
    }

    /// Takes out the part that was asked for longest ago, one at least.
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
        let bytes: usize = cache.lock().programs.values().map(|entry| entry.program.core().bytes()).sum();
        assert_eq!(cache.usage().bytes, bytes);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let cache = ProgramCache::new(0);
        get(&cache, "1");
        assert_eq!(cache.usage(), ProgramCacheUsage::default());
    }
}
