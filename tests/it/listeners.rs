//! TLS of the port, and the socket in the file system, by the clients that people use.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use hyper_util::rt::TokioIo;
use querent_flight::config::{CertificateSettings, RoleName, Settings, TlsSettings};
use querent_tests::{PATIENCE, Python, TestServer, TestSettings, querent_binary, run_client, wait_until};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};

#[tokio::test]
async fn flight_and_http_are_encrypted_on_one_port() {
    let authority = Authority::new();
    let server = TestServer::start(authority.settings("tok:read", false)).await;
    assert_eq!(select_one(&server, authority.client_config(None), Some("tok")).await, Ok(1));

    let http = reqwest::Client::builder().use_preconfigured_tls(authority.client_config(None)).build().unwrap();
    let url = format!("https://localhost:{}", server.addr.port());
    let health = http.get(format!("{url}/health")).send().await.unwrap();
    assert_eq!(health.status(), 200);
    let query = http.post(format!("{url}/v1/query")).bearer_auth("tok").body("select 1 as one").send().await.unwrap();
    assert_eq!(query.status(), 200);
    let refused = http.post(format!("{url}/v1/query")).body("select 1 as one").send().await.unwrap();
    assert_eq!(refused.status(), 401);

    // The protocol is agreed on before the first byte.
    for (offered, agreed) in [("h2", Some("h2")), ("http/1.1", Some("http/1.1"))] {
        let mut config = authority.client_config(None);
        config.alpn_protocols = vec![offered.as_bytes().to_vec()];
        let stream = connect(&server, config).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes));
    }
    // A client that trusts others does not connect.
    let error = connect(&server, Authority::new().client_config(None)).await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_tls_is_told_so() {
    let authority = Authority::new();
    let server = TestServer::start(authority.settings("", false)).await;
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(b"POST /v1/query HTTP/1.1\r\nhost: localhost\r\ncontent-length: 8\r\n\r\nselect 1").await.unwrap();
    let answer = read_to_end(&mut stream).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("this port speaks TLS"), "{answer}");

    // A client of gRPC whose connection is refused would send its call again at once, and again.
    let url = format!("http://{}", server.addr);
    let channel = Endpoint::from_shared(url.clone()).unwrap().connect().await.unwrap();
    let refusal = tokio::time::timeout(PATIENCE, one_from(channel, None)).await.expect("in time").unwrap_err();
    assert!(refusal.contains("this port speaks TLS"), "{refusal}");
    let http = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let answer = http.get(format!("{url}/health")).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert!(answer.text().await.unwrap().contains("this port speaks TLS"));

    // It is one port for all that, and goes on.
    assert_eq!(select_one(&server, authority.client_config(None), None).await, Ok(1));
}

/// It has said so within TLS, which may be closed on one side as TCP may.
#[tokio::test]
async fn a_client_that_stops_sending_gets_its_answer_over_tls() {
    let authority = Authority::new();
    let server = TestServer::start(authority.settings("", false)).await;
    let mut config = authority.client_config(None);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut stream = connect(&server, config).await.unwrap();
    let sql = "select count(*) as n from generate_series(1, 2000) a cross join generate_series(1, 2000) b";
    let request = format!("POST /v1/query HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{sql}", sql.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = read_to_end(&mut stream).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("4000000"), "{answer}");
}

#[tokio::test]
async fn mutual_tls_asks_every_client_for_a_certificate() {
    let authority = Authority::new();
    let server = TestServer::start(authority.settings("", true)).await;
    let known = authority.issue("a-client");
    assert_eq!(select_one(&server, authority.client_config(Some(&known)), None).await, Ok(1));
    let none = select_one(&server, authority.client_config(None), None).await.unwrap_err();
    assert!(!none.is_empty());
    // One that another authority has signed is as good as none.
    let stranger = Authority::new().issue("a-client");
    assert!(select_one(&server, authority.client_config(Some(&stranger)), None).await.is_err());
}

#[tokio::test]
async fn a_new_certificate_is_taken_while_the_server_runs() {
    let authority = Authority::new();
    let server = TestServer::start(authority.settings("", false)).await;
    let old = connect(&server, authority.client_config(None)).await.unwrap();
    let first = shown_by(&old);

    // What cannot be used is not used, whatever is wrong with it.
    let path = authority.path("server.pem");
    let issued = authority.issue("localhost");
    std::fs::write(&path, "not a certificate").unwrap();
    // Longer than the server waits between two looks.
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(shown_by(&connect(&server, authority.client_config(None)).await.unwrap()), first);

    std::fs::write(&path, &issued.certificate).unwrap();
    std::fs::write(authority.path("server.key"), &issued.key).unwrap();
    wait_until("the new certificate is shown", async || {
        shown_by(&connect(&server, authority.client_config(None)).await.unwrap()) != first
    })
    .await;
    assert_eq!(select_one(&server, authority.client_config(None), None).await, Ok(1));
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_at_the_start() {
    let authority = Authority::new();
    let other = authority.issue("localhost");
    std::fs::write(authority.path("other.key"), &other.key).unwrap();
    std::fs::write(authority.path("empty.pem"), "").unwrap();
    for (certificate, key, expected) in [
        ("gone.pem", "server.key", "gone.pem"),
        ("server.pem", "gone.key", "gone.key"),
        ("empty.pem", "server.key", "no certificate"),
        ("server.pem", "empty.pem", "no private key"),
        ("server.pem", "other.key", "tls.certificate"),
    ] {
        let mut settings = Settings::default();
        settings.listen.set_port(0);
        let data = TempDir::new().unwrap();
        settings.data = data.path().to_owned();
        settings.embed.provider = querent_flight::config::EmbedProviderName::None;
        settings.tls.certificate = Some(authority.path(certificate));
        settings.tls.key = Some(authority.path(key));
        let config = querent_flight::config::Config::from_settings(settings).unwrap();
        let error = querent_flight::Server::start(config, Arc::new(querent_catalog::NoProgress)).await.err().unwrap();
        assert!(error.to_string().contains(expected), "{certificate} {key}: {error}");
        assert_eq!(error.code().as_str(), "config_error");
    }
}

#[tokio::test]
async fn settings_that_do_not_go_together_are_refused() {
    let file = || Some(PathBuf::from("x.pem"));
    let none = TlsSettings::default();
    for (tls, key) in [
        (TlsSettings { certificate: file(), ..none.clone() }, "tls.certificate"),
        (TlsSettings { key: file(), ..none.clone() }, "tls.key"),
        (TlsSettings { client_ca: file(), ..none.clone() }, "tls.client_ca"),
        (TlsSettings { certificate: file(), key: file(), development: true, ..none }, "tls.development"),
    ] {
        let error = querent_flight::config::Config::from_settings(Settings { tls, ..Settings::default() }).unwrap_err();
        assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
    }
}

#[tokio::test]
async fn a_development_certificate_is_made_once_and_the_command_line_uses_it() {
    let settings = || TestSettings::default().change(|settings: &mut Settings| settings.tls.development = true);
    let server = TestServer::start(settings()).await;
    let certificate = server.data().join("tls/development.pem");
    let key = server.data().join("tls/development.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("https://{host}:{}", server.addr.port());
        let ca = certificate.to_str().unwrap();
        let sql = querent(&["sql", "--server", &url, "--ca", ca, "--json", "select 41 + 1 as answer"]).await;
        assert!(sql.contains("42"), "{sql}");
        let kql = querent(&["kql", "--server", &url, "--ca", ca, "--json", "print answer = 6 * 7"]).await;
        assert!(kql.contains("42"), "{kql}");
    }
    let url = format!("https://localhost:{}", server.addr.port());
    for arguments in [["sql", "--server", &url, "select 1"], ["kql", "--server", &url, "print 1"]] {
        let output = tokio::process::Command::new(querent_binary()).args(arguments).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("--ca"), "{said}");
    }
    let made = std::fs::read(&certificate).unwrap();
    let data = server.stop().await;
    let server = TestServer::start_in(data, settings()).await;
    assert_eq!(std::fs::read(server.data().join("tls/development.pem")).unwrap(), made);
}

#[tokio::test]
async fn pyarrow_and_adbc_speak_tls() {
    let authority = Authority::new();
    let server = TestServer::start(authority.settings("tok:read", true)).await;
    let client = authority.issue("a-client");
    std::fs::write(authority.path("client.pem"), &client.certificate).unwrap();
    std::fs::write(authority.path("client.key"), &client.key).unwrap();
    let mut python = Python::client("flight_tls.py");
    python.arg(format!("grpc+tls://localhost:{}", server.addr.port())).arg("tok");
    python.args(["ca.pem", "client.pem", "client.key"].map(|name| authority.path(name)));
    run_client(python).await;
}

#[tokio::test]
async fn a_socket_in_the_file_system_serves_its_user() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("querent.sock");
    // One that a process left when it was killed.
    drop(UnixListener::bind(&path).unwrap());
    let server = TestServer::start(on_socket(&path)).await;
    let metadata = std::fs::symlink_metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);

    let connector = {
        let path = path.clone();
        tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        })
    };
    let channel = Endpoint::from_static("http://localhost").connect_with_connector(connector).await.unwrap();
    assert_eq!(one_from(channel, None).await, Ok(1));

    for (host, status) in [("localhost", "200"), ("unix", "200"), ("evil.example", "403")] {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request = format!(
            "POST /v1/query HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: 8\r\n\r\nselect 1"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    let mut python = Python::client("flight_unix.py");
    python.arg(format!("grpc+unix://{}", path.display()));
    run_client(python).await;

    // Over TCP it is served as before.
    assert_eq!(server.get("/health", None).await.status, 200);
    server.stop().await;
    assert!(!path.exists(), "the file goes with the server");
}

#[tokio::test]
async fn certificates_say_who_calls() {
    let authority = Authority::new();
    let files = ["server.pem", "server.key", "ca.pem"].map(|name| authority.path(name));
    let settings = TestSettings::default().tokens("root-secret:admin").change(move |settings| {
        let [certificate, key, ca] = files;
        settings.tls.certificate = Some(certificate);
        settings.tls.key = Some(key);
        settings.tls.client_ca = Some(ca);
        settings.tls.clients = vec![CertificateSettings {
            name: "reports.example".to_owned(),
            role: RoleName::Read,
            subject: Some("reports".to_owned()),
            databases: None,
        }];
    });
    let server = TestServer::start(settings).await;
    let (known, unknown) = (authority.issue("reports.example"), authority.issue("other.example"));
    let ask = async |shown: &Issued, headers: &str, body: &str| {
        let mut stream = connect(&server, authority.client_config(Some(shown))).await.unwrap();
        let request = format!(
            "POST /v1/query HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&read_to_end(&mut stream).await).into_owned()
    };
    let who = ask(&known, "", "select current_user").await;
    assert!(who.starts_with("HTTP/1.1 200") && who.contains("reports"), "{who}");
    assert!(ask(&known, "", "create table t as select 1 a").await.starts_with("HTTP/1.1 403"));
    assert!(ask(&unknown, "", "select 1").await.starts_with("HTTP/1.1 401"));
    // Nobody says by a header whom a certificate stands for, and a token counts where there is one.
    let forged = "x-querent-client-certificate: reports.example\r\n";
    assert!(ask(&unknown, forged, "select 1").await.starts_with("HTTP/1.1 401"));
    let token = "authorization: Bearer root-secret\r\n";
    assert!(ask(&known, token, "create table t as select 1 a").await.starts_with("HTTP/1.1 200"));
    assert!(ask(&known, "authorization: Bearer wrong\r\n", "select 1").await.starts_with("HTTP/1.1 401"));
    assert_eq!(select_one(&server, authority.client_config(Some(&known)), None).await, Ok(1));
    assert!(select_one(&server, authority.client_config(Some(&unknown)), None).await.is_err());
    server.stop().await;
}

#[tokio::test]
async fn a_socket_is_not_taken_from_others() {
    let folder = TempDir::new().unwrap();
    let start = async |path: &Path| {
        let mut settings = Settings::default();
        settings.listen.set_port(0);
        let data = TempDir::new().unwrap();
        settings.data = data.path().to_owned();
        settings.listen_unix = Some(path.to_owned());
        let config = querent_flight::config::Config::from_settings(settings).unwrap();
        querent_flight::Server::start(config, Arc::new(querent_catalog::NoProgress)).await.err().unwrap()
    };
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let error = start(&file).await;
    assert!(error.to_string().contains("not a socket"), "{error}");
    assert_eq!(error.code().as_str(), "listen_error");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");

    let taken = folder.path().join("taken");
    let listener = UnixListener::bind(&taken).unwrap();
    let error = start(&taken).await;
    assert!(error.to_string().contains("another process"), "{error}");
    drop(listener);

    let server = TestServer::start(on_socket(&taken)).await;
    // A later server's file is not this one's to remove.
    std::fs::remove_file(&taken).unwrap();
    let _later = UnixListener::bind(&taken).unwrap();
    server.stop().await;
    assert!(taken.exists());
}

fn on_socket(path: &Path) -> TestSettings {
    let path = path.to_owned();
    TestSettings::default().change(|settings: &mut Settings| settings.listen_unix = Some(path))
}

/// An authority of its own, with a certificate for `localhost` and 127.0.0.1, in files.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
struct Issued {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let authority = Self { folder: TempDir::new().unwrap(), issuer: Issuer::new(params, key) };
        std::fs::write(authority.path("ca.pem"), certificate).unwrap();
        let server = authority.issue("localhost");
        std::fs::write(authority.path("server.pem"), server.certificate).unwrap();
        std::fs::write(authority.path("server.key"), server.key).unwrap();
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue(&self, name: &str) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }

    fn settings(&self, tokens: &str, mutual: bool) -> TestSettings {
        let [certificate, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| self.path(name));
        TestSettings::default().tokens(tokens).change(move |settings: &mut Settings| {
            settings.tls.certificate = Some(certificate);
            settings.tls.key = Some(key);
            settings.tls.client_ca = mutual.then_some(ca);
        })
    }

    /// A client that trusts this authority, and shows a certificate where it has one.
    fn client_config(&self, shown: Option<&Issued>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        match shown {
            None => builder.with_no_client_auth(),
            Some(Issued { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        }
    }
}

async fn connect(server: &TestServer, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(server.addr).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn shown_by(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Asks for the number 1 by Flight SQL over TLS.
async fn select_one(server: &TestServer, mut config: ClientConfig, token: Option<&str>) -> Result<i64, String> {
    config.alpn_protocols = vec![b"h2".to_vec()];
    let addr = server.addr;
    let connector = tower::service_fn(move |_| {
        let config = Arc::new(config.clone());
        async move {
            let stream = TcpStream::connect(addr).await?;
            let name = ServerName::try_from("localhost").unwrap();
            TlsConnector::from(config).connect(name, stream).await.map(TokioIo::new)
        }
    });
    let endpoint = Endpoint::from_shared(format!("https://localhost:{}", addr.port())).unwrap();
    let channel = endpoint.connect_with_connector(connector).await.map_err(|error| format!("{error:?}"))?;
    tokio::time::timeout(PATIENCE, one_from(channel, token)).await.expect("in time")
}

async fn one_from(channel: Channel, token: Option<&str>) -> Result<i64, String> {
    let mut client = FlightSqlServiceClient::new_from_inner(FlightServiceClient::new(channel));
    if let Some(token) = token {
        client.set_token(token.to_owned());
    }
    let info = client.execute("select 1 as one".to_owned(), None).await.map_err(|error| error.to_string())?;
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let stream = client.do_get(ticket).await.map_err(|error| error.to_string())?;
    let batches: Vec<_> = stream.try_collect().await.map_err(|error| error.to_string())?;
    Ok(batches.iter().map(|batch| batch.num_rows() as i64).sum())
}

async fn read_to_end(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("in time").expect("an answer");
    bytes
}

/// Runs a command of `querent` and returns its output.
async fn querent(arguments: &[&str]) -> String {
    let mut command = std::process::Command::new(querent_binary());
    command.args(arguments);
    let [stdout, _] = run_client(command).await;
    stdout
}
