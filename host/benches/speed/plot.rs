//! The plot of what grows with the number of rows.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

/// The median times of one operation.
pub(crate) struct Curve {
    name: &'static str,
    pub(crate) points: Vec<Point>,
}

/// Milliseconds on a table with as many rows, and on an empty one in the same minute.
pub(crate) struct Point {
    pub(crate) count: usize,
    pub(crate) filled: f64,
    pub(crate) empty: f64,
}

impl Curve {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, points: Vec::new() }
    }
}

impl Point {
    pub(crate) fn at(self, count: usize) -> Self {
        Self { count, ..self }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Two charts beside each other: by ids, and by versions of one id.
pub(crate) fn draw(file: &Path, of_ids: &[Curve], of_versions: &Curve) {
    let area = SVGBackend::new(file, (960, 400)).into_drawing_area();
    area.fill(&WHITE).expect("a background");
    let title = format!("median times; dotted: on an empty table. {}", machine());
    let area = area.titled(&title, ("sans-serif", 16)).expect("a title");
    let (left, right) = area.split_horizontally(480);
    chart(&left, "ids in the table", of_ids);
    chart(&right, "versions of one id", std::slice::from_ref(of_versions));
    area.present().expect("the plot is written");
}

fn chart(area: &Area, counted: &str, curves: &[Curve]) {
    let counts = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.count);
    let times = curves.iter().flat_map(|curve| &curve.points).map(|point| point.filled.max(point.empty));
    let highest = times.fold(0.0, f64::max) * 1.4;
    let range = (counts().min().unwrap_or(1)..counts().max().unwrap_or(10)).log_scale();
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(range, 0.0..highest)
        .expect("a chart");
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(counted)
        .y_desc("ms")
        .x_label_formatter(&|count| spaced(*count))
        .draw()
        .expect("axes");
    for (n, curve) in curves.iter().enumerate() {
        let color = Palette99::pick(n).to_rgba();
        let line = curve.points.iter().map(|point| (point.count, point.filled));
        let empty = curve.points.iter().map(|point| (point.count, point.empty));
        chart
            .draw_series(LineSeries::new(line, color.stroke_width(2)).point_size(3))
            .expect("a line")
            .label(curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        chart.draw_series(DashedLineSeries::new(empty, 2, 4, color.stroke_width(1))).expect("a line");
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .draw()
        .expect("a legend");
}

/// `1000000` as `1,000,000`.
fn spaced(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// The processor, and how many of them.
fn machine() -> String {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{} x {}", count, model.map_or(std::env::consts::ARCH, |(_, model)| model))
}
