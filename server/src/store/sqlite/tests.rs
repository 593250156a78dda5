//! Statements read from indexes: they take as long with a hundred thousand runs as with a few.

use super::reads::list_sql;
use super::runs::CLAIMABLE;
use rusqlite::Connection;

fn plan(sql: &str) -> String {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(include_str!("format_3.sql")).unwrap();
    let mut select = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let lines = select.raw_query().mapped(|row| row.get::<_, String>(3));
    lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
}

#[test]
fn claims_and_lists_sort_nothing() {
    let index = |sql: &str| {
        let plan = plan(sql);
        assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{sql}: {plan}");
        plan.split_once("INDEX ").map(|(_, rest)| rest.split(' ').next().unwrap().to_owned()).unwrap_or(plan)
    };
    assert_eq!(index(CLAIMABLE), "claimable_runs");
    assert_eq!(index(&list_sql(false, false)), "listed_runs");
    assert_eq!(index(&list_sql(true, false)), "listed_runs_of_tenants");
    assert_eq!(index(&list_sql(false, true)), "shown_runs");
    assert_eq!(index(&list_sql(true, true)), "shown_runs_of_tenants");
}

/// The summary of a session is read without its texts: they are the last columns, and the tables have row IDs.
#[test]
fn texts_of_sessions_are_in_nobodys_way() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(include_str!("format_3.sql")).unwrap();
    for table in ["openings", "states"] {
        let of_table = |sql: &str| db.query_row(sql, [table], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(of_table("SELECT wr || '' FROM pragma_table_list WHERE name = ?1"), "0", "{table}");
        let last = "SELECT name FROM pragma_table_info(?1) ORDER BY cid DESC LIMIT 1";
        assert_eq!(of_table(last), "text");
    }
}
