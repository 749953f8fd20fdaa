//! Questions before something is removed.

use std::io::{self, IsTerminal as _, Write as _};

use super::failure::Failure;

/// Whether the user agrees. Without a terminal nobody can, so `--force` is needed.
pub(super) fn confirm(question: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::unusable(
            "nothing was removed: there is no terminal to ask on",
            "add --force to remove without being asked",
        ));
    }
    let mut answer = String::new();
    let mut stderr = io::stderr();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    asked.and_then(|()| io::stdin().read_line(&mut answer)).map_err(|error| Failure::io(error.to_string()))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
