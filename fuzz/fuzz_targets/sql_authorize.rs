//! Whatever a statement is, it is planned and authorised or refused, and only queries pass in read-only mode.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use querent_tests::FuzzedServer;

static SERVER: LazyLock<FuzzedServer> = LazyLock::new(FuzzedServer::start);

fuzz_target!(|input: &str| SERVER.sql(input));
