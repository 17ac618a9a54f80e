//! Limits that nothing fits into, which are refused, and limits that others make unreachable, which are warned of.

use querent_catalog::SHORTEST_HISTORY;

use super::{ByteSize, DurationSetting, Settings};

impl Settings {
    /// Returns a limit that nothing fits into, and what is wrong with it.
    pub(super) fn limit_fault(&self) -> Option<(&'static str, String)> {
        let Self { agent, query, http, flight, mcp, audit, .. } = self;
        let times = [
            ("agent.run_timeout", agent.run_timeout),
            ("http.body_timeout", http.body_timeout),
            ("http.header_timeout", http.header_timeout),
            ("http.import_timeout", http.import_timeout),
            ("flight.upload_idle_timeout", flight.upload_idle_timeout),
            ("query.timeout", query.timeout),
            ("query.reader_idle", query.reader_idle),
            ("mcp.session_idle", mcp.session_idle),
        ];
        let counts = [
            ("agent.prompt_tokens", agent.prompt_tokens),
            ("agent.tool_result_tokens", agent.tool_result_tokens),
            ("agent.max_concurrent_runs", agent.max_concurrent_runs),
            ("http.max_connections", http.max_connections),
            ("mcp.max_sessions", mcp.max_sessions),
        ];
        let sizes = [
            ("query.memory", Some(query.memory)),
            ("query.pool_memory", query.pool_memory),
            ("query.process_memory", query.process_memory),
            ("http.max_query_bytes", Some(http.max_query_bytes)),
            ("flight.max_message_bytes", Some(flight.max_message_bytes)),
        ];
        if let Some((key, _)) = times.into_iter().find(|(_, time)| time.0.is_zero()) {
            return Some((key, "must be longer than nothing".to_owned()));
        }
        if let Some((key, _)) = sizes.into_iter().find(|(_, size)| *size == Some(ByteSize(0))) {
            return Some((key, "must be more than nothing".to_owned()));
        }
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Some((key, "must be at least 1".to_owned()));
        }
        // Elsewhere it means for ever; here it would delete each record.
        if audit.retention.0.is_zero() {
            return Some(("audit.retention", "must be longer than nothing; 36500d is a hundred years".to_owned()));
        }
        if audit.max_records == 0 {
            return Some(("audit.max_records", "must be at least 1; audit.enabled = false keeps none".to_owned()));
        }
        let origins = http.cors_allowed_origins.iter();
        let wrong = origins.filter(|origin| *origin != "*").find(|origin| !is_origin(origin))?;
        let fault = format!("`{wrong}` is not an origin as browsers send it; write it as https://example.com, or *");
        Some(("http.cors_allowed_origins", fault))
    }

    /// Returns warnings of limits that cannot be reached because others are lower. `is_said` knows which settings
    /// somebody wrote: defaults give way in silence.
    pub(super) fn unreachable_limits(&self, is_said: impl Fn(&str) -> bool) -> Vec<String> {
        let Self { query, agent, http, catalog, .. } = self;
        let sizes = [
            ("query.memory", Some(query.memory), "query.pool_memory", query.pool_memory),
            ("query.memory", Some(query.memory), "query.process_memory", query.process_memory),
            ("query.pool_memory", query.pool_memory, "query.process_memory", query.process_memory),
            ("query.column_cache", query.column_cache, "query.pool_memory", query.pool_memory),
            ("query.result_cache", Some(query.result_cache), "query.pool_memory", query.pool_memory),
        ];
        let sizes = sizes.into_iter().filter_map(|(key, size, other, most)| {
            let (size, most) = (size?, most?);
            (is_said(key) && size > most).then(|| warning(key, &size, other, &most))
        });
        let queries = (query.max_concurrent != 0).then_some(query.max_concurrent);
        let counts = [
            ("query.max_concurrent_per_caller", query.max_concurrent_per_caller, "query.max_concurrent", queries),
            (
                "agent.max_concurrent_runs_per_caller",
                agent.max_concurrent_runs_per_caller,
                "agent.max_concurrent_runs",
                Some(agent.max_concurrent_runs),
            ),
            (
                "http.max_connections_per_address",
                http.max_connections_per_address,
                "http.max_connections",
                Some(http.max_connections),
            ),
        ];
        let counts = counts.into_iter().filter_map(|(key, count, other, most)| {
            let (count, most) = (count?, most?);
            (count > most).then(|| warning(key, &count, other, &most))
        });
        let mut warnings: Vec<String> = sizes.chain(counts).collect();
        let (whole, slow) = (agent.run_timeout, agent.slow_run_timeout);
        if is_said("agent.slow_run_timeout") && slow.0 < whole.0 {
            warnings.push(format!(
                "`agent.slow_run_timeout` is {slow}, less than `agent.run_timeout`, which is {whole}: runs of slow \
                 models get no longer"
            ));
        }
        let kept = catalog.snapshot_retention;
        if !kept.0.is_zero() && kept.0 < SHORTEST_HISTORY {
            let shortest = DurationSetting(SHORTEST_HISTORY);
            warnings.push(format!(
                "`catalog.snapshot_retention` is {kept}, less than the {shortest} that a server keeps of its history at \
                 least, for the statements that read it"
            ));
        }
        warnings
    }
}

fn warning(key: &str, value: &dyn std::fmt::Display, other: &str, most: &dyn std::fmt::Display) -> String {
    format!("`{key}` is {value}, more than `{other}`, which is {most}: it is never reached")
}

/// Whether a text is what browsers send as `Origin`: a scheme and a host, without a path.
fn is_origin(text: &str) -> bool {
    let host = text.split_once("://").map(|(_, host)| host);
    text == "null" || host.is_some_and(|host| !host.is_empty() && !host.contains('/'))
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, SettingSources};

    fn load(flags: &[(&str, &str)]) -> Result<Config, String> {
        let sources = SettingSources::default();
        let sources = flags.iter().fold(sources, |sources, (key, value)| sources.with_flag(*key, *value));
        Config::load(&sources).map_err(|error| error.to_string())
    }

    #[test]
    fn limits_that_nothing_fits_into_are_refused() {
        let wrong = [
            ("http.header_timeout", "0s", "longer than nothing"),
            ("query.reader_idle", "0s", "longer than nothing"),
            ("mcp.session_idle", "0s", "longer than nothing"),
            ("query.memory", "0", "more than nothing"),
            ("query.pool_memory", "0", "more than nothing"),
            ("query.process_memory", "0", "more than nothing"),
            ("http.max_query_bytes", "0", "more than nothing"),
            ("flight.max_message_bytes", "0", "more than nothing"),
            ("audit.retention", "0s", "36500d"),
            ("audit.max_records", "0", "audit.enabled"),
            ("http.cors_allowed_origins", "example.com", "https://example.com"),
            ("http.cors_allowed_origins", "https://example.com/", "not an origin"),
        ];
        for (key, value, expected) in wrong {
            let error = load(&[(key, value)]).unwrap_err();
            assert!(error.contains(key) && error.contains(expected), "{key} = {value}: {error}");
        }
        for right in ["*", "https://a.example:8443", "chrome-extension://abc"] {
            assert!(load(&[("http.cors_allowed_origins", right)]).is_ok(), "{right}");
        }
    }

    #[test]
    fn limits_that_are_never_reached_are_warned_of() {
        let warnings = |flags: &[(&str, &str)]| load(flags).unwrap().warnings;
        let cases = [
            [("query.memory", "8GiB"), ("query.pool_memory", "1GiB")],
            [("query.pool_memory", "2GiB"), ("query.process_memory", "1GiB")],
            [("query.column_cache", "2GiB"), ("query.pool_memory", "1GiB")],
            [("query.max_concurrent_per_caller", "9"), ("query.max_concurrent", "4")],
            [("agent.max_concurrent_runs_per_caller", "9"), ("agent.max_concurrent_runs", "4")],
            [("http.max_connections_per_address", "9"), ("http.max_connections", "4")],
            [("agent.slow_run_timeout", "1m"), ("agent.run_timeout", "10m")],
        ];
        for case in cases {
            let found = warnings(&case);
            let names_both = |warning: &String| case.iter().all(|(key, _)| warning.contains(key));
            assert!(found.len() == 1 && found.iter().all(names_both), "{case:?}: {found:?}");
        }
        let retention = |time| warnings(&[("catalog.snapshot_retention", time)]);
        assert!(retention("30m").iter().any(|warning| warning.contains("3600s")), "{:?}", retention("30m"));
        assert!(["0s", "1h", "7d"].into_iter().all(|time| retention(time).is_empty()));
        // A default is nobody's contradiction.
        for (key, value) in [("query.pool_memory", "1GiB"), ("agent.run_timeout", "10m")] {
            assert!(warnings(&[(key, value)]).is_empty(), "{key}");
        }
        let unbounded = [("query.max_concurrent", "0"), ("query.max_concurrent_per_caller", "9")];
        assert!(warnings(&unbounded).is_empty());
    }
}
