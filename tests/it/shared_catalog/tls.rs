//! Encrypted connections to PostgreSQL, with certificates of an authority that the test makes.

use querent_catalog::{Catalog, CatalogError, CatalogOptions};
use querent_tests::{Certificates, PostgresProcess};

use super::{create, names, open};

/// What a catalog on `url` says when it is opened.
async fn refusal(url: &str) -> CatalogError {
    let folder = tempfile::tempdir().unwrap();
    let options = CatalogOptions { url: Some(url.to_owned()), ..CatalogOptions::new(folder.path()) };
    Catalog::open(options).await.err().unwrap_or_else(|| panic!("{url} was opened"))
}

#[tokio::test]
async fn connections_are_encrypted_and_both_sides_show_certificates() {
    let certificates = Certificates::new();
    certificates.issue("database", &["localhost"]);
    certificates.issue("querent", &["querent.example"]);
    let file = |name: &str| certificates.text(name).replace('/', "%2F");
    let postgres = PostgresProcess::start_encrypted(
        &certificates.file("database.pem"),
        &certificates.file("database.key"),
        &certificates.file("ca.pem"),
    );
    postgres.new_database("lake");
    let at = |host: &str, options: &str| format!("postgres://postgres@{host}:{}/lake?{options}", postgres.port());
    let trusted = format!("sslrootcert={}", file("ca.pem"));
    let ours = "SELECT bool_and(ssl), count(*) > 0, min(client_dn), max(client_dn) FROM pg_stat_ssl \
                JOIN pg_stat_activity USING (pid) WHERE application_name = 'querent'";

    for mode in ["verify-full", "verify-ca", "require"] {
        let folder = tempfile::tempdir().unwrap();
        let catalog = open(folder.path(), &at("localhost", &format!("sslmode={mode}&{trusted}"))).await;
        create(&catalog, &format!("made_by_{}", mode.replace('-', "_"))).await.unwrap();
        assert_eq!(postgres.psql("lake", ours).unwrap().trim(), "t|t||", "{mode}");
        catalog.close().await.unwrap();
    }
    let shown = format!("sslmode=verify-full&{trusted}&sslcert={}&sslkey={}", file("querent.pem"), file("querent.key"));
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &at("localhost", &shown)).await;
    assert_eq!(names(&catalog).await.len(), 3);
    // Those of before end in their own time.
    querent_tests::wait_until("PostgreSQL knows whom it talks to", async || {
        postgres.psql("lake", ours).unwrap().trim() == "t|t|/CN=querent|/CN=querent"
    })
    .await;
    catalog.close().await.unwrap();

    // An authority that did not sign it, none at all, and a host that it is not for.
    let other = Certificates::new();
    let wrong = format!("sslrootcert={}", other.text("ca.pem").replace('/', "%2F"));
    for url in [
        at("localhost", &format!("sslmode=verify-full&{wrong}")),
        at("localhost", &format!("sslmode=require&{wrong}")),
        at("localhost", "sslmode=require"),
        at("127.0.0.1", &format!("sslmode=verify-full&{trusted}")),
    ] {
        let error = refusal(&url).await;
        assert_eq!(error.code(), "catalog_unavailable", "{error}");
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
        assert!(error.to_string().contains("`sslrootcert`"), "{error}");
    }
    for (options, says) in [
        ("sslmode=require&sslrootcert=%2Fnowhere%2Fca.pem".to_owned(), "/nowhere/ca.pem cannot be read"),
        (format!("sslmode=require&sslrootcert={}", file("database.key")), "has no certificate"),
        (format!("sslmode=require&{trusted}&sslcert={}", file("querent.pem")), "go together"),
        (
            format!("sslmode=require&{trusted}&sslcert={}&sslkey={}", file("querent.pem"), file("database.key")),
            "is not the key of",
        ),
    ] {
        let error = refusal(&at("localhost", &options)).await;
        assert_eq!(error.code(), "invalid_object", "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn through_a_socket_nothing_is_encrypted() {
    let postgres = PostgresProcess::start();
    let folder = tempfile::tempdir().unwrap();
    // As libpq has it: what is said of TLS is for connections over a network.
    let url = format!("{}?sslmode=require", postgres.new_database("lake"));
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    catalog.close().await.unwrap();
}
