//! What a list of runs costs, and the state of a session: they touch no requests, journals, answers and saved sessions. Counts
//! what is allocated, so it is a binary of its own, with one test.

#[path = "support/allocations.rs"]
mod allocations;
#[path = "support/life.rs"]
mod life;

use allocations::allocated;
use life::{Life, stores};
use lisp_server::runs::ListQuery;
use lisp_server::store::{Batch, End, NewRun, Room, Store};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Stores finished runs with requests, journals and answers of these sizes.
async fn fill(store: &Arc<dyn Store>, runs: usize, bytes: usize) {
    let tenant = "anonymous".to_owned();
    for run in 0..runs {
        let run_id = format!("01900000-0000-7000-8000-{run:012}");
        let request = format!("{{\"program\": \"1\", \"data\": {{\"x\": \"{}\"}}}}", "x".repeat(bytes));
        store.submit(NewRun { run_id, tenant: tenant.clone(), request }, None).await.unwrap();
        let room = Room { slots: 1, tenants: vec![(tenant.clone(), 1)] };
        let claim = store.claim("test", Duration::from_secs(60), &room).await.unwrap().remove(0);
        let lines = vec![format!("\"{}\"\n", "j".repeat(bytes))];
        let batch = Batch { first_line: 1, lines, first_event: 1, ..Batch::default() };
        store.end(&claim.lease, batch, End::Done(format!("\"{}\"", "a".repeat(bytes)).into())).await.unwrap();
    }
}

#[test]
fn a_list_costs_what_it_shows() {
    a_page_touches_no_texts();
    the_cursor_comes_to_every_run_once();
    the_state_of_a_session_touches_no_texts();
}

fn the_state_of_a_session_touches_no_texts() {
    let stores = stores("session");
    for (kind, store) in ["memory", "SQLite"].into_iter().zip(stores.iter()) {
        let life = Life::open(store, "");
        let tenant = life.service.tenant("anonymous").unwrap();
        let opening = format!("{{\"data\": {{\"x\": \"{}\"}}}}", "x".repeat(2_000_000));
        let opened = life.block_on(life.service.open_session(&tenant, opening.clone())).unwrap();
        let state = || life.block_on(life.service.session_state(&tenant, &opened.session_id)).unwrap();
        // Nothing can be undone, which takes a turn.
        let undo = || life.block_on(life.service.undo(&tenant, &opened.session_id)).unwrap_err();
        // Prepares their statements.
        state();
        undo();
        let before = allocated();
        let bytes = state().bytes;
        undo();
        let allocated = allocated() - before;
        println!("{kind}: a state and a turn allocate {allocated} bytes");
        assert_eq!(bytes, opening.len() as u64);
        assert!(allocated < 1_000_000, "{kind}: {allocated}");
        if kind == "SQLite" {
            // The log starts again when it is longer than twice the opening.
            let log = std::fs::metadata(stores.log()).unwrap().len();
            println!("{kind}: the log has {log} bytes after the opening and two turns");
            assert!(log < 3_000_000, "{kind}: {log}");
        }
        life.stop();
    }
}

fn a_page_touches_no_texts() {
    const RUNS: usize = 60;
    for (kind, store) in ["memory", "SQLite"].into_iter().zip(stores("texts").iter()) {
        Runtime::new().unwrap().block_on(fill(store, RUNS, 2_000_000));
        let life = Life::open(store, "");
        let page =
            || life.block_on(life.service.runs("anonymous", ListQuery { max: RUNS, ..ListQuery::default() })).unwrap();
        // Prepares its statements.
        page();
        let before = allocated();
        let runs = page().runs.len();
        let allocated = allocated() - before;
        println!("{kind}: a page of {runs} runs allocates {allocated} bytes");
        assert_eq!(runs, RUNS);
        assert!(allocated < 1_000_000, "{kind}: {allocated}");
        life.stop();
    }
}

fn the_cursor_comes_to_every_run_once() {
    const RUNS: usize = 2_500;
    for store in stores("cursor").iter() {
        Runtime::new().unwrap().block_on(fill(store, RUNS, 1));
        let life = Life::open(store, "");
        let (mut seen, mut next, mut pages) = (BTreeSet::new(), None::<String>, 0);
        loop {
            let query = ListQuery { cursor: next.as_deref(), max: 300, ..ListQuery::default() };
            let list = life.block_on(life.service.runs("anonymous", query)).unwrap();
            pages += 1;
            for run in list.runs {
                assert!(seen.insert(run.run_id.clone()), "{} is listed twice", run.run_id);
            }
            next = list.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!((seen.len(), pages), (RUNS, RUNS.div_ceil(300)));
        life.stop();
    }
}
