//! Operations on a store, drawn at random.

use lisp_server::store::RunStatus;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// An operation. Runs, leases, sessions and turns are named by small numbers; see `suite.rs` for what they mean.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Submit { tenant: u8, key: Option<u8>, digest: u8 },
    KnownRequest { tenant: u8, key: u8, digest: u8 },
    Claim { worker: u8, lapses: bool, slots: usize, room: Vec<(u8, usize)> },
    Renew { leases: Vec<Pick>, lapses: bool },
    Read { run: u8, skip: u64 },
    Write { lease: Pick, batch: Written, again: bool },
    End { lease: Pick, batch: Written, end: Ending, again: bool },
    Reply { to: To, body: u8 },
    Cancel { run: u8 },
    Retry { run: u8 },
    List { tenant: Option<u8>, status: Option<RunStatus>, max: usize },
    Counts,
    OpenSession { tenant: u8, has_text: bool, max: u64 },
    ReadSession { session: u8 },
    BeginTurn { session: u8, is_other: bool, lapses: bool },
    RenewTurn { turn: u8, lapses: bool },
    PutTurn { turn: u8, undos: u64, max_bytes: u64 },
    UndoTurn { turn: u8 },
    EndTurn { turn: u8 },
    DeleteSession { turn: u8 },
    Sweep { runs: bool, sessions: bool, old: bool },
    Secret { name: u8, secret: u8 },
}

/// A lease: the newest of those that may be valid, or of all. The number counts back.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub(crate) is_any: bool,
    pub(crate) back: u8,
}

/// A call to reply to.
#[derive(Clone, Debug)]
pub(crate) enum To {
    /// The newest of those that were opened, counted back.
    Opened(u8),
    /// A call and its phase, which may never have been opened.
    Any { run: u8, call: u8, phase: u8 },
}

/// What is written. The numbers of lines and events are right if their skew is 0. Lines with the same number are equal if
/// their `kind` is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub lines: usize,
    pub line_skew: i64,
    pub kind: u8,
    pub events: usize,
    pub event_skew: i64,
    pub opened: Vec<(u8, u8)>,
    pub closed: Vec<(u8, u8)>,
}

/// How an attempt ends.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Done,
    /// It has seen all replies, or so many more or fewer.
    Suspended(i64),
    Requeued {
        is_later: bool,
        is_fault: bool,
    },
    Stuck,
}

fn skew() -> impl Strategy<Value = i64> {
    prop_oneof![12 => Just(0), 1 => Just(-1), 1 => Just(1), 1 => -3..3i64]
}

/// The newest one most of the time.
fn recent() -> impl Strategy<Value = u8> {
    prop_oneof![3 => Just(0u8), 2 => 0..5u8]
}

fn lease() -> impl Strategy<Value = Pick> {
    (prop::bool::weighted(0.15), recent()).prop_map(|(is_any, back)| Pick { is_any, back })
}

fn to() -> impl Strategy<Value = To> {
    prop_oneof![
        4 => recent().prop_map(To::Opened),
        1 => (0..7u8, 0..3u8, 0..2u8).prop_map(|(run, call, phase)| To::Any { run, call, phase }),
    ]
}

fn calls() -> impl Strategy<Value = Vec<(u8, u8)>> {
    vec((0..3u8, 0..2u8), 0..3)
}

fn written() -> impl Strategy<Value = Written> {
    let numbers = (0..4usize, skew(), prop_oneof![6 => Just(0u8), 1 => Just(1u8)], 0..3usize, skew());
    let calls = (calls(), prop_oneof![2 => Just(Vec::new()), 1 => calls()]);
    let some = (numbers, calls).prop_map(|((lines, line_skew, kind, events, event_skew), (opened, closed))| Written {
        lines,
        line_skew,
        kind,
        events,
        event_skew,
        opened,
        closed,
    });
    prop_oneof![4 => some, 1 => Just(Written::default())]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        2 => Just(Ending::Done),
        6 => skew().prop_map(Ending::Suspended),
        2 => (prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(is_later, is_fault)| Ending::Requeued { is_later, is_fault }),
        2 => Just(Ending::Stuck),
    ]
}

fn of_runs() -> impl Strategy<Value = Op> {
    let again = || prop::bool::weighted(0.2);
    prop_oneof![
        5 => (0..2u8, option::weighted(0.4, 0..2u8), 0..2u8)
            .prop_map(|(tenant, key, digest)| Op::Submit { tenant, key, digest }),
        1 => (0..2u8, 0..2u8, 0..2u8).prop_map(|(tenant, key, digest)| Op::KnownRequest { tenant, key, digest }),
        9 => (0..2u8, any::<bool>(), 0..5usize, vec((0..2u8, 0..4usize), 1..4))
            .prop_map(|(worker, lapses, slots, room)| Op::Claim { worker, lapses, slots, room }),
        2 => (vec(lease(), 0..3), any::<bool>()).prop_map(|(leases, lapses)| Op::Renew { leases, lapses }),
        4 => (0..7u8, 0..4u64).prop_map(|(run, skip)| Op::Read { run, skip }),
        9 => (lease(), written(), again()).prop_map(|(lease, batch, again)| Op::Write { lease, batch, again }),
        8 => (lease(), written(), ending(), again())
            .prop_map(|(lease, batch, end, again)| Op::End { lease, batch, end, again }),
        9 => (to(), 0..2u8).prop_map(|(to, body)| Op::Reply { to, body }),
        3 => (0..7u8).prop_map(|run| Op::Cancel { run }),
        2 => (0..7u8).prop_map(|run| Op::Retry { run }),
        3 => (option::of(0..2u8), option::of(prop::sample::select(&RunStatus::ALL[..])), 1..4usize)
            .prop_map(|(tenant, status, max)| Op::List { tenant, status, max }),
        2 => Just(Op::Counts),
        1 => (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(runs, sessions, old)| Op::Sweep { runs, sessions, old }),
        1 => (0..2u8, 0..2u8).prop_map(|(name, secret)| Op::Secret { name, secret }),
    ]
}

fn of_sessions() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..2u8, any::<bool>(), 0..4u64)
            .prop_map(|(tenant, has_text, max)| Op::OpenSession { tenant, has_text, max }),
        1 => (0..4u8).prop_map(|session| Op::ReadSession { session }),
        8 => (prop_oneof![4 => 0..2u8, 1 => 2..4u8], prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(session, is_other, lapses)| Op::BeginTurn { session, is_other, lapses }),
        1 => (recent(), any::<bool>()).prop_map(|(turn, lapses)| Op::RenewTurn { turn, lapses }),
        5 => (recent(), prop_oneof![1 => Just(0), 3 => 1..4u64], prop_oneof![3 => Just(1_000), 1 => 0..60u64])
            .prop_map(|(turn, undos, max_bytes)| Op::PutTurn { turn, undos, max_bytes }),
        2 => recent().prop_map(|turn| Op::UndoTurn { turn }),
        1 => recent().prop_map(|turn| Op::EndTurn { turn }),
        1 => recent().prop_map(|turn| Op::DeleteSession { turn }),
    ]
}

/// Returns sequences of operations. Each begins with runs, leases and sessions.
pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let start = [
        Op::Submit { tenant: 0, key: None, digest: 0 },
        Op::Submit { tenant: 1, key: Some(0), digest: 0 },
        Op::Claim { worker: 0, lapses: false, slots: 2, room: vec![(0, 2), (1, 2)] },
        Op::OpenSession { tenant: 0, has_text: false, max: 1 },
    ];
    let mix = |runs, sessions| vec(prop_oneof![runs => of_runs(), sessions => of_sessions()], 30..60);
    prop_oneof![3 => mix(8, 1), 1 => mix(1, 8)].prop_map(move |ops| start.clone().into_iter().chain(ops).collect())
}
