//! Whatever a query in KQL is, it is planned or refused.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use querent_tests::FuzzedServer;

static SERVER: LazyLock<FuzzedServer> = LazyLock::new(FuzzedServer::start);

fuzz_target!(|input: &str| SERVER.kql(input));
