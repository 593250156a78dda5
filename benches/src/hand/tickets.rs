//! The support desk.

use super::frequencies;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::HashMap;

fn weight(priority: &Value) -> Option<i64> {
    Some(match priority.as_str()? {
        "low" => 1,
        "normal" => 2,
        "high" => 4,
        "urgent" => 8,
        _ => return None,
    })
}

fn events(ticket: &Value) -> impl Iterator<Item = &Value> {
    ticket["events"].as_array().into_iter().flatten()
}

fn is_open(ticket: &Value) -> bool {
    ticket["state"] != "resolved"
}

#[derive(Default)]
struct Agent {
    tickets: usize,
    resolved: usize,
    load: i64,
    minutes: i64,
    ratings: Vec<i64>,
}

fn agents(tickets: &[Value]) -> Option<Vec<Value>> {
    let mut agents: HashMap<&str, Agent> = HashMap::new();
    for ticket in tickets {
        let agent = agents.entry(ticket["agent"].as_str().unwrap_or("nobody")).or_default();
        agent.tickets += 1;
        if is_open(ticket) {
            agent.load += weight(&ticket["priority"])?;
        } else {
            agent.resolved += 1;
        }
        agent.minutes += events(ticket).filter_map(|event| event["minutes"].as_i64()).sum::<i64>();
        agent.ratings.extend(ticket["rating"].as_i64());
    }
    let mut agents: Vec<_> = agents.into_iter().collect();
    agents.sort_by_key(|(name, agent)| (Reverse(agent.load), *name));
    let card = |(name, agent): (&str, Agent)| {
        let rating = agent.ratings.iter().sum::<i64>() as f64 / agent.ratings.len() as f64;
        json!({
            "agent": name,
            "tickets": agent.tickets,
            "resolved": agent.resolved,
            "load": agent.load,
            "minutes": agent.minutes,
            "rating": (!agent.ratings.is_empty()).then(|| format!("{rating:.2}")),
        })
    };
    Some(agents.into_iter().map(card).collect())
}

fn escalation_tags(tickets: &[Value]) -> Vec<(&str, u64)> {
    let escalated = tickets.iter().filter(|ticket| events(ticket).any(|event| event["kind"] == "escalate"));
    let tags = escalated.filter_map(|ticket| ticket["tags"].as_array()).flatten().filter_map(Value::as_str);
    let mut tags: Vec<_> = frequencies(tags).into_iter().collect();
    tags.sort_by_key(|(tag, n)| (Reverse(*n), *tag));
    tags.truncate(3);
    tags
}

/// The urgent ones whose last word is not the customer's: number, agent, kind of the last event.
fn urgent_waiting<'a>(open: &[&'a Value]) -> Vec<(&'a str, Option<&'a str>, Option<&'a str>)> {
    let mut rows: Vec<_> = open
        .iter()
        .filter(|ticket| ticket["priority"] == "urgent")
        .map(|ticket| (ticket, events(ticket).last().unwrap_or(&Value::Null)))
        .filter(|(_, last)| last["by"] != "customer")
        .map(|(ticket, last)| {
            (ticket["id"].as_str().unwrap_or_default(), ticket["agent"].as_str(), last["kind"].as_str())
        })
        .collect();
    rows.sort_unstable();
    rows
}

fn figures(tickets: &[Value], open: &[&Value]) -> Option<Value> {
    Some(json!({
        "open-by-priority": frequencies(open.iter().filter_map(|ticket| ticket["priority"].as_str())),
        "agents": agents(tickets)?,
        "escalation-tags": escalation_tags(tickets),
        "urgent-waiting": urgent_waiting(open),
        "untagged": tickets.iter().filter(|ticket| ticket["tags"].as_array().is_none_or(Vec::is_empty)).count(),
    }))
}

/// What it prints comes before its answer.
pub(super) fn desk(text: &str) -> String {
    let tickets: Vec<Value> = serde_json::from_str(text).expect("JSON");
    let open: Vec<&Value> = tickets.iter().filter(|ticket| is_open(ticket)).collect();
    let line = format!("open {} of {}", open.len(), tickets.len());
    match figures(&tickets, &open) {
        Some(value) => format!("{line}\n{value}"),
        None => crate::datasets::error("type_error"),
    }
}
