//! The settings of the programs that speak MCP, each with its own file and syntax.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::program::program_path;
use crate::cli::target::{CliTarget, ServerAddress};
use crate::cli::tls::ClientTlsArgs;

/// A program whose settings are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ClientName {
    /// Each of them
    All,
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Zed
    Zed,
}

const KNOWN: [ClientName; 6] = [
    ClientName::ClaudeCode,
    ClientName::ClaudeDesktop,
    ClientName::Codex,
    ClientName::Cursor,
    ClientName::Vscode,
    ClientName::Zed,
];

/// Prints a program's settings for the target that the command line names.
pub(super) fn print(client: ClientName, target: &CliTarget, database: Option<&str>) -> Result<(), CliError> {
    let program = program_path().map_err(|error| CliError::failed(format!("this program's path: {error}")))?;
    let launch = match target {
        CliTarget::Server(server) => Launch::proxy(&program, server, database),
        CliTarget::Embedded(config) => {
            let data = std::path::absolute(&config.settings.data)?;
            Launch::embedded(&program, &data, database)
        }
    };
    match client {
        ClientName::All => KNOWN
            .iter()
            .try_for_each(|one| output::print_line(&format!("# {}\n{}\n", heading(*one), launch.text(*one)))),
        one => output::print_line(&launch.text(one)),
    }
}

/// How a client reaches Querent: a program that it starts, and the address if there is a server.
struct Launch {
    program: String,
    arguments: Vec<String>,
    url: Option<String>,
    token: Option<String>,
    database: Option<String>,
}

impl Launch {
    fn proxy(program: &Path, server: &ServerAddress, database: Option<&str>) -> Self {
        let url = server.url.as_str().trim_end_matches('/');
        let mut arguments = ["mcp", "--server", url].map(str::to_owned).to_vec();
        let ClientTlsArgs { ca, client_certificate, client_key } = &server.tls;
        for (flag, file) in [("--ca", ca), ("--client-certificate", client_certificate), ("--client-key", client_key)] {
            if let Some(file) = file {
                let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
                arguments.extend([flag.to_owned(), file.to_string_lossy().into_owned()]);
            }
        }
        let launch = Self::new(program, arguments, database);
        Self { url: Some(format!("{url}/mcp")), token: server.token.clone(), ..launch }
    }

    fn embedded(program: &Path, data: &Path, database: Option<&str>) -> Self {
        let arguments = vec!["mcp".to_owned(), "--data".to_owned(), data.to_string_lossy().into_owned()];
        Self::new(program, arguments, database)
    }

    fn new(program: &Path, mut arguments: Vec<String>, database: Option<&str>) -> Self {
        arguments.extend(database.into_iter().flat_map(|name| ["--database".to_owned(), name.to_owned()]));
        let program = program.to_string_lossy().into_owned();
        Self { program, arguments, url: None, token: None, database: database.map(str::to_owned) }
    }

    fn text(&self, client: ClientName) -> String {
        match client {
            ClientName::ClaudeCode => self.claude_code(),
            ClientName::Codex => self.codex(),
            ClientName::ClaudeDesktop => pretty(&json!({ "mcpServers": { "querent": self.program() } })),
            ClientName::Cursor => pretty(&json!({ "mcpServers": { "querent": self.by_address(None) } })),
            ClientName::Vscode => pretty(&json!({ "servers": { "querent": self.by_address(Some("http")) } })),
            ClientName::Zed => pretty(&json!({ "context_servers": { "querent": self.by_address(None) } })),
            ClientName::All => String::new(),
        }
    }

    /// Returns the entry of a program to start. The token is passed in the environment, which a list of processes does not
    /// show.
    fn program(&self) -> Value {
        let mut entry = json!({ "command": self.program, "args": self.arguments });
        if let Some(token) = &self.token {
            entry["env"] = json!({ "QUERENT_TOKEN": token });
        }
        entry
    }

    /// Returns the entry with the address if there is one, with the transport's name for clients that want it.
    fn by_address(&self, transport: Option<&str>) -> Value {
        let mut entry = Map::new();
        let Some(url) = &self.url else {
            let mut program = self.program();
            if transport.is_some() {
                program["type"] = json!("stdio");
            }
            return program;
        };
        if let Some(transport) = transport {
            entry.insert("type".to_owned(), json!(transport));
        }
        entry.insert("url".to_owned(), json!(url));
        let headers: Map<String, Value> = self.headers().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        if !headers.is_empty() {
            entry.insert("headers".to_owned(), Value::Object(headers));
        }
        Value::Object(entry)
    }

    fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let token = self.token.as_ref().map(|token| ("Authorization", format!("Bearer {token}")));
        let database = self.database.clone().map(|database| ("X-Database", database));
        token.into_iter().chain(database)
    }

    fn claude_code(&self) -> String {
        let mut words = ["claude", "mcp", "add"].map(str::to_owned).to_vec();
        match &self.url {
            Some(url) => {
                words.extend(["--transport", "http", "querent", url].map(str::to_owned));
                for (name, value) in self.headers() {
                    words.extend(["--header".to_owned(), format!("{name}: {value}")]);
                }
            }
            None => {
                words.extend(["querent", "--", &self.program].map(str::to_owned));
                words.extend(self.arguments.iter().cloned());
            }
        }
        words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }

    fn codex(&self) -> String {
        let mut entry = toml::Table::new();
        entry.insert("command".to_owned(), toml::Value::from(self.program.as_str()));
        let arguments = self.arguments.iter().map(|argument| toml::Value::from(argument.as_str())).collect();
        entry.insert("args".to_owned(), toml::Value::Array(arguments));
        if let Some(token) = &self.token {
            let environment = toml::Table::from_iter([("QUERENT_TOKEN".to_owned(), toml::Value::from(token.as_str()))]);
            entry.insert("env".to_owned(), toml::Value::Table(environment));
        }
        let servers = toml::Table::from_iter([("querent".to_owned(), toml::Value::Table(entry))]);
        toml::Table::from_iter([("mcp_servers".to_owned(), toml::Value::Table(servers))]).to_string()
    }
}

fn heading(client: ClientName) -> &'static str {
    match client {
        ClientName::All => "all",
        ClientName::ClaudeCode => "Claude Code: run this once",
        ClientName::ClaudeDesktop => "Claude Desktop: claude_desktop_config.json (Settings, Developer, Edit Config)",
        ClientName::Codex => "Codex: ~/.codex/config.toml",
        ClientName::Cursor => "Cursor: ~/.cursor/mcp.json",
        ClientName::Vscode => "Visual Studio Code: .vscode/mcp.json",
        ClientName::Zed => "Zed: settings.json",
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// Quotes a word for a POSIX shell.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_reached_by_a_program_and_a_server_by_its_address() {
        let embedded = Launch::embedded(Path::new("/bin/querent"), Path::new("/srv/my lake"), None);
        assert_eq!(
            embedded.text(ClientName::ClaudeCode),
            "claude mcp add querent -- /bin/querent mcp --data '/srv/my lake'"
        );
        let server = ServerAddress {
            url: "http://127.0.0.1:8080".parse().unwrap(),
            token: Some("tok".to_owned()),
            tls: ClientTlsArgs::default(),
        };
        let proxy = Launch::proxy(Path::new("/bin/querent"), &server, Some("sales"));
        let vscode: Value = serde_json::from_str(&proxy.text(ClientName::Vscode)).unwrap();
        assert_eq!(
            vscode["servers"]["querent"],
            json!({
                "type": "http", "url": "http://127.0.0.1:8080/mcp",
                "headers": { "Authorization": "Bearer tok", "X-Database": "sales" },
            })
        );
        let desktop: Value = serde_json::from_str(&proxy.text(ClientName::ClaudeDesktop)).unwrap();
        assert_eq!(
            desktop["mcpServers"]["querent"],
            json!({
                "command": "/bin/querent",
                "args": ["mcp", "--server", "http://127.0.0.1:8080", "--database", "sales"],
                "env": { "QUERENT_TOKEN": "tok" },
            })
        );
        let codex: toml::Table = proxy.text(ClientName::Codex).parse().unwrap();
        assert_eq!(codex["mcp_servers"]["querent"]["env"]["QUERENT_TOKEN"].as_str(), Some("tok"));
    }
}
