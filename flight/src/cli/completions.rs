//! `querent completions`: what a shell of the system needs in order to complete commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use super::error::CliError;
use super::{Cli, output};

/// Print the completions of commands and flags, for bash, zsh, fish and others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(querent completions bash)
  querent completions zsh > ~/.zfunc/_querent
  querent completions fish > ~/.config/fish/completions/querent.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "querent", &mut script);
    output::print_line(String::from_utf8_lossy(&script).trim_end())
}
