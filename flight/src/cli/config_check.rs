//! `querent config check`: reads the settings as the server would, and prints them.

use std::io::{self, IsTerminal};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;

use super::error::CliError;
use super::output::{self, cut};
use super::serve::SettingsArgs;
use crate::config::Config;

/// Look at the settings
#[derive(Debug, clap::Subcommand)]
pub(super) enum ConfigCommand {
    Check(ConfigCheckArgs),
}

/// Check the settings and print each with where it came from
///
/// Exits with 2 when the server would refuse to start with them. Secrets are not shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  querent config check
  querent config check --config /etc/querent.toml --json")]
pub(super) struct ConfigCheckArgs {
    /// Print one JSON object a setting
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) fn run(args: ConfigCheckArgs) -> Result<(), CliError> {
    let config = Config::load(&args.settings.sources())?;
    let settings = config.effective();
    if args.json {
        return settings.iter().try_for_each(|setting| {
            let origin = setting.origin.to_string();
            output::print_line(
                &json!({ "key": setting.key.path, "value": setting.value, "origin": origin }).to_string(),
            )
        });
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(["setting", "value", "from", "what it is"]);
    if io::stdout().is_terminal() {
        // Four columns of words wrap well.
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for setting in &settings {
        let origin = setting.origin.to_string();
        table.add_row([setting.key.path, &cut(&setting.value, 60), &origin, setting.key.about]);
    }
    output::print_line(&table.to_string())?;
    for warning in &config.warnings {
        output::print_line(&format!("warning: {warning}"))?;
    }
    output::print_line("the settings are good")
}
