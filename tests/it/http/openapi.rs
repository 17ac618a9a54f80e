//! `/openapi.json` and `/docs`: the document is whole, and says of each route what the router does.

use std::collections::{BTreeMap, BTreeSet};

use querent_agent::protocols::messages::messages_fields_table;
use querent_agent::protocols::openai_fields::{FieldUse, OpenAiRequest, REQUEST_FIELDS};
use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::TOKENS;

const METHODS: [&str; 4] = ["get", "post", "patch", "delete"];

#[tokio::test]
async fn the_document_is_whole_and_needs_no_token() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let reply = server.get("/openapi.json", None).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
    let document = reply.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let what = format!("{method} {path}: {operation}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "twice: {what}");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{what}");
        assert!(operation["responses"].as_object().unwrap().len() > 1, "{what}");
        let declared: Vec<&str> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let variables: Vec<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(declared, variables, "{what}");
        for (kind, body) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            let required = body["schema"]["required"].as_array().cloned().unwrap_or_default();
            let Some(example) = body["example"].as_object() else {
                assert!(body["example"].is_null() || kind != "application/json", "not JSON: {what}");
                continue;
            };
            for field in required {
                assert!(example.contains_key(field.as_str().unwrap()), "the example lacks {field}: {what}");
            }
        }
    }
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

/// No dead entries, and the roles are those that the router asks for.
#[tokio::test]
async fn every_documented_route_answers_and_asks_for_its_role() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let document = server.get("/openapi.json", None).await.json();
    for (method, path, operation) in operations(&document) {
        let place: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        let url = server.url(&place.join("/"));
        let request = || server.http.request(method.to_ascii_uppercase().parse().unwrap(), &url);
        let reply = server.send(request(), Some("admin-tok")).await;
        let what = format!("{method} {path}: {} {}", reply.status, reply.text);
        assert!(reply.status != 405 && reply.status != 500, "{what}");
        assert!(!reply.text.contains("there is nothing at"), "{what}");

        let role = operation["security"].as_array().unwrap().first().map(|one| one["bearer"][0].as_str().unwrap());
        let without = server.send(request(), None).await.status;
        assert_eq!(without == 401, role.is_some(), "without a token, {what}");
        let reader = server.send(request(), Some("reader-tok")).await.status;
        assert_eq!(reader == 403, matches!(role, Some("write" | "admin")), "as a reader, {what}");
    }
}

#[tokio::test]
async fn the_document_has_every_field_of_a_created_token() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let document = server.get("/openapi.json", None).await.json();
    let request = server.http.post(server.url("/v1/tokens")).json(&json!({ "name": "grafana", "role": "read" }));
    let reply = server.send(request, Some("admin-tok")).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let answer = &document["paths"]["/v1/tokens"]["post"]["responses"]["201"];
    let known = &answer["content"]["application/json"]["schema"]["properties"];
    for name in reply.json().as_object().unwrap().keys() {
        assert!(!known[name].is_null(), "{name}: {answer}");
    }
}

/// A client that is made of the document knows what it is answered with, and may send what it needs beside the body.
#[tokio::test]
async fn the_document_has_the_answers_and_the_headers_of_our_own_routes() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let document = server.get("/openapi.json", None).await.json();
    let asked = json!({ "question": "hello", "session_id": "s" });
    assert_eq!(server.post("/v1/agent/ask", &asked, Some("admin-tok")).await.status, 200);
    for (path, place) in [
        ("/v1/agent/sessions", "/v1/agent/sessions"),
        ("/v1/agent/sessions/{id}", "/v1/agent/sessions/s"),
        ("/v1/agent/sessions/{id}/turns", "/v1/agent/sessions/s/turns"),
        ("/v1/policy", "/v1/policy"),
        ("/v1/audit", "/v1/audit"),
        ("/v1/audit/verify", "/v1/audit/verify"),
        ("/v1/catalog/query-proposals", "/v1/catalog/query-proposals"),
    ] {
        let answer = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let reply = server.get(place, Some("admin-tok")).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        assert_described(&reply.json(), answer, path);
    }
    let names = |path: &str| -> Vec<String> {
        let parameters = document["paths"][path]["post"]["parameters"].as_array().cloned().unwrap_or_default();
        let headers = parameters.iter().filter(|parameter| parameter["in"] == "header");
        headers.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("/v1/query").contains(&"X-Querent-Wire-Types".to_owned()));
    for path in ["/v1/agent/ask", "/v1/responses", "/v1/messages", "/run_sse", "/a2a", "/mcp"] {
        assert!(names(path).contains(&"Idempotency-Key".to_owned()), "{path}");
    }
    assert!(!names("/v1/query").contains(&"Idempotency-Key".to_owned()));
}

/// Every member of an answer is described, and those that must be there are.
fn assert_described(value: &Value, schema: &Value, path: &str) {
    match value {
        Value::Object(members) if schema["properties"].is_object() => {
            for (name, member) in members {
                let known = &schema["properties"][name];
                assert!(known.is_object(), "{path}: `{name}` of {value} is not described");
                assert_described(member, known, path);
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(members.contains_key(name.as_str().unwrap()), "{path}: {name} is not in {value}");
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| assert_described(entry, &schema["items"], path)),
        _ => {}
    }
}

/// A client that is made of the document cannot send what it lacks, and is refused what it has too much.
#[tokio::test]
async fn the_document_has_the_fields_that_models_routes_honour() {
    let server = TestServer::start(TestSettings::default()).await;
    let document = server.get("/openapi.json", None).await.json();
    let schema =
        |path: &str| document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"].clone();
    let fields = |path: &str| schema(path)["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    for (path, request) in [("/v1/responses", OpenAiRequest::Responses), ("/v1/chat/completions", OpenAiRequest::Chat)]
    {
        let honoured = REQUEST_FIELDS.iter().filter(|field| field.use_in(request) == Some(FieldUse::Honoured));
        assert_eq!(fields(path), honoured.map(|field| field.name.to_owned()).collect::<BTreeSet<_>>(), "{path}");
    }
    let table = messages_fields_table();
    let honoured = table.lines().filter(|line| line.contains("` | yes |")).filter_map(|line| line.split('`').nth(1));
    assert_eq!(fields("/v1/messages"), honoured.map(str::to_owned).collect::<BTreeSet<_>>());
    for (path, optional) in [("/v1/responses", "input"), ("/api/chat", "ask")] {
        let required = schema(path)["required"].as_array().cloned().unwrap_or_default();
        assert!(!required.contains(&json!(optional)), "{path}: {required:?}");
    }

    // What tokens are counted of has no field that says how to answer. The last ones exclude others.
    let asked = json!({
        "input": "hello", "model": "m", "instructions": "be brief", "session_id": "s", "tools": [], "tool_choice": "auto",
        "parallel_tool_calls": true, "text": {}, "reasoning": {},
    });
    let message = json!({
        "messages": [{ "role": "user", "content": "hello" }], "model": "m", "system": "be brief", "tools": [],
        "tool_choice": { "type": "auto" }, "thinking": { "type": "disabled" }, "output_config": {},
    });
    for (path, body, others) in [
        ("/v1/responses/input_tokens", asked, &["conversation", "previous_response_id"][..]),
        ("/v1/messages/count_tokens", message, &["output_format"][..]),
    ] {
        let reply = server.post(path, &body, None).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        let sent = body.as_object().unwrap().keys().map(String::as_str).chain(others.iter().copied());
        assert_eq!(fields(path), sent.map(str::to_owned).collect::<BTreeSet<_>>(), "{path}");
    }
}

/// In the words of its protocol. Pages and probes, which let everybody in, take what browsers and proxies add.
#[tokio::test]
async fn every_route_refuses_a_parameter_that_it_does_not_take() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let document = server.get("/openapi.json", None).await.json();
    for (method, path, operation) in operations(&document) {
        // What an import takes depends on its format.
        if operation["security"].as_array().unwrap().is_empty() || path == "/v1/import" {
            continue;
        }
        let place: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        let url = server.url(&format!("{}?zzz=1", place.join("/")));
        let key = if operation["tags"][0] == "cube" { "Api-Key admin-tok" } else { "Bearer admin-tok" };
        let request = server.http.request(method.to_ascii_uppercase().parse().unwrap(), &url);
        let reply = server.send(request.header("authorization", key), None).await;
        assert!(
            reply.status == 400 && reply.text.contains("`zzz`"),
            "{method} {path}: {} {}",
            reply.status,
            reply.text
        );
        assert!(reply.json().is_object(), "{method} {path}: {}", reply.text);
    }
}

/// A path that gets a method which it does not take says which it takes, whatever protocol it is of.
#[tokio::test]
async fn every_route_says_which_methods_it_takes() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let document = server.get("/openapi.json", None).await.json();
    let mut methods: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (method, path, _) in operations(&document) {
        let taken = methods.entry(path.to_owned()).or_default();
        taken.push(method.to_ascii_uppercase());
        if method == "get" {
            taken.push("HEAD".to_owned());
        }
    }
    for (path, mut taken) in methods {
        let place: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        let request = server.http.put(server.url(&place.join("/")));
        let reply = server.send(request, None).await;
        assert_eq!(reply.status, 405, "{path}: {}", reply.text);
        assert_eq!(reply.header("x-querent-error-code"), "method_not_allowed", "{path}");
        let mut allowed: Vec<&str> = reply.header("allow").split(", ").collect();
        assert!(reply.text.contains(&format!("it takes {}", reply.header("allow"))), "{path}: {}", reply.text);
        assert!(reply.json().is_object(), "{path}: {}", reply.text);
        allowed.sort_unstable();
        taken.sort_unstable();
        assert_eq!(allowed, taken, "{path}");
    }
}

#[tokio::test]
async fn the_reference_page_loads_nothing_from_elsewhere() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let page = server.get("/docs", None).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    assert_eq!(page.text.matches(&format!("nonce=\"{nonce}\"")).count(), 2, "the script's and the style's");
    for outside in ["http://", "https://", "src=", "{nonce}", " style=\"", "onclick"] {
        assert!(!page.text.contains(outside), "{outside}");
    }
    let again = server.get("/docs", None).await;
    assert_ne!(again.header("content-security-policy"), policy, "a nonce is used once");
}

#[tokio::test]
async fn the_index_lists_what_is_documented() {
    let server = TestServer::start(TestSettings::default()).await;
    let index = server.get("/", None).await.json();
    assert_eq!(index["reference"], "/docs");
    let routes = index["routes"].as_array().unwrap();
    for line in ["GET /openapi.json", "POST, DELETE /mcp", "POST, GET /v1/responses", "GET, POST /v1/catalog/metrics"] {
        assert!(routes.contains(&json!(line)), "{line}: {index}");
    }
}

/// Method, path and operation of each.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        METHODS.iter().filter_map(move |method| Some((*method, path.as_str(), item.get(*method)?)))
    })
}

fn collect_references<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            into.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| collect_references(field, into));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| collect_references(entry, into)),
        _ => {}
    }
}
