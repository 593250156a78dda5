//! What is measured, on which data, and what must come out.

use super::rust::{self, Row};
use super::{Answer, Task};
use crate::orders;
use std::path::{Path, PathBuf};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A new interpreter runs the smallest program and is dropped.
    Cold,
    /// The smallest program, compiled and run in a warm environment.
    OneLiner,
    /// The smallest program, compiled once and run afresh.
    CompiledOneLiner,
    /// The pipeline is compiled.
    Compile,
    /// The pipeline is compiled and run on orders that are inside.
    Inside,
    /// The pipeline, compiled once, is run afresh on orders that are inside.
    CompiledInside,
    /// The orders come in as JSON text, the pipeline is compiled and run.
    Bring,
    /// The orders come in as JSON text, the pipeline, compiled once, is run.
    CompiledBring,
    /// The orders come in as JSON text.
    Import,
    /// A long program.
    Long(Task),
    /// The memory of an instance that has nothing to do.
    Idle,
}

/// What the programs work on.
pub struct Data {
    /// 1,000 orders as JSON text.
    pub orders: String,
    /// 1 MB of orders as JSON text, under the key `orders`.
    pub text: String,
    orders_file: PathBuf,
    text_file: PathBuf,
    rows: Vec<Row>,
    json_length: f64,
}

impl Data {
    /// Makes the data, also as files in a folder for those who read it there.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        let (orders_file, text_file) = (folder.join("orders.json"), folder.join("text.json"));
        std::fs::write(&orders_file, orders(1_000))?;
        std::fs::write(&text_file, format!("{{\"orders\":{}}}", orders(6_300)))?;
        Data::read(&orders_file, &text_file)
    }

    /// Reads the data that another process has made.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn read(orders_file: &Path, text_file: &Path) -> std::io::Result<Self> {
        let (orders, text) = (std::fs::read_to_string(orders_file)?, std::fs::read_to_string(text_file)?);
        let rows = rust::typed::pipeline(&rust::typed::orders(&orders));
        let json_length = rust::typed::json(&text) as f64;
        Ok(Data { orders, text, orders_file: orders_file.into(), text_file: text_file.into(), rows, json_length })
    }

    /// The file of the orders and that of the text.
    pub fn files(&self) -> [&PathBuf; 2] {
        [&self.orders_file, &self.text_file]
    }

    /// Is it the answer to a workload?
    pub fn is_right(&self, workload: Workload, answer: &str) -> bool {
        match workload {
            Workload::Compile | Workload::Import | Workload::Idle => true,
            Workload::Cold | Workload::OneLiner | Workload::CompiledOneLiner => is_number(answer, 3.0),
            Workload::Inside | Workload::CompiledInside | Workload::Bring | Workload::CompiledBring => {
                self.has_rows(answer)
            }
            Workload::Long(task) => is_number(answer, self.number(task)),
        }
    }

    fn number(&self, task: Task) -> f64 {
        match task {
            Task::Pipeline => f64::NAN,
            Task::Fib => 196_418.0,
            Task::Loop => 12_499_997_500_000.0,
            Task::Closures => 749_998_500_000.0,
            Task::Strings => 19_999_900_000.0,
            Task::Join => 3_730_156.0,
            Task::Sort => 1_074_952_893.0,
            Task::Json => self.json_length,
            Task::Mandelbrot => 976_575.0,
        }
    }

    /// Rhai makes JSON of maps only: its rows are in one.
    fn has_rows(&self, answer: &str) -> bool {
        let bare = answer.strip_prefix("{\"rows\":").and_then(|rest| rest.strip_suffix('}')).unwrap_or(answer);
        let Ok(rows) = serde_json::from_str::<Vec<Row>>(bare) else { return false };
        rows.len() == self.rows.len() && rows.iter().zip(&self.rows).all(|(row, right)| row.is_like(right))
    }
}

/// Some write large integers as powers of ten, and one puts a text in quotes.
fn is_number(answer: &str, right: f64) -> bool {
    answer.trim_matches('"').parse() == Ok(right)
}

/// What went wrong, in a line of bearable length.
pub(super) fn wrong(answer: &Answer) -> String {
    format!("wrong answer: {}", answer.chars().take(200).collect::<String>())
}
