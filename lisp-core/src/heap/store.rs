//! A heap together with the roots that point into it: the one place where values are kept between two visits.

use super::collect::Collector;
use super::{Account, Heap, Res, Value};
use bumpalo::Bump;
use std::any::Any;
use std::sync::Arc;

/// A type of roots: a family indexed by the brand of the heap.
pub trait Rooted: 'static {
    /// The roots under one brand. The family must not use the lifetime for anything but branding values.
    type In<'h>;

    /// Shows the values among the roots to the compaction, from the one at a place on and about so many, and puts in
    /// what it answers. Answers where to go on; `None` when every value has been shown. Between two calls the roots may
    /// lose values, and one may take the place of another if both have been shown.
    fn trace(roots: &mut Self::In<'static>, collector: &mut Collector, from: usize, count: usize) -> Option<usize>;

    /// The value among the roots that the work on the store came to.
    fn result(roots: &Self::In<'static>) -> Value<'static>;
}

/// Things that live at least as long as a visit: compiled programs and grants.
#[derive(Clone, Copy)]
pub struct Keep<'h>(&'h [Arc<dyn Any + Send + Sync>]);

impl<'h> Keep<'h> {
    /// The thing at a place, when it is of this type.
    pub fn get<T: 'static>(self, place: usize) -> Option<&'h T> {
        self.0.get(place)?.downcast_ref()
    }
}

/// A heap, the roots into it and what the roots need kept alive.
pub struct Store<R: Rooted> {
    /// Declared first, so that it goes before what it points to.
    compaction: Option<Compaction>,
    // Declared before the heap and the kept things so that it goes first; it has nothing to drop that looks at them.
    roots: R::In<'static>,
    heap: Box<Heap>,
    keep: Vec<Arc<dyn Any + Send + Sync>>,
    /// What values must carry that were copied out of stores over this one, to be taken in: their references are good
    /// until the next compaction.
    ticket: Option<Arc<()>>,
}

/// A compaction under way.
struct Compaction {
    collector: Collector,
    /// Roots from this one on have not been seen to; `None` when all have.
    roots_from: Option<usize>,
}

impl<R: Rooted> Store<R> {
    /// A store with empty roots.
    pub fn new(heap: Heap, roots: R::In<'static>) -> Self {
        Store { compaction: None, roots, heap: Box::new(heap), keep: Vec::new(), ticket: None }
    }

    /// Keeps a thing alive for the store's life; answers its place.
    pub fn keep(&mut self, thing: Arc<dyn Any + Send + Sync>) -> usize {
        self.keep.push(thing);
        self.keep.len() - 1
    }

    /// The things that are kept.
    pub fn kept(&self) -> Keep<'_> {
        Keep(&self.keep)
    }

    /// The heap, from outside: its account and fuel.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Gives the heap another budget, in bytes.
    pub fn rebudget(&mut self, bytes: usize) {
        self.heap.rebudget(bytes);
    }

    /// Visits the heap; a compaction under way is brought to its end before. Values seen inside carry the brand `'h` and
    /// cannot leave.
    pub fn enter<T>(&mut self, visit: impl for<'h> FnOnce(&'h Heap, &mut R::In<'h>, Keep<'h>) -> T) -> T {
        self.finish_compaction();
        let roots: *mut R::In<'static> = &mut self.roots;
        let roots = roots.cast::<R::In<'_>>();
        // SAFETY: the two types differ in the brand only. `visit` is generic over the brand, so what it puts into
        // the roots points into this heap, into the kept things, or is 'static; none of them is dropped or moved
        // while the roots exist: the heap is boxed and private, `keep` only grows and its Arcs do not move their
        // contents.
        let roots = unsafe { &mut *roots };
        visit(&self.heap, roots, Keep(&self.keep))
    }

    /// Visits the roots, whether a compaction is under way or not: what their values refer to may be incomplete, so it is
    /// not to be looked at, and what is put in must have been among the roots.
    pub(crate) fn visit_roots<T>(&mut self, visit: impl for<'h> FnOnce(&mut R::In<'h>) -> T) -> T {
        let roots: *mut R::In<'static> = &mut self.roots;
        // SAFETY: as in `enter`; during a compaction values refer to objects of the old arena or the new one, both of which
        // are there until its end, and which are whole objects at any time.
        visit(unsafe { &mut *roots.cast::<R::In<'_>>() })
    }
}

impl<R: Rooted> Store<R> {
    /// Compacts the heap: what the roots do not reach is gone.
    pub fn collect(&mut self) {
        while !self.collect_some(usize::MAX) {}
    }

    /// Begins a compaction or goes on with it, for about as long as it takes to copy so many bytes. Answers whether it
    /// has come to its end.
    pub fn collect_some(&mut self, work: usize) -> bool {
        /// The work that it takes to see to a root.
        const ROOT: usize = 16;
        let region = self.heap.region();
        let compaction = self
            .compaction
            .get_or_insert_with(|| Compaction { collector: Collector::new(region), roots_from: Some(0) });
        if let Some(from) = compaction.roots_from {
            compaction.roots_from = R::trace(&mut self.roots, &mut compaction.collector, from, work / ROOT + 1);
            return false;
        }
        if !compaction.collector.run(work) {
            return false;
        }
        if let Some(done) = self.compaction.take() {
            self.heap.adopt(done.collector);
            self.ticket = None;
        }
        true
    }

    fn finish_compaction(&mut self) {
        if self.compaction.is_some() {
            self.collect();
        }
    }

    /// Lets stores on other threads read this one. They reach it by keeping what this answers.
    pub fn share(mut self) -> Arc<Shared<R>> {
        self.finish_compaction();
        let ticket = self.ticket.get_or_insert_default().clone();
        Arc::new(Shared { store: self, ticket })
    }

    /// Takes the store back; `Err` while somebody else holds it.
    ///
    /// # Errors
    /// The store, still shared.
    pub fn unshare(shared: Arc<Shared<R>>) -> Result<Self, Arc<Shared<R>>> {
        Arc::try_unwrap(shared).map(|shared| shared.store)
    }

    /// Ends a store over a shared one: its result is copied out, for [`Store::take_in`] of the shared one. `None` when
    /// the copy takes more than `limit` bytes.
    pub fn send<S: Rooted>(mut self, to: &Shared<S>, limit: usize) -> Option<Sent> {
        self.finish_compaction();
        let value = R::result(&self.roots);
        let mut collector = Collector::between(self.heap.region(), to.store.heap.region(), limit);
        let value = collector.value(value);
        while !collector.run(usize::MAX) {}
        if collector.is_over() {
            return None;
        }
        let bump = collector.finish().0;
        Some(Sent { bump: (bump.allocated_bytes() > 0).then_some(bump), value, ticket: to.ticket.clone() })
    }

    /// Takes values in that were copied out of stores over this one: their memory becomes this store's. `place` gets
    /// each and must put it among the roots. The account may be above its limit afterwards: then a compaction is due.
    /// Answers false, with nothing done, when a value is not from a store over this one, or is older than its last
    /// compaction.
    pub fn take_in(
        &mut self,
        values: Vec<Sent>,
        mut place: impl for<'h> FnMut(&'h Heap, &mut R::In<'h>, Value<'h>),
    ) -> bool {
        let ours = |sent: &Sent| self.ticket.as_ref().is_some_and(|ticket| Arc::ptr_eq(ticket, &sent.ticket));
        if !values.iter().all(ours) {
            return false;
        }
        // Its end would drop what comes in now.
        self.finish_compaction();
        for Sent { bump, value, .. } in values {
            if let Some(bump) = bump {
                self.heap.take_chunk(bump);
            }
            self.enter(|h, roots, _| {
                // SAFETY: the ticket says that the value was copied for this store and that no compaction came since:
                // it points into the chunk just taken over, into this heap, or into what is kept.
                let value = unsafe { std::mem::transmute::<Value<'static>, Value<'_>>(value) };
                place(h, roots, value);
            });
        }
        true
    }
}

/// A store that others read while it is at rest.
pub struct Shared<R: Rooted> {
    store: Store<R>,
    ticket: Arc<()>,
}

impl<R: Rooted> Shared<R> {
    /// The roots, for as long as the store is borrowed.
    pub fn roots(&self) -> &R::In<'_> {
        let roots: *const R::In<'static> = &self.store.roots;
        // SAFETY: the types differ in the brand only; the roots point into the heap and the kept things of the store,
        // which live as long as `self` and are not written to while it is shared.
        unsafe { &*roots.cast::<R::In<'_>>() }
    }

    /// The account of the heap.
    pub fn account(&self) -> Account {
        self.store.heap.account()
    }

    /// An empty heap for a store over this one, which may hold `limit` bytes.
    pub fn heap_above(&self, limit: usize) -> Heap {
        self.store.heap.above(limit)
    }
}

// SAFETY: a shared store gives out shared references to its roots and values only. What can be written through them
// is the ends of buffers, headers and builders, and all of that is done for objects of the writer's own region only;
// stores over this one have another. The heap's own cells are written by allocations and charges, which need the
// visit that `Store::enter` gives, and by the driver that holds the store alone.
unsafe impl<R: Rooted> Sync for Shared<R> {}

/// A value on its way from one store to another, with the arena it lives in.
pub struct Sent {
    bump: Option<Bump>,
    value: Value<'static>,
    ticket: Arc<()>,
}

impl Sent {
    /// Bytes that the value's arena takes.
    pub fn bytes(&self) -> usize {
        self.bump.as_ref().map_or(0, Bump::allocated_bytes)
    }
}

// SAFETY: nobody can look at the value before the store takes it in.
unsafe impl Send for Sent {}

// SAFETY: a store owns its heap and everything the roots point to, apart from the kept things, which are Send + Sync
// and never written. The cells inside are reached through `&mut self` only, or from one thread at a time.
unsafe impl<R: Rooted> Send for Store<R> {}

/// Values that never change again, with the arena they live in: shared by many runs and threads.
pub struct Frozen {
    values: Vec<Value<'static>>,
    heap: Heap,
}

impl Frozen {
    /// Builds values in a fresh arena that may hold `limit` bytes, and freezes them.
    pub fn build(limit: usize, build: impl for<'h> FnOnce(&'h Heap, &mut Vec<Value<'h>>) -> Res<()>) -> Res<Frozen> {
        let mut frozen = Frozen { values: Vec::new(), heap: Heap::new(Self::REGION, limit) };
        let values: *mut Vec<Value<'static>> = &mut frozen.values;
        // SAFETY: as in `Store::enter`: `build` is generic over the brand, and the arena's chunks do not move when
        // the heap is moved.
        build(&frozen.heap, unsafe { &mut *values.cast::<Vec<Value<'_>>>() })?;
        Ok(frozen)
    }

    /// Frozen objects carry this region, so that no run takes them for its own.
    pub const REGION: u32 = 0;

    /// The values, for as long as the arena is borrowed.
    pub fn values(&self) -> &[Value<'_>] {
        // SAFETY: the values point into `self.heap`, which lives as long as `self` and is never written again.
        unsafe { std::mem::transmute::<&[Value<'static>], &[Value<'_>]>(&self.values) }
    }

    /// Bytes that the values take.
    pub fn bytes(&self) -> usize {
        self.heap.account().used + self.values.capacity() * std::mem::size_of::<Value<'_>>()
    }
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frozen").field("values", &self.values.len()).field("bytes", &self.bytes()).finish()
    }
}

// SAFETY: nothing writes to a frozen arena: in-place growth and forwarding look at the region first, and no run has
// region 0. The heap's cells are not reachable from outside.
unsafe impl Send for Frozen {}
// SAFETY: as above.
unsafe impl Sync for Frozen {}
