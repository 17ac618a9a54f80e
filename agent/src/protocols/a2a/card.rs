//! The agent's card: what other agents read of it before they ask.

use serde_json::{Value, json};

/// Returns the card of the agent whose requests go to `address`, as both versions read it.
pub fn agent_card(address: &str, has_tokens: bool) -> Value {
    let mut card = json!({
        "name": "Querent",
        "description": "Answers questions about tables in plain language: it finds the tables, queries them with SQL and KQL, \
            and says what came of it. It only reads.",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [
            { "url": address, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": address, "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
        ],
        // Of the version 0.3.
        "protocolVersion": "0.3.0",
        "url": address,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{ "url": address, "transport": "JSONRPC" }],
        "capabilities": { "streaming": true, "pushNotifications": false },
        "defaultInputModes": ["text/plain", "application/json", "text/csv"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{
            "id": "ask",
            "name": "Answer questions about data",
            "description": "A question about the tables that the caller may read, answered in words, with the rows of its \
                queries as data.",
            "tags": ["data", "analytics", "sql", "kql"],
            "examples": ["Which carrier operated the most flights last week?"],
        }],
    });
    if has_tokens {
        // The two versions write a scheme differently; each ignores the other's field.
        card["securitySchemes"] = json!({ "bearer": {
            "type": "http",
            "scheme": "bearer",
            "httpAuthSecurityScheme": { "scheme": "bearer" },
        } });
        card["securityRequirements"] = json!([{ "schemes": { "bearer": { "list": [] } } }]);
        card["security"] = json!([{ "bearer": [] }]);
    }
    card
}
