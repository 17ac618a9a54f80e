//! Signed tokens of an identity provider: every door takes them, nobody else's are taken, and their claims decide what the
//! caller sees.

mod provider;

use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use querent_flight::config::{Config, SettingSources};
use querent_tests::{TestServer, TestSettings, collect_sse, wait_until};
use ring::hmac;
use serde_json::{Value, json};
use tonic::transport::Endpoint;

use crate::tokens::{doors, knock};
use provider::{IdentityProvider, SigningKey, encoded, message};

const RSA: &str = include_str!("oidc/rsa-1.pem");
const OTHER_RSA: &str = include_str!("oidc/rsa-2.pem");

fn rsa() -> SigningKey {
    SigningKey::rsa("rsa", "RS256", RSA)
}

async fn server_of(provider: &IdentityProvider) -> TestServer {
    let provider = provider.clone();
    let settings = TestSettings::default().tokens("boss-tok:admin:boss");
    TestServer::start(settings.change(move |settings| provider.configure(settings))).await
}

/// The status of a query with this token, and the code of its error.
async fn query(server: &TestServer, token: &str) -> (u16, String) {
    let reply = server.post("/v1/query", &json!({ "sql": "SELECT 1 AS one" }), Some(token)).await;
    let code = if reply.status == 200 { json!("") } else { reply.json()["error"]["code"].clone() };
    (reply.status, code.as_str().unwrap().to_owned())
}

fn refused() -> (u16, String) {
    (401, "unauthenticated".to_owned())
}

fn taken() -> (u16, String) {
    (200, String::new())
}

/// Signs in as drivers do, with the token as the password, and reads a query's rows.
async fn flight_rows(server: &TestServer, token: &str, sql: &str) -> Result<usize, tonic::Status> {
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    let status = |error: FlightError| tonic::Status::unknown(error.to_string());
    client.handshake("anybody", token).await.map_err(status)?;
    let info = client.execute(sql.to_owned(), None).await.map_err(status)?;
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let batches: Vec<_> = client.do_get(ticket).await.map_err(status)?.try_collect().await.unwrap();
    Ok(batches.iter().map(arrow::array::RecordBatch::num_rows).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_takes_a_signed_token_beside_the_others() {
    let keys = [rsa(), SigningKey::ecdsa("ec"), SigningKey::ed25519("ed"), SigningKey::rsa("r5", "RS512", OTHER_RSA)];
    let provider = IdentityProvider::start(&keys.each_ref()).await;
    let server = server_of(&provider).await;
    let token = keys[0].sign(&provider.claims("anna"));
    for (path, body) in doors() {
        let status = knock(&server, path, &body, &token).await;
        assert!(![401, 403, 503].contains(&status), "{path}: {status}");
        assert_eq!(knock(&server, path, &body, &format!("{token}0")).await, 401, "{path}");
    }
    let asked = server.post("/v1/agent/ask", &json!({ "question": "how many?" }), Some(&token)).await;
    assert_eq!(collect_sse(&asked.text).last().unwrap().event, "run_finished", "{}", asked.text);
    let listed = server.get("/v1/agent/runs", Some(&token)).await;
    assert!(listed.text.contains("how many?"), "the run is the subject's: {}", listed.text);
    assert_eq!(flight_rows(&server, &token, "SELECT * FROM generate_series(1, 3)").await.unwrap(), 3);
    let cube = server.http.post(server.url("/api/v1/public/acme/agents/1/chat/stream-chat-state"));
    let cube = cube.json(&json!({ "chatId": "c", "input": "how many?", "sessionSettings": { "internalId": "anna" } }));
    let cube = server.send(cube.header("authorization", format!("Api-Key {token}")), None).await;
    assert_eq!(cube.status, 200, "{}", cube.text);
    for key in &keys {
        assert_eq!(query(&server, &key.sign(&provider.claims("anna"))).await, taken(), "{}", key.algorithm);
    }
    assert_eq!(provider.asked_for_keys(), 1, "the keys are kept");
    // Tokens of the settings and of the catalog are taken as before, and nobody is let in without one.
    assert_eq!(query(&server, "boss-tok").await, taken());
    let made = server.post("/v1/tokens", &json!({ "name": "ben", "role": "read" }), Some("boss-tok")).await.json();
    assert_eq!(query(&server, made["token"].as_str().unwrap()).await, taken());
    assert_eq!(server.get("/v1/catalog/schema", None).await.status, 401);
    // Read is what a token may do that names no role.
    let body = json!({ "sql": "CREATE TABLE t AS SELECT 1 AS a" });
    assert_eq!(server.post("/v1/query", &body, Some(&token)).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_token_is_taken() {
    let (key, other, ec) = (rsa(), SigningKey::rsa("rsa", "RS256", OTHER_RSA), SigningKey::ecdsa("ec"));
    let provider = IdentityProvider::start(&[&key, &ec]).await;
    let server = server_of(&provider).await;
    let now = chrono::Utc::now().timestamp();
    for changed in [
        json!({}),
        json!({ "aud": ["elsewhere", "querent"] }),
        json!({ "exp": now - 30 }),
        json!({ "nbf": now + 30, "iat": now + 30 }),
        json!({ "iat": null }),
    ] {
        assert_eq!(query(&server, &key.sign(&provider.claims_with(changed.clone()))).await, taken(), "{changed}");
    }
    for changed in [
        json!({ "iss": "https://elsewhere.example.org" }),
        json!({ "iss": format!("{}/", provider.issuer) }),
        json!({ "iss": null }),
        json!({ "aud": "elsewhere" }),
        json!({ "aud": ["elsewhere"] }),
        json!({ "aud": [] }),
        json!({ "aud": null }),
        json!({ "exp": now - 90 }),
        json!({ "exp": null }),
        json!({ "exp": (now + 300).to_string() }),
        json!({ "nbf": now + 90 }),
        json!({ "nbf": "soon" }),
        json!({ "iat": now + 90 }),
        json!({ "sub": null }),
        json!({ "sub": "cube:anna" }),
        json!({ "roles": 7 }),
    ] {
        assert_eq!(query(&server, &key.sign(&provider.claims_with(changed.clone()))).await, refused(), "{changed}");
    }
    let claims = provider.claims("anna");
    let forged = |header: Value, secret: &[u8]| {
        let message = message(&header, &claims);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
        format!("{message}.{}", encoded(tag.as_ref()))
    };
    let mut swapped: Vec<String> = key.sign(&claims).split('.').map(str::to_owned).collect();
    swapped[1] = encoded(provider.claims("boss").to_string().as_bytes());
    let attacks = [
        ("none", format!("{}.", message(&json!({ "alg": "none" }), &claims))),
        ("None", format!("{}.", message(&json!({ "alg": "None", "kid": "rsa" }), &claims))),
        ("no signature", format!("{}.", message(&json!({ "alg": "RS256", "kid": "rsa" }), &claims))),
        ("no algorithm", key.sign_with(&json!({ "kid": "rsa" }), &claims)),
        ("the modulus as a secret", forged(json!({ "alg": "HS256", "kid": "rsa" }), &key.public())),
        ("the file as a secret", forged(json!({ "alg": "HS256", "kid": "rsa" }), RSA.as_bytes())),
        ("another key of that name", other.sign(&claims)),
        ("a key's name for another algorithm", ec.sign_with(&json!({ "alg": "ES256", "kid": "rsa" }), &claims)),
        ("an algorithm that the key is not for", key.sign_with(&json!({ "alg": "RS512", "kid": "rsa" }), &claims)),
        ("an unknown key", SigningKey::ecdsa("unknown").sign(&claims)),
        ("its own key in the header", {
            let jwk = json!({ "kty": "RSA", "n": encoded(&other.public()), "e": "AQAB" });
            other.sign_with(&json!({ "alg": "RS256", "kid": "mine", "jwk": jwk }), &claims)
        }),
        ("an extension", key.sign_with(&json!({ "alg": "RS256", "kid": "rsa", "crit": ["exp"] }), &claims)),
        ("other claims under the signature", swapped.join(".")),
        ("no claims", format!("{}.e30.AA", encoded(br#"{"alg":"RS256","kid":"rsa"}"#))),
        ("no JSON", "eyJhIjoi.eyJh.AAAA".to_owned()),
        ("deep nesting", format!("{}.{}.AA", encoded(br#"{"alg":"RS256","kid":"rsa"}"#), encoded(&[b'['; 9_000]))),
    ];
    for (what, token) in attacks {
        assert_eq!(query(&server, &token).await, refused(), "{what}");
        assert!(flight_rows(&server, &token, "SELECT 1").await.is_err(), "{what}");
    }
    assert!(provider.asked_for_keys() <= 2, "{} times: what callers send is no reason to", provider.asked_for_keys());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_of_the_provider_is_found_and_an_old_one_forgotten() {
    let (old, new) = (rsa(), SigningKey::ecdsa("new"));
    let provider = IdentityProvider::start(&[&old]).await;
    let server = server_of(&provider).await;
    let [before, after] = [&old, &new].map(|key| key.sign(&provider.claims("anna")));
    assert_eq!(query(&server, &before).await, taken());
    provider.rotate(&[&new]);
    // It is asked again once in ten seconds at most.
    wait_until("the new key is known", async || query(&server, &after).await == taken()).await;
    assert_eq!(query(&server, &before).await, refused());
    assert_eq!(provider.asked_for_keys(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_stops_only_those_whose_key_is_not_known() {
    let (key, later) = (rsa(), SigningKey::ecdsa("later"));
    let provider = IdentityProvider::start(&[&key]).await;
    provider.set_down(true);
    let server = server_of(&provider).await;
    let token = key.sign(&provider.claims("anna"));
    let reply = server.post("/v1/query", &json!({ "sql": "SELECT 1 AS one" }), Some(&token)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"), "{}", reply.text);
    assert_eq!(reply.json()["error"]["code"], "identity_provider_unavailable");
    assert!(!reply.text.contains("127.0.0.1"), "the provider's address is not the callers' business: {}", reply.text);
    for (path, body) in doors() {
        assert_eq!(knock(&server, path, &body, &token).await, 503, "{path}");
    }
    let embed = server.http.post(server.url("/api/v1/embed/generate-session")).json(&json!({ "externalId": "u" }));
    let embed = server.send(embed.header("authorization", format!("Api-Key {token}")), None).await;
    assert_eq!(embed.status, 503, "{}", embed.text);
    let failed = flight_rows(&server, &token, "SELECT 1").await.unwrap_err();
    assert!(failed.message().contains("identity provider"), "{failed}");
    assert_eq!(query(&server, "boss-tok").await, taken());

    provider.set_down(false);
    wait_until("it is asked again", async || query(&server, &token).await == taken()).await;
    provider.set_down(true);
    assert_eq!(query(&server, &token).await, taken(), "the keys that are known go on");
    // Whether this one is its key nobody knows.
    wait_until("it is asked for the key", async || query(&server, &later.sign(&provider.claims("ben"))).await.0 == 503)
        .await;
    assert_eq!(query(&server, &token).await, taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_not_a_providers_are_no_keys() {
    let key = rsa();
    let provider = IdentityProvider::start(&[&key]).await;
    let token = key.sign(&provider.claims("anna"));
    for path in ["/moved", "/huge", "/nowhere", "/realms/data/.well-known/openid-configuration"] {
        let (provider, url) = (provider.clone(), provider.url(path));
        let settings = TestSettings::default().change(move |settings| {
            provider.configure(settings);
            settings.auth.oidc.jwks_url = Some(url);
        });
        let server = TestServer::start(settings).await;
        assert_eq!(query(&server, &token).await.0, 503, "{path}");
    }
    provider.rename("https://elsewhere.example.org");
    assert_eq!(query(&server_of(&provider).await, &token).await.0, 503, "another issuer's configuration");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_decide_what_a_caller_sees_and_may_do() {
    let key = rsa();
    let provider = IdentityProvider::start(&[&key]).await;
    let configured = provider.clone();
    let settings = TestSettings::default().tokens("boss-tok:admin:boss").change(move |settings| {
        configured.configure(settings);
        let oidc = &mut settings.auth.oidc;
        oidc.roles_claim = "realm_access.roles".to_owned();
        oidc.attribute_claims = vec!["region=https://example.org/region".to_owned()];
        oidc.databases_claim = Some("databases".to_owned());
        oidc.role_map = vec!["data-writers=write".to_owned()];
    });
    let server = TestServer::start(settings).await;
    for statement in [
        "CREATE DATABASE sales",
        "CREATE DATABASE hr",
        "CREATE TABLE hr.people AS SELECT 1 AS id",
        "CREATE TABLE sales.orders AS SELECT * FROM (VALUES (1, 'EU'), (2, 'US'), (3, 'EU')) AS v(id, region)",
        "GRANT SELECT ON sales.orders TO ROLE analyst",
        "GRANT ALL ON DATABASE sales TO SUBJECT loader",
        "CREATE ROW POLICY own_region ON sales.orders USING (region = attribute('region')) TO GROUP emea",
        "CREATE ROW POLICY everything ON sales.orders USING (true) TO SUBJECT loader",
    ] {
        server.execute(statement).await;
    }
    let sign = |changed: Value| key.sign(&provider.claims_with(changed));
    let anna = sign(json!({ "realm_access": { "roles": ["analyst"] }, "groups": ["emea"], "databases": ["sales"],
        "https://example.org/region": "EU" }));
    let ids = async |token: &str| {
        let body = json!({ "sql": "SELECT id FROM sales.orders ORDER BY id" });
        let reply = server.post("/v1/query", &body, Some(token)).await;
        match reply.status {
            200 => Ok(reply.lines().iter().map(|row| row["id"].as_i64().unwrap()).collect::<Vec<_>>()),
            _ => Err(reply.json()["error"]["code"].as_str().unwrap().to_owned()),
        }
    };
    assert_eq!(ids(&anna).await.unwrap(), [1, 3]);
    assert_eq!(flight_rows(&server, &anna, "SELECT id FROM sales.orders").await.unwrap(), 2);
    let hidden = server.post("/v1/query", &json!({ "sql": "SELECT * FROM hr.people" }), Some(&anna)).await;
    assert_eq!(hidden.json()["error"]["code"], "database_not_found", "{}", hidden.text);
    let american = sign(json!({ "realm_access": { "roles": ["analyst"] }, "groups": ["emea"], "databases": ["sales"],
        "https://example.org/region": "US" }));
    assert_eq!(ids(&american).await.unwrap(), [2]);
    let of_no_group = sign(json!({ "realm_access": { "roles": ["analyst"] }, "databases": ["sales"] }));
    assert!(ids(&of_no_group).await.unwrap().is_empty());
    let of_no_role = sign(json!({ "groups": ["emea"], "databases": ["sales"] }));
    assert_eq!(ids(&of_no_role).await.unwrap_err(), "database_not_found");
    let of_no_database = sign(json!({ "realm_access": { "roles": ["analyst"] }, "groups": ["emea"] }));
    assert_eq!(ids(&of_no_database).await.unwrap_err(), "database_not_found");

    let loader = sign(json!({ "sub": "loader", "realm_access": { "roles": ["data-writers"] },
        "databases": ["sales"] }));
    assert_eq!(ids(&loader).await.unwrap(), [1, 2, 3]);
    let create = json!({ "sql": "CREATE TABLE sales.loaded AS SELECT 4 AS id" });
    assert_eq!(server.post("/v1/query", &create, Some(&anna)).await.status, 403);
    let created = server.post("/v1/query", &create, Some(&loader)).await;
    assert_eq!(created.status, 200, "a mapped role may write: {}", created.text);
}

#[test]
fn a_server_that_others_reach_needs_no_tokens_where_it_has_a_provider() {
    let folder = tempfile::tempdir().unwrap();
    let sources = SettingSources::default()
        .with_flag("data", folder.path().to_str().unwrap())
        .with_flag("listen", "0.0.0.0:0")
        .with_flag("auth.oidc.audience", "querent, reports");
    let error = Config::load(&sources).unwrap_err().to_string();
    assert!(error.contains("auth.oidc"), "{error}");
    let sources = sources.with_flag("auth.oidc.issuer", "https://id.example.org");
    let config = Config::load(&sources.clone().with_flag("auth.oidc.default_role", "none")).unwrap();
    assert_eq!(config.settings.auth.oidc.audience, ["querent", "reports"]);
    let error = Config::load(&sources.with_flag("auth.oidc.default_role", "owner")).unwrap_err().to_string();
    assert!(error.contains("auth.oidc.default_role"), "{error}");
}
