//! What the end-to-end tests share: data folders, servers on free ports, processes that stop with the test.
