//! Medians, spreads and ratios, for people and as JSON.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

/// The times of one thing.
pub(crate) struct Row {
    name: String,
    component: Vec<Duration>,
    native: Vec<Duration>,
}

impl Row {
    pub(crate) fn new(name: &str, component: Vec<Duration>, native: Vec<Duration>) -> Self {
        Self { name: name.to_owned(), component: sorted(component), native: sorted(native) }
    }

    fn ratio(&self) -> f64 {
        median(&self.component) / median(&self.native)
    }
}

#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    published: Vec<(String, Vec<Duration>)>,
}

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn published(&mut self, name: &str, times: Vec<Duration>) {
        self.published.push((name.to_owned(), sorted(times)));
    }

    pub(crate) fn print(&self) {
        println!("{:<28} {:>24} {:>24} {:>7}", "median ms (10 % … 90 %)", "component", "native", "ratio");
        for row in &self.rows {
            let (component, native) = (spread(&row.component), spread(&row.native));
            println!("{:<28} {component:>24} {native:>24} {:>7.3}", row.name, row.ratio());
        }
        for (name, times) in &self.published {
            println!("{:<28} {:>24}", format!("{name}, Python add-on"), spread(times));
        }
    }

    pub(crate) fn write(&self, path: Option<PathBuf>) {
        let Some(path) = path else { return };
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.name,
                    "component_ms": median(&row.component),
                    "native_ms": median(&row.native),
                    "ratio": row.ratio(),
                    "rounds": row.component.len(),
                })
            })
            .collect();
        let published: Vec<_> =
            self.published.iter().map(|(name, times)| json!({"name": name, "ms": median(times)})).collect();
        let text = json!({"rows": rows, "published": published}).to_string();
        std::fs::write(&path, text).expect("the report can be written");
    }
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort();
    times
}

fn spread(times: &[Duration]) -> String {
    format!("{:.2} ({:.2} … {:.2})", median(times), quantile(times, 0.1), quantile(times, 0.9))
}

fn median(times: &[Duration]) -> f64 {
    quantile(times, 0.5)
}

/// In milliseconds.
fn quantile(times: &[Duration], fraction: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = ((times.len() - 1) as f64 * fraction).round() as usize;
    times[index].as_secs_f64() * 1000.0
}
