//! Medians, spreads and ratios, for people and as JSON.

use std::path::PathBuf;

use serde_json::json;

use crate::times::Times;

/// One thing, and how long each side took for it.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) component: Times,
    /// The same without the component: the least that it can take.
    pub(crate) floor: Option<Times>,
    pub(crate) addon: Option<Times>,
}

impl Row {
    /// From the times of the component, the floor and the add-on, as far as they are there.
    pub(crate) fn new(name: impl Into<String>, times: Vec<Times>) -> Self {
        let mut times = times.into_iter();
        let component = times.next().expect("the component's times");
        Self { name: name.into(), component, floor: times.next(), addon: times.next() }
    }

    fn ratio(&self) -> Option<f64> {
        self.floor.as_ref().map(|floor| self.component.median() / floor.median())
    }
}

/// A number that is no time.
struct Fact {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    facts: Vec<Fact>,
}

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn fact(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.facts.push(Fact { name, value, unit });
    }

    pub(crate) fn print(&self) {
        let head = ["median ms (10 % … 90 %)", "component", "floor", "ratio", "Python add-on"];
        let [name, component, floor, ratio, addon] = head;
        println!("{name:<36} {component:>26} {floor:>26} {ratio:>6} {addon:>26}");
        for row in &self.rows {
            let spread = |times: &Option<Times>| times.as_ref().map(Times::spread).unwrap_or_default();
            let ratio = row.ratio().map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
            let (name, component) = (&row.name, row.component.spread());
            let line =
                format!("{name:<36} {component:>26} {:>26} {ratio:>6} {:>26}", spread(&row.floor), spread(&row.addon));
            println!("{}", line.trim_end());
        }
        for Fact { name, value, unit } in &self.facts {
            println!("{name:<36} {value:>22.2} {unit}");
        }
    }

    pub(crate) fn write(&self, path: Option<PathBuf>) {
        let Some(path) = path else { return };
        let side = |times: &Option<Times>| times.as_ref().map(Times::json);
        let row = |row: &Row| {
            json!({
                "name": row.name,
                "component": row.component.json(),
                "floor": side(&row.floor),
                "ratio": row.ratio(),
                "addon": side(&row.addon),
            })
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        let fact = |fact: &Fact| json!({"name": fact.name, "value": fact.value, "unit": fact.unit});
        let facts: Vec<_> = self.facts.iter().map(fact).collect();
        let text = format!("{:#}\n", json!({"rows": rows, "facts": facts}));
        std::fs::write(&path, text).expect("the report can be written");
    }
}
