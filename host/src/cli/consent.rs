//! Questions before something is lost.

use std::io::{self, IsTerminal as _, Write as _};

use super::failure::Failure;
use super::output;

/// How many lines of what will be lost a person reads before the question.
pub(super) const SHOWN: u32 = 20;

/// Asks whether to do `action`, such as "remove the state of a". Without a terminal nobody can answer, so `--force` is
/// needed. An error unless the answer is yes.
pub(super) fn ask(action: &str, lost: &[String]) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::unusable(
            format!("nothing was changed: this would {action}, and there is no terminal to ask on"),
            "add --force to do it without being asked, or --dry-run to see what would change",
        ));
    }
    let mut answer = String::new();
    let mut stderr = io::stderr();
    let shown = SHOWN as usize;
    let mut asked = || {
        for line in lost.iter().take(shown) {
            writeln!(stderr, "{}", output::visible(line))?;
        }
        if let Some(more @ 1..) = lost.len().checked_sub(shown) {
            writeln!(stderr, "  … and {more} more; --dry-run shows all")?;
        }
        write!(stderr, "This will {}. Go on? [y/N] ", output::visible(action))?;
        stderr.flush()?;
        io::stdin().read_line(&mut answer)
    };
    asked().map_err(|error| Failure::io(error.to_string()))?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") { Ok(()) } else { Err(Failure::declined()) }
}
