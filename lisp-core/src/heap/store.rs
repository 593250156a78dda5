//! A heap together with the roots that point into it. Values are kept only here between two uses of the heap.

use super::collect::Collector;
use super::header::CONSTANTS;
use super::memory::{self, OutOfMemory};
use super::{Heap, Res, Value};
use bumpalo::Bump;
use std::any::Any;
use std::ops::DerefMut;
use std::sync::Arc;

/// The roots of a store: a family of types indexed by the brand of the heap.
///
/// # Safety
/// - `In` uses its lifetime only to brand values and references to pinned things: `In<'a>` and `In<'b>` have the same
///   layout and behavior. Its other parts can be sent to and shared between threads, and dropping it reads no value.
/// - `trace` passes each value and each closure among the roots to the collector, and stores what the collector returns
///   in its place.
/// - `release` returns only indices of such things.
/// - `Context` owns one heap for as long as it lives, and dereferences to it. It can be sent to another thread.
pub(crate) unsafe trait Trace: 'static {
    /// The roots under one brand.
    type In<'h>;

    /// What work on the store uses: the heap, and whatever else the owner of the store needs with it.
    type Context: DerefMut<Target = Heap>;

    /// Passes about `count` of the values among the roots to a compaction, starting at position `from`. Returns the
    /// position at which to continue; `None` if every value has been passed. Between two calls the roots may lose
    /// values, and a value may take the place of another if both have been passed.
    fn trace(roots: &mut Self::In<'static>, collector: &mut Collector, from: usize, count: usize) -> Option<usize>;

    /// Drops what the roots have of programs without functions: `seen` says by number which have one. Returns the
    /// indices of the pinned things to which neither the roots nor the functions of other programs refer afterwards.
    /// When this is called, no value refers to constants of programs.
    fn release(roots: &mut Self::In<'static>, seen: &[bool]) -> Vec<usize>;

    /// Returns the value among the roots that is the result of the work on the store.
    fn result(roots: &Self::In<'static>) -> Value<'static>;
}

/// Things that live as long as the store: compiled programs and grants.
#[derive(Clone, Copy)]
pub(crate) struct Pinned<'h>(&'h [Arc<dyn Any + Send + Sync>]);

impl<'h> Pinned<'h> {
    /// Returns the thing at an index, if it has this type.
    pub(crate) fn get<T: 'static>(self, place: usize) -> Option<&'h T> {
        self.0.get(place)?.downcast_ref()
    }
}

/// A heap, the roots into it, and what the roots need kept alive.
pub(crate) struct Store<R: Trace> {
    /// Declared first, so that it is dropped before what it points to.
    compaction: Option<Compaction>,
    // Declared before the heap and the pinned things so that it is dropped first; dropping it reads none of them.
    roots: R::In<'static>,
    context: Box<R::Context>,
    pinned: Vec<Arc<dyn Any + Send + Sync>>,
    /// Indices of things that are no longer pinned.
    unpinned: Vec<usize>,
    /// Identifies the time between two compactions. Values copied out of stores over this one carry it: their
    /// references are valid until the next compaction.
    epoch: Option<Arc<()>>,
}

/// A compaction in progress.
struct Compaction {
    collector: Collector,
    /// Roots from this one on have not been updated; `None` if all have.
    roots_from: Option<usize>,
    /// A piece of its work is being done. A panic, or lack of memory, leaves it set: roots and objects may then be
    /// partly updated, which cannot be detected. The compaction stays with the store, because roots refer to both
    /// arenas. It is neither continued nor finished, and the heap is not entered again.
    at_work: bool,
}

impl<R: Trace> Store<R> {
    /// Creates a store with empty roots.
    pub(crate) fn new(context: R::Context, roots: R::In<'static>) -> Self {
        let (pinned, unpinned) = (Vec::new(), Vec::new());
        Store { compaction: None, roots, context: Box::new(context), pinned, unpinned, epoch: None }
    }

    /// Keeps a thing alive for the store's life, or until it is released. Returns its index.
    pub(crate) fn pin(&mut self, thing: Arc<dyn Any + Send + Sync>) -> usize {
        match self.unpinned.pop() {
            Some(place) => {
                self.pinned[place] = thing;
                place
            }
            None => {
                self.pinned.push(thing);
                self.pinned.len() - 1
            }
        }
    }

    /// Returns the index that the next pinned thing will have.
    pub(crate) fn next_place(&self) -> usize {
        self.unpinned.last().copied().unwrap_or(self.pinned.len())
    }

    /// Returns the context, from outside: it gives no access to values.
    pub(crate) fn context(&self) -> &R::Context {
        &self.context
    }

    /// Returns the heap, from outside: its account and meter.
    pub(crate) fn heap(&self) -> &Heap {
        &self.context
    }

    /// Sets the budget of the heap, in bytes.
    pub(crate) fn rebudget(&mut self, bytes: usize) {
        self.context.rebudget(bytes);
    }

    /// Works with the heap, after finishing any compaction in progress. The values that `work` sees carry the brand
    /// `'h` and cannot leave it.
    ///
    /// # Panics
    /// Panics after a panic in the middle of a compaction, like everything that reads values: the heap is lost.
    pub(crate) fn enter<T>(&mut self, work: impl for<'h> FnOnce(&'h R::Context, &mut R::In<'h>, Pinned<'h>) -> T) -> T {
        self.finish_compaction();
        let roots: *mut R::In<'static> = &mut self.roots;
        let roots = roots.cast::<R::In<'_>>();
        // SAFETY: the two types differ only in the brand (`Trace`). `work` is generic over the brand, so what it puts
        // into the roots points into this heap, into the pinned things, or is 'static. None of these is dropped or
        // moved while the roots refer to it: the context is boxed and private, nothing refers to what is removed from
        // `pinned` (`Trace::release`), and its Arcs do not move their contents.
        let roots = unsafe { &mut *roots };
        work(&self.context, roots, Pinned(&self.pinned))
    }

    /// Works with the roots, whether or not a compaction is in progress.
    ///
    /// # Safety
    /// `work` reads no object that a value among the roots refers to, because it may be incomplete, and every value
    /// that it puts among the roots was among them before.
    pub(crate) unsafe fn enter_roots<T>(&mut self, work: impl for<'h> FnOnce(&mut R::In<'h>) -> T) -> T {
        let roots: *mut R::In<'static> = &mut self.roots;
        // SAFETY: as in `enter`. During a compaction values refer to objects of the old arena or the new one, both of
        // which exist until its end.
        work(unsafe { &mut *roots.cast::<R::In<'_>>() })
    }
}

impl<R: Trace> Store<R> {
    /// Compacts the heap: what the roots do not reach is freed.
    pub(crate) fn collect(&mut self) {
        while !self.collect_some(usize::MAX) {}
    }

    /// Starts or continues a compaction, for about as long as it takes to copy `work` bytes. Returns true if it is
    /// finished.
    ///
    /// # Panics
    /// Panics after a panic in the middle of a compaction.
    pub(crate) fn collect_some(&mut self, work: usize) -> bool {
        if !self.advance(work) {
            return false;
        }
        self.adopt_compacted();
        true
    }

    /// Runs a whole compaction that also copies the constants of programs that the roots reach. Afterwards only
    /// functions refer to programs. Of the first `programs` programs, those without functions are dropped. Returns the
    /// bytes of constants copied.
    ///
    /// # Panics
    /// Panics after a panic in the middle of a compaction.
    pub(crate) fn release_programs(&mut self, programs: usize) -> usize {
        self.finish_compaction();
        let collector = Collector::evacuating(self.context.region(), programs);
        self.compaction = Some(Compaction { collector, roots_from: Some(0), at_work: false });
        while !self.advance(usize::MAX) {}
        let (seen, copied) = self.compaction.as_mut().map(|done| done.collector.take_programs()).unwrap_or_default();
        self.adopt_compacted();
        for place in R::release(&mut self.roots, &seen) {
            if let Some(pinned) = self.pinned.get_mut(place) {
                *pinned = Arc::new(());
                self.unpinned.push(place);
            }
        }
        copied
    }

    /// Starts or continues a compaction. Returns true if everything is copied.
    fn advance(&mut self, work: usize) -> bool {
        /// The work for one root.
        const ROOT: usize = 16;
        let region = self.context.region();
        let compaction = self.compaction.get_or_insert_with(|| Compaction {
            collector: Collector::new(region),
            roots_from: Some(0),
            at_work: false,
        });
        assert!(!compaction.at_work, "the heap is lost: a compaction of it has panicked");
        compaction.at_work = true;
        let done = match compaction.roots_from {
            Some(from) => {
                compaction.roots_from = R::trace(&mut self.roots, &mut compaction.collector, from, work / ROOT + 1);
                false
            }
            None => compaction.collector.run(work),
        };
        compaction.at_work = false;
        done
    }

    /// Replaces the old arena with the copies.
    fn adopt_compacted(&mut self) {
        if let Some(done) = self.compaction.take() {
            self.context.adopt(done.collector);
            self.epoch = None;
        }
    }

    /// Returns true if a compaction is in progress. Until its end values may refer to incomplete objects.
    pub(crate) fn is_compacting(&self) -> bool {
        self.compaction.is_some()
    }

    fn finish_compaction(&mut self) {
        if self.compaction.is_some() {
            self.collect();
        }
    }

    /// Suspends the store, so that stores on other threads can read it: they pin what this returns.
    pub(crate) fn suspend(mut self) -> Arc<SuspendedHeap<R>> {
        self.finish_compaction();
        let epoch = self.epoch.get_or_insert_default().clone();
        Arc::new(SuspendedHeap { store: self, epoch })
    }

    /// Resumes a suspended store.
    ///
    /// # Errors
    /// Returns the store, still suspended, if it is still shared.
    pub(crate) fn resume(suspended: Arc<SuspendedHeap<R>>) -> Result<Self, Arc<SuspendedHeap<R>>> {
        Arc::try_unwrap(suspended).map(|suspended| suspended.store)
    }

    /// Ends a store over a suspended one: its result is copied out, for [`Store::import`] by that one. `None` if the
    /// copy takes more than `limit` bytes.
    ///
    /// # Errors
    /// Returns an error if the machine has no memory for the copy.
    pub(crate) fn export<S: Trace>(
        mut self,
        to: &SuspendedHeap<S>,
        limit: usize,
    ) -> Result<Option<ExportedValue>, OutOfMemory> {
        memory::caught(move || {
            self.finish_compaction();
            let value = R::result(&self.roots);
            let mut collector = Collector::between(self.context.region(), to.store.context.region(), limit);
            let value = collector.value(value);
            while !collector.run(usize::MAX) {}
            if collector.is_over() {
                return None;
            }
            let (bump, live) = collector.finish();
            let bump = (bump.allocated_bytes() > 0).then_some(bump);
            Some(ExportedValue { bump, value, live, epoch: to.epoch.clone() })
        })
    }

    /// Imports values that were exported from stores over this one: their memory becomes this store's.
    ///
    /// `place` gets each value and must put it among the roots. The account may exceed its limit afterwards; then a
    /// compaction is due. Returns false, with nothing done, if a value is not from a store over this one, or is older
    /// than its last compaction.
    pub(crate) fn import(
        &mut self,
        values: Vec<ExportedValue>,
        mut place: impl for<'h> FnMut(&'h R::Context, &mut R::In<'h>, Value<'h>),
    ) -> bool {
        let ours = |value: &ExportedValue| self.epoch.as_ref().is_some_and(|epoch| Arc::ptr_eq(epoch, &value.epoch));
        if !values.iter().all(ours) {
            return false;
        }
        // The end of a compaction would drop the arenas that are adopted here.
        self.finish_compaction();
        for ExportedValue { bump, value, .. } in values {
            if let Some(bump) = bump {
                self.context.adopt_arena(bump);
            }
            self.enter(|h, roots, _| {
                // SAFETY: the epoch shows that the value was copied for this store and that no compaction came since.
                // It points into the arena just adopted, into this heap, or into what is pinned.
                let value = unsafe { std::mem::transmute::<Value<'static>, Value<'_>>(value) };
                place(h, roots, value);
            });
        }
        true
    }
}

/// A suspended store, which others read.
pub(crate) struct SuspendedHeap<R: Trace> {
    store: Store<R>,
    epoch: Arc<()>,
}

impl<R: Trace> SuspendedHeap<R> {
    /// Returns what distinguishes this suspension from any other, as long as it is held.
    pub(crate) fn epoch(&self) -> Arc<()> {
        self.epoch.clone()
    }

    /// Returns the roots, for as long as the store is borrowed.
    pub(crate) fn roots(&self) -> &R::In<'_> {
        let roots: *const R::In<'static> = &self.store.roots;
        // SAFETY: the types differ only in the brand. The roots point into the heap and the pinned things of the store,
        // which live as long as `self` and are not written to while it is suspended.
        unsafe { &*roots.cast::<R::In<'_>>() }
    }

    /// Creates an empty heap for a store over this one, with a limit of `limit` bytes. Its fuel is counted from zero.
    pub(crate) fn heap_above(&self, limit: usize) -> Heap {
        Heap::new(self.store.context.region() + 1, limit)
    }
}

// SAFETY: a suspended store gives out only shared references to its roots and values, and the number of its region.
// Through them only the ends of buffers, headers and builders can be written, and only for objects of the writer's own
// region; stores over this one have another region. The cells of the context are accessible only to the store's owner,
// which has no access while it is suspended.
unsafe impl<R: Trace> Sync for SuspendedHeap<R> {}

/// A value on its way from one store to another, with its arena.
pub(crate) struct ExportedValue {
    bump: Option<Bump>,
    value: Value<'static>,
    live: usize,
    epoch: Arc<()>,
}

impl ExportedValue {
    /// Returns the size of the value's arena in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bump.as_ref().map_or(0, Bump::allocated_bytes)
    }

    /// Returns the bytes that the value holds once the heap that imported it has been compacted.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live
    }
}

// SAFETY: the value cannot be read before a store imports it.
unsafe impl Send for ExportedValue {}

// SAFETY: a store owns its context and everything that the roots point to, apart from the pinned things, which are Send
// + Sync and never written. The cells inside are accessed only through `&mut self`, or from one thread at a time.
unsafe impl<R: Trace> Send for Store<R> {}

/// Values that never change, with their arena: shared by many runs and threads.
pub(crate) struct Frozen {
    values: Vec<Value<'static>>,
    heap: Heap,
}

impl Frozen {
    /// Builds values in a fresh arena with a limit of `limit` bytes, and freezes them.
    pub(crate) fn build(
        limit: usize,
        build: impl for<'h> FnOnce(&'h Heap, &mut Vec<Value<'h>>) -> Res<()>,
    ) -> Res<Frozen> {
        Self::build_in(Self::REGION, limit, build)
    }

    /// Builds the constants of a program, which a machine can forget: [`Store::release_programs`] copies those that are
    /// still held.
    pub(crate) fn build_constants(
        limit: usize,
        build: impl for<'h> FnOnce(&'h Heap, &mut Vec<Value<'h>>) -> Res<()>,
    ) -> Res<Frozen> {
        Self::build_in(CONSTANTS, limit, build)
    }

    fn build_in(
        region: u32,
        limit: usize,
        build: impl for<'h> FnOnce(&'h Heap, &mut Vec<Value<'h>>) -> Res<()>,
    ) -> Res<Frozen> {
        let mut frozen = Frozen { values: Vec::new(), heap: Heap::new(region, limit) };
        let values: *mut Vec<Value<'static>> = &mut frozen.values;
        // SAFETY: as in `Store::enter`: `build` is generic over the brand, and the arena's chunks do not move when the
        // heap is moved.
        build(&frozen.heap, unsafe { &mut *values.cast::<Vec<Value<'_>>>() })?;
        Ok(frozen)
    }

    /// The region of frozen objects, so that no run takes them for its own.
    const REGION: u32 = 0;

    /// Returns the values, for as long as the arena is borrowed.
    pub(crate) fn values(&self) -> &[Value<'_>] {
        // SAFETY: the values point into `self.heap`, which lives as long as `self` and is never written again.
        unsafe { std::mem::transmute::<&[Value<'static>], &[Value<'_>]>(&self.values) }
    }

    /// Returns the size of the values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.heap.account().used + self.values.capacity() * std::mem::size_of::<Value<'_>>()
    }
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frozen").field("values", &self.values.len()).field("bytes", &self.bytes()).finish()
    }
}

// SAFETY: nothing writes to a frozen arena: in-place growth and forwarding check the region first, and no run has
// region 0 or that of constants, which evacuation copies without a mark. The heap's cells are not accessible from
// outside.
unsafe impl Send for Frozen {}
// SAFETY: as above.
unsafe impl Sync for Frozen {}
