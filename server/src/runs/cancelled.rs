//! The answers of cancelled runs.

use super::stored_calls::calls_begun;
use lisp_runtime::outcome::Phase;
use lisp_runtime::request::Cut;
use lisp_runtime::{Answer, Error, Problem, Reason, Verdict};

/// Returns the answer of a run that was cancelled: it has the calls and prints, and no result.
pub(super) fn cancelled(mut answer: Answer) -> Answer {
    if answer.verdict != Verdict::Cancelled {
        let error = Error::new(Reason::Cancelled, "the run was cancelled");
        answer.error = Some((&Problem::new(error, Phase::Eval)).into());
        answer.verdict = Verdict::Cancelled;
        (answer.outcome, answer.value, answer.text, answer.memory) = (None, None, None, None);
        answer.truncated.retain(|part, _| !matches!(part.as_str(), "value" | "text" | "memory"));
    }
    answer
}

/// Says in the answer of a cancelled run which calls and prints of its journal it lacks: the run was cancelled before it had
/// replayed them all.
pub(super) fn note_missing(answer: &mut Answer, journal: &str, printed: u64) {
    if answer.verdict != Verdict::Cancelled {
        return;
    }
    if let Some(ledger) = &answer.ledger {
        let given_up = answer.given_up.len() as u64;
        let (shown, total) = (ledger.len() as u64, calls_begun(journal).saturating_sub(given_up));
        if shown < total {
            let cut = answer.truncated.entry("ledger".to_owned()).or_default();
            (cut.entries_total, cut.entries_shown) = (cut.entries_total.max(Some(total)), Some(shown));
        }
    }
    let known = answer.truncated.get("prints").and_then(|cut| cut.lines_shown);
    let shown = known.unwrap_or(answer.prints.len() as u64);
    if shown < printed {
        let cut = answer.truncated.entry("prints".to_owned()).or_default();
        (cut.lines_total, cut.lines_shown) = (cut.lines_total.max(Some(printed)), Some(shown));
    }
}

/// Says in the answer of a run why it has no calls and prints of its journal.
pub(super) fn note_unread(answer: &mut Answer, why: &str) {
    let mut cut = Cut::default();
    cut.message = Some(format!("the journal of the run was not replayed: {why}"));
    answer.truncated.extend(["ledger", "prints"].map(|part| (part.to_owned(), cut.clone())));
}

#[cfg(test)]
mod tests {
    use super::super::attempt::drive;
    use super::super::state::ActiveRun;
    use super::super::{Reply, Service};
    use crate::config::Config;
    use crate::store::{MemoryStore, Room, RunStatus, RunStore};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(60);

    fn config() -> Config {
        let text = "isolation = \"in-process\"\n[service]\nsuspend_after_ms = 0\n";
        Config::parse_with(text, "test.toml", &|_| None).unwrap()
    }

    /// A run that is cancelled before it has replayed its journal: its answer says what it lacks.
    #[tokio::test]
    async fn an_answer_says_which_calls_and_prints_it_lacks() {
        for omits in [json!([]), json!(["ledger"])] {
            let store = Arc::new(MemoryStore::new());
            let first = Service::open(config(), store.clone()).await.unwrap();
            let tenant = first.tenant("anonymous").unwrap();
            let request = json!({
                "program": "(do (tool/one {}) (println 1) (pmap (fn [n] (tool/one {:n n})) [1 2]) (tool/ask {}))",
                "tools": { "one": { "returns": 1 }, "ask": { "client": true } },
                "omit": omits,
            });
            let run_id = first.submit(&tenant, &request.to_string(), None).await.unwrap().run_id;
            let until = Instant::now() + LONG;
            while store.run(&run_id).await.unwrap().unwrap().summary.status != RunStatus::Waiting
                || first.active_count() > 0
            {
                assert!(Instant::now() < until);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            first.drain();
            first.ended_without_closing().await;
            let second = Service::open_front(config(), store.clone()).await.unwrap();
            let reply: Reply = serde_json::from_value(json!({ "result": 1 })).unwrap();
            let call = store.run(&run_id).await.unwrap().unwrap().summary.calls.remove(0).call;
            second.reply("anonymous", &run_id, &call, &reply).await.unwrap();
            let room = Room { slots: 1, tenants: vec![("anonymous".to_owned(), 1)] };
            let claim = store.claim("worker", LONG, &room).await.unwrap().remove(0);
            let active = Arc::new(ActiveRun::new(claim.lease.clone()));
            store.cancel(&run_id).await.unwrap();
            active.cancel();
            let mut slots = second.0.admission.slots(&[(second.0.tenants[0].clone(), 1)], 1).await.unwrap();
            let (_, place) = slots.take("anonymous").unwrap();
            tokio::time::timeout(LONG, drive(&second.0, claim, &active, place, until)).await.unwrap();
            let answer = store.run(&run_id).await.unwrap().unwrap().answer.unwrap();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!((&answer["verdict"], &answer["prints"]), (&json!("cancelled"), &json!([])), "{answer}");
            let ledger = json!({ "entries_total": 4, "entries_shown": 0 });
            let cut = &answer["truncated"];
            let is_omitted = omits != json!([]);
            assert_eq!(cut["ledger"], if is_omitted { Value::Null } else { ledger }, "{answer}");
            assert_eq!(cut["prints"], json!({ "lines_total": 1, "lines_shown": 0 }), "{answer}");
        }
    }
}
