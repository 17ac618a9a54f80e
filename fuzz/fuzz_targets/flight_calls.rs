//! Whatever a command, a ticket or an action's body is, its call ends without blaming the server.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use querent_tests::FuzzedServer;

static SERVER: LazyLock<FuzzedServer> = LazyLock::new(FuzzedServer::start);

fuzz_target!(|input: &[u8]| SERVER.flight(input));
